package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// buildChart packs Tandem's chart with the version and the images of the release, and with annotations for Artifact Hub.
func buildChart(_ context.Context, r release) (map[string][]byte, error) {
	root := os.DirFS(filepath.Join(r.source, "deploy", "chart"))
	var entries []entry
	err := fs.WalkDir(root, ".", func(name string, file fs.DirEntry, err error) error {
		if err != nil || file.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		text, err := r.released(name, string(content))
		entries = append(entries, entry{name: "tandem/" + name, mode: 0o644, content: []byte(text)})
		return err
	})
	if err != nil {
		return nil, err
	}
	// Helm's convention: Chart.yaml is the first file.
	slices.SortStableFunc(entries, func(a, b entry) int { return rank(a) - rank(b) })
	packed, err := gzipped(entries, r.created)
	return map[string][]byte{"tandem-" + r.chartVersion() + ".tgz": packed, "artifacthub-repo.yml": r.artifactHubRepository()}, err
}

func rank(e entry) int {
	if e.name == "tandem/Chart.yaml" {
		return 0
	}
	return 1
}

// released returns the text of a file of the chart with the values of the release.
func (r release) released(name, text string) (string, error) {
	switch name {
	case "Chart.yaml":
		text, err := replaceLines(text, map[string]string{"version: 0.0.0": "version: " + r.chartVersion(), "appVersion: v0.0.0": "appVersion: " + r.version})
		return text + r.annotations(), err
	case "values.yaml":
		return replaceLines(text, map[string]string{"  repository: localhost/tandem-addons": "  repository: " + r.repository})
	}
	return text, nil
}

// replaceLines replaces lines, each of which is in the text once.
func replaceLines(text string, lines map[string]string) (string, error) {
	for old, line := range lines {
		if strings.Count("\n"+text, "\n"+old+"\n") != 1 {
			return "", fmt.Errorf("the chart does not contain the line %q exactly once", old)
		}
		text = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+old+"\n", "\n"+line+"\n", 1), "\n")
	}
	return text, nil
}

// annotations returns the annotations of the chart: https://artifacthub.io/docs/topics/annotations/helm.
func (r release) annotations() string {
	var b strings.Builder
	b.WriteString("annotations:\n  artifacthub.io/license: Apache-2.0\n  artifacthub.io/category: integration-delivery\n")
	fmt.Fprintf(&b, "  artifacthub.io/prerelease: %q\n", fmt.Sprint(strings.Contains(r.version, "-")))
	b.WriteString("  artifacthub.io/images: |\n")
	for _, pod := range pods {
		fmt.Fprintf(&b, "    - name: %s\n      image: %s/%s:%s\n      platforms:\n", pod, r.repository, pod, r.version)
		for p := range strings.SplitSeq(r.images, ",") {
			fmt.Fprintf(&b, "        - %s\n", p)
		}
	}
	b.WriteString("  artifacthub.io/links: |\n    - name: Documentation\n      url: https://github.com/tandem-addons/tandem/tree/main/docs\n")
	return b.String()
}

// artifactHubRepository returns the description of the chart's repository: https://artifacthub.io/docs/topics/repositories.
func (r release) artifactHubRepository() []byte {
	text := "# Artifact Hub reads this file beside the chart repository's index, or from the tag artifacthub.io of an OCI repository.\nowners: []\n"
	if r.artifactHub != "" {
		text += "repositoryID: " + r.artifactHub + "\n"
	}
	return []byte(text)
}
