package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/template"
)

// buildPlugin builds the plugin for all platforms, with an SBOM each, and the manifest by which krew installs it.
func buildPlugin(ctx context.Context, r release) (map[string][]byte, error) {
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	manifest := krew{Version: r.version}
	for _, p := range r.platforms {
		binary, err := r.plugin.build(ctx, r.source, r.version, p)
		if err != nil {
			return nil, err
		}
		packed, err := p.pack([]entry{
			{name: "LICENSE", mode: 0o644, content: license}, {name: p.executable(r.plugin.name), mode: 0o755, content: binary},
		}, r.created)
		if err != nil {
			return nil, err
		}
		bom, err := bomOf(binary, r.plugin.name, p, r)
		if err != nil {
			return nil, err
		}
		base := fmt.Sprintf("%s_%s_%s_%s", r.plugin.name, r.version, p.os, p.arch)
		files[base+p.extension()], files[base+bomExtension] = packed, bom
		manifest.Platforms = append(manifest.Platforms, krewPlatform{
			OS: p.os, Arch: p.arch, URI: r.url + "/" + r.version + "/" + base + p.extension(), Sum: sumOf(packed), Bin: p.executable(r.plugin.name),
		})
	}
	files[krewFile], err = manifest.yaml()
	return files, err
}

// krewFile is the plugin's manifest.
const krewFile = "krew-addon.yaml"

// krew is what the manifest of the plugin contains: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
type krew struct {
	Version   string
	Platforms []krewPlatform
}

type krewPlatform struct{ OS, Arch, URI, Sum, Bin string }

var krewManifest = template.Must(template.New("krew").Parse(`apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: addon
spec:
  version: {{ .Version }}
  homepage: https://github.com/tandem-addons/tandem
  shortDescription: Manage add-ons of a fleet of clusters
  description: |
    Shows, installs, upgrades and removes the add-ons of managed clusters from
    a hub, and explains why an add-on is not available.
  caveats: |
    The commands need a hub with Tandem: see docs/operations.md of the project.
  platforms:
{{- range .Platforms }}
  - selector:
      matchLabels:
        os: {{ .OS }}
        arch: {{ .Arch }}
    uri: {{ .URI }}
    sha256: {{ .Sum }}
    bin: {{ .Bin }}
{{- end }}
`))

// yaml returns the manifest.
func (k krew) yaml() ([]byte, error) {
	var text bytes.Buffer
	err := krewManifest.Execute(&text, k)
	return text.Bytes(), err
}
