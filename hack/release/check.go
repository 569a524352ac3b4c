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

	"github.com/tandem-addons/tandem/pkg/chart"
)

// requirement is what users rely on. Its function returns all problems that it finds.
type requirement struct {
	name  string
	check func(context.Context, published) error
}

const sums = "checksums"

// requirements are all, the slowest at the end.
var requirements = []requirement{
	{sums, checkSums},
	{"plugin", checkPlugin},
	{"SBOMs", checkBOMs},
	{"images", checkImages},
	{"chart", checkChart},
	{"manifests", checkManifests},
}

// check reads a release from a folder, and verifies it. The error contains all problems.
func check(ctx context.Context, folder string, requirements []requirement) error {
	p, err := readRelease(folder)
	if err != nil {
		return err
	}
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
	listed := map[string]bool{sumsFile: true}
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

// checkChart renders the chart, whose pods have to run the images of the release.
func checkChart(ctx context.Context, p published) error {
	name := "tandem-" + strings.TrimPrefix(p.version, "v") + ".tgz"
	archive := p.files[name]
	if archive == nil {
		return fmt.Errorf("%s is missing", name)
	}
	if version := chart.VersionOf(archive); "v"+version != p.version {
		return fmt.Errorf("%s has version %q", name, version)
	}
	renderer, err := chart.NewRenderer()
	if err != nil {
		return err
	}
	for _, values := range []string{"ui: {enabled: true}", "ocm: {enabled: true}", "{hub: {enabled: false}, agent: {enabled: true}}"} {
		rendered, err := renderer.Render(ctx, chart.Input{
			Archive: archive, Values: []byte(values), Release: chart.Release{Name: "tandem", Namespace: "tandem-system", Revision: 1},
			Capabilities: chart.Capabilities{KubeVersion: "v1.37.0"},
		}, func(context.Context, string, string, string, string) (map[string]any, error) { return nil, nil })
		if err != nil {
			return fmt.Errorf("rendering it with %s: %w", values, err)
		}
		content, err := json.Marshal(rendered.Objects)
		if err != nil {
			return err
		}
		if images, current := bytes.Count(content, []byte(`"image":"`)), bytes.Count(content, []byte(":"+p.version+`"`)); images == 0 || images > current {
			return fmt.Errorf("with %s, %d of %d images have version %s", values, current, images, p.version)
		}
	}
	return nil
}
