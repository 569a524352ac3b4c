package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

const bomExtension = ".cdx.json"

// bom is a software bill of materials in the format of CycloneDX 1.6: https://cyclonedx.org/docs/1.6/json.
type bom struct {
	Format       string          `json:"bomFormat"`
	SpecVersion  string          `json:"specVersion"`
	Serial       string          `json:"serialNumber"`
	Version      int             `json:"version"`
	Metadata     bomMetadata     `json:"metadata"`
	Components   []bomComponent  `json:"components"`
	Dependencies []bomDependency `json:"dependencies"`
}

type bomMetadata struct {
	Timestamp string       `json:"timestamp"`
	Component bomComponent `json:"component"`
}

type bomComponent struct {
	Type       string        `json:"type"`
	Ref        string        `json:"bom-ref"`
	Name       string        `json:"name"`
	Version    string        `json:"version"`
	Hashes     []bomHash     `json:"hashes,omitempty"`
	Licenses   []bomLicense  `json:"licenses,omitempty"`
	PURL       string        `json:"purl"`
	Properties []bomProperty `json:"properties,omitempty"`
}

type bomHash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type bomLicense struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

type bomProperty struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type bomDependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// bomOf returns the SBOM of a program: the modules that the linker has recorded in it, and the standard library.
func bomOf(binary []byte, program string, on platform, r release) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s: %w", program, err)
	}
	main := bomComponent{
		Type: "application", Name: program, Version: r.version, PURL: purl(info.Main.Path, r.version) + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/"),
		Hashes: []bomHash{{Algorithm: "SHA-256", Content: sumOf(binary)}}, Licenses: []bomLicense{{}},
		Properties: []bomProperty{{"tandem:os", on.os}, {"tandem:arch", on.arch}, {"tandem:revision", r.revision}},
	}
	main.Licenses[0].License.ID = "Apache-2.0"
	main.Ref = main.PURL
	components := []bomComponent{library("std", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, module := range info.Deps {
		components = append(components, library(used(module)))
	}
	slices.SortFunc(components, func(a, b bomComponent) int { return cmp.Compare(a.PURL, b.PURL) })
	b := bom{
		Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		// The same program has the same serial number.
		Serial:     "urn:uuid:" + uuid.NewSHA1(uuid.NameSpaceURL, []byte(main.PURL+"@"+sumOf(binary))).String(),
		Metadata:   bomMetadata{Timestamp: r.created.Format(time.RFC3339), Component: main},
		Components: components, Dependencies: []bomDependency{{Ref: main.Ref}},
	}
	for _, component := range components {
		b.Dependencies[0].DependsOn = append(b.Dependencies[0].DependsOn, component.Ref)
	}
	content, err := json.MarshalIndent(b, "", "  ")
	return append(content, '\n'), err
}

// used returns what the program contains of a module: its path, its version and its checksum, or those of its replacement.
func used(module *debug.Module) (path, version, sum string) {
	if module.Replace != nil {
		module = module.Replace
	}
	return module.Path, module.Version, module.Sum
}

// library returns the component of a module. Its checksum is the one in go.sum, which is not a hash of one file.
func library(path, version, sum string) bomComponent {
	c := bomComponent{Type: "library", Ref: purl(path, version), Name: path, Version: version, PURL: purl(path, version)}
	if sum != "" {
		c.Properties = []bomProperty{{"tandem:go.sum", sum}}
	}
	return c
}

// purl returns the package URL of a module: https://github.com/package-url/purl-spec.
func purl(path, version string) string { return "pkg:golang/" + path + "@" + url.PathEscape(version) }
