package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
)

// provenanceFile describes how the other files were built, as an in-toto statement: https://slsa.dev/spec/v1.0/provenance.
const provenanceFile = "provenance.json"

const (
	statementType  = "https://in-toto.io/Statement/v1"
	predicateType  = "https://slsa.dev/provenance/v1"
	repositoryURL  = "https://github.com/tandem-addons/tandem"
	buildTypeURL   = repositoryURL + "/blob/main/docs/operations.md#from-a-release"
	localBuilderID = repositoryURL + "/tree/main/hack/release"
)

// statement is an in-toto statement with the predicate of SLSA.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// resource is a file, or a source of the build.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// provenance returns the provenance of files. It has no times and no names of machines, so that it can be built again.
func (r release) provenance(files map[string][]byte) ([]byte, error) {
	s := statement{Type: statementType, PredicateType: predicateType, Subject: []resource{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		s.Subject = append(s.Subject, resource{Name: name, Digest: map[string]string{"sha256": sumOf(files[name])}})
	}
	definition := &s.Predicate.BuildDefinition
	definition.BuildType = buildTypeURL
	definition.ExternalParameters = map[string]string{"version": r.version, "repository": r.repository, "imagePlatforms": r.images}
	definition.InternalParameters = map[string]string{"go": runtime.Version()}
	definition.ResolvedDependencies = []resource{{URI: "git+" + repositoryURL, Digest: map[string]string{"gitCommit": r.revision}}}
	s.Predicate.RunDetails.Builder.ID = r.builder
	content, err := json.MarshalIndent(s, "", "  ")
	return append(content, '\n'), err
}

// checkProvenance compares the subjects with all other files.
func checkProvenance(_ context.Context, p published) error {
	var s statement
	decoder := json.NewDecoder(bytes.NewReader(p.files[provenanceFile]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return fmt.Errorf("reading %s: %w", provenanceFile, err)
	}
	var problems []error
	if s.Type != statementType || s.PredicateType != predicateType {
		problems = append(problems, fmt.Errorf("its types are %q and %q", s.Type, s.PredicateType))
	}
	if version := s.Predicate.BuildDefinition.ExternalParameters["version"]; version != p.version {
		problems = append(problems, fmt.Errorf("it is about version %q", version))
	}
	described := map[string]string{}
	for _, subject := range s.Subject {
		described[subject.Name] = subject.Digest["sha256"]
	}
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		if !slices.Contains([]string{provenanceFile, sumsFile, signatureFile}, name) && described[name] != sumOf(p.files[name]) {
			problems = append(problems, fmt.Errorf("it does not describe %s", name))
		}
	}
	return errors.Join(problems...)
}
