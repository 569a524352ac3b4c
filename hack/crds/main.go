// Command crds writes the OCM part of manifests/crds: the add-on definitions of OCM's API module, with conversion by Tandem's webhook and,
// in ClusterManagementAddOn, the dependencies that Tandem's own types declare; and the module's ManagedCluster unchanged. It reads and
// writes files, and does not connect to a cluster.
//
//	controller-gen crd paths=./pkg/api/addon/... output:crd:stdout | go run ./hack/crds -upstream DIR -output DIR
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// files lists the definitions to write.
var files = []file{
	{
		from:      "addon/v1beta1/0000_00_addon.open-cluster-management.io_clustermanagementaddons.crd.yaml",
		to:        "addon.open-cluster-management.io_clustermanagementaddons.yaml",
		converted: true,
		extended:  true,
	},
	{
		from:      "addon/v1beta1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml",
		to:        "addon.open-cluster-management.io_managedclusteraddons.yaml",
		converted: true,
	},
	{
		from:      "addon/v1beta1/0000_02_addon.open-cluster-management.io_addondeploymentconfigs.crd.yaml",
		to:        "addon.open-cluster-management.io_addondeploymentconfigs.yaml",
		converted: true,
	},
	{
		from: "cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml",
		to:   "cluster.open-cluster-management.io_managedclusters.yaml",
	},
}

// file is a definition's path in OCM's API module and its name in the output folder.
type file struct {
	from, to string
	// converted definitions have versions that Tandem's webhook converts. Others are copied unchanged.
	converted bool
	// extended definitions get the dependencies.
	extended bool
}

func main() {
	upstream := flag.String("upstream", "", "Root folder of the module open-cluster-management.io/api.")
	output := flag.String("output", "", "Folder to write the definitions to.")
	flag.Parse()
	if err := run(os.Stdin, *upstream, *output); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

// run writes all definitions. generated is controller-gen's definition of Tandem's own ClusterManagementAddOn.
func run(generated io.Reader, upstream, output string) error {
	if upstream == "" || output == "" {
		return fmt.Errorf("-upstream and -output are required")
	}
	text, err := io.ReadAll(generated)
	if err != nil {
		return fmt.Errorf("reading the generated ClusterManagementAddOn: %w", err)
	}
	own, err := parse(text)
	if err != nil {
		return fmt.Errorf("parsing the generated ClusterManagementAddOn: %w", err)
	}
	for _, file := range files {
		content, err := file.content(upstream, own)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(output, file.to), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// content returns the text to write for a definition in the module folder upstream.
func (f file) content(upstream string, own map[string]any) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(upstream, f.from))
	if err != nil {
		return nil, fmt.Errorf("reading OCM's definition: %w", err)
	}
	if !f.converted {
		return content, nil
	}
	if !f.extended {
		own = nil
	}
	if content, err = change(content, own); err != nil {
		return nil, fmt.Errorf("changing %s: %w", f.from, err)
	}
	return content, nil
}
