package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// requirement is what users rely on. Its function returns all problems that it finds.
type requirement struct {
	name  string
	check func(context.Context, published) error
}

// sums is the last of the requirements without which nothing of a release is read any further.
const sums = "checksums"

// requirements are all, the slowest at the end.
var requirements = []requirement{
	{"signature", checkSignature},
	{sums, checkSums},
	{"provenance", checkProvenance},
	{"plugin", checkPlugin},
	{"SBOMs", checkBOMs},
	{"images", checkImages},
	{"chart", checkChart},
	{"sandbox", checkSandbox},
	{"manifests", checkManifests},
}

// check verifies a release. The error contains all problems.
func check(ctx context.Context, p published, requirements []requirement) error {
	var problems []error
	for _, r := range requirements {
		fmt.Fprintln(os.Stderr, "checking", r.name)
		if err := r.check(ctx, p); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", r.name, err))
		}
		if r.name == sums && len(problems) > 0 { // nothing of an altered release is run
			break
		}
	}
	return errors.Join(problems...)
}

// checkSums compares all files with their checksums.
func checkSums(_ context.Context, p published) error {
	var problems []error
	listed := map[string]bool{sumsFile: true, signatureFile: true}
	for line := range strings.Lines(string(p.files[sumsFile])) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		listed[name] = true
		if content, exists := p.files[name]; !exists {
			problems = append(problems, fmt.Errorf("%q is listed in %s, but missing", name, sumsFile))
		} else if sum != sumOf(content) {
			problems = append(problems, fmt.Errorf("%s differs from its checksum", name))
		}
	}
	for name := range p.files {
		if !listed[name] {
			problems = append(problems, fmt.Errorf("%s has no checksum", name))
		}
	}
	return errors.Join(problems...)
}

// checkPlugin unpacks the archives that krew downloads, compares the programs with their SBOMs, and runs the one for this machine.
func checkPlugin(ctx context.Context, p published) error {
	var problems []error
	for _, of := range p.plugin.Spec.Platforms {
		name := path.Base(of.URI)
		if err := p.checkArchive(ctx, name, of.Sum, of.Bin, platform{of.Selector.MatchLabels["os"], of.Selector.MatchLabels["arch"]}); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	if len(p.plugin.Spec.Platforms) == 0 {
		problems = append(problems, fmt.Errorf("%s has no platforms", krewFile))
	}
	return errors.Join(problems...)
}

// checkArchive checks the archive of the plugin for one platform.
func (p published) checkArchive(ctx context.Context, name, sum, program string, on platform) error {
	archive, exists := p.files[name]
	if !exists {
		return errors.New("it is missing")
	}
	if sum != sumOf(archive) {
		return fmt.Errorf("%s has another checksum", krewFile)
	}
	files, err := unpack(archive)
	if err != nil {
		return err
	}
	if files["LICENSE"] == nil || files[program] == nil {
		return fmt.Errorf("it does not contain LICENSE and %s", program)
	}
	recorded, err := readBOM(p.files[strings.TrimSuffix(name, on.extension())+bomExtension])
	if err != nil {
		return fmt.Errorf("its SBOM is invalid: %w", err)
	}
	if hashes := recorded.Metadata.Component.Hashes; len(hashes) != 1 || hashes[0].Content != sumOf(files[program]) {
		return errors.New("its SBOM is about another program")
	}
	if on.os != runtime.GOOS || on.arch != runtime.GOARCH {
		return nil
	}
	return p.runProgram(ctx, files[program])
}

// runProgram checks that a program prints the version of the release.
func (p published) runProgram(ctx context.Context, program []byte) (err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("creating a folder for the program: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "program")
	if err := os.WriteFile(file, program, 0o700); err != nil {
		return err
	}
	output, err := exec.CommandContext(ctx, file, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("it does not run: %w\n%s", err, output)
	}
	if !strings.HasSuffix(strings.TrimSpace(string(output)), " "+p.version) {
		return fmt.Errorf("it prints %q, not version %s", output, p.version)
	}
	return nil
}

// readBOM parses an SBOM, and checks that its references exist.
func readBOM(content []byte) (bom, error) {
	var b bom
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&b); err != nil {
		return b, err
	}
	if b.Format != "CycloneDX" || b.SpecVersion != "1.6" {
		return b, fmt.Errorf("its format is %s %s", b.Format, b.SpecVersion)
	}
	known := map[string]bool{b.Metadata.Component.Ref: true}
	for _, c := range b.Components {
		known[c.Ref] = true
	}
	for _, d := range b.Dependencies {
		for _, ref := range append(d.DependsOn, d.Ref) {
			if !known[ref] {
				return b, fmt.Errorf("it refers to %q, which it does not contain", ref)
			}
		}
	}
	return b, nil
}

// checkBOMs parses all SBOMs, and checks that there is one for each program in an image.
func checkBOMs(_ context.Context, p published) error {
	var problems []error
	found := map[string]bool{}
	for name, content := range p.files {
		if !strings.HasSuffix(name, bomExtension) {
			continue
		}
		b, err := readBOM(content)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
		if b.Metadata.Component.Version == p.version {
			found[b.Metadata.Component.Name] = true
		}
	}
	for _, pod := range pods {
		if !found[pod] {
			problems = append(problems, fmt.Errorf("%s %s has none", pod, p.version))
		}
	}
	return errors.Join(problems...)
}
