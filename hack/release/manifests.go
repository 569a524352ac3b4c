package main

import (
	"context"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/tandem-addons/tandem/hack/kustomize"
)

// manifest is a file with the objects of a folder of deploy/.
type manifest struct {
	file, folder, component, description string
}

// manifests are all that users apply.
var manifests = []manifest{
	{file: "install-hub.yaml", folder: "hub", description: "addon-manager on a hub without OCM"},
	{file: "install-hub-before-1.36.yaml", folder: "hub", component: "before-1.36",
		description: "addon-manager on a hub without OCM, with an API server older than Kubernetes 1.36"},
	{file: "install-hub-ocm.yaml", folder: "hub-ocm", description: "addon-manager on a hub with OCM"},
	{file: "install-hub-ocm-before-1.36.yaml", folder: "hub-ocm", component: "before-1.36",
		description: "addon-manager on a hub with OCM, with an API server older than Kubernetes 1.36"},
	{file: "install-agent.yaml", folder: "agent", description: "addon-agent on a managed cluster without OCM"},
	{file: "install-ui.yaml", folder: "ui", description: "the dashboard, beside addon-manager"},
	{file: "install-packagesources.yaml", folder: "packagesources", description: "package-controller, which follows PackageSources, beside addon-manager"},
	{file: "uninstall-hub.yaml", folder: "uninstall", description: "the Job that removes Tandem from a hub after addon-manager has stopped"},
}

// buildManifests builds the manifests with the images of the release.
func buildManifests(_ context.Context, r release) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, m := range manifests {
		o := kustomize.Overlay{Resources: []string{filepath.Join(r.source, "deploy", m.folder)}}
		if m.component != "" {
			o.Components = []string{filepath.Join(r.source, "deploy", m.component)}
		}
		for _, pod := range pods {
			o.Images = append(o.Images, types.Image{Name: pod, NewName: r.repository + "/" + pod, NewTag: r.version})
		}
		content, err := kustomize.Build(o)
		if err != nil {
			return nil, err
		}
		header := fmt.Sprintf("# Tandem %s: %s.\n#\n#   kubectl apply --server-side -f %s\n---\n", r.version, m.description, m.file)
		files[m.file] = append([]byte(header), content...)
	}
	return files, nil
}
