// Command crds writes the OCM part of manifests/crds: the ClusterManagementAddOn of OCM's API module extended with the
// dependencies that Tandem's own type declares, and the module's other resource definitions as they are. It reads and writes
// files and touches no cluster.
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

// extended is the file, relative to the root of OCM's API module, that gets the dependencies.
const extended = "addon/v1alpha1/0000_00_addon.open-cluster-management.io_clustermanagementaddons.crd.yaml"

// extendedAs is the name that it gets in the output folder.
const extendedAs = "addon.open-cluster-management.io_clustermanagementaddons.yaml"

// copied lists the files that are taken as they are: where they stand in OCM's API module, and their names in the output
// folder.
var copied = []struct{ from, to string }{
	{
		from: "addon/v1alpha1/0000_01_addon.open-cluster-management.io_managedclusteraddons.crd.yaml",
		to:   "addon.open-cluster-management.io_managedclusteraddons.yaml",
	},
	{
		from: "addon/v1alpha1/0000_02_addon.open-cluster-management.io_addondeploymentconfigs.crd.yaml",
		to:   "addon.open-cluster-management.io_addondeploymentconfigs.yaml",
	},
	{
		from: "cluster/v1/0000_00_clusters.open-cluster-management.io_managedclusters.crd.yaml",
		to:   "cluster.open-cluster-management.io_managedclusters.yaml",
	},
}

func main() {
	upstream := flag.String("upstream", "", "root folder of the module open-cluster-management.io/api")
	output := flag.String("output", "", "folder to write the definitions to")
	flag.Parse()
	if err := run(os.Stdin, *upstream, *output); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

// run reads from generated the definition that controller-gen made of Tandem's own ClusterManagementAddOn.
func run(generated io.Reader, upstream, output string) error {
	if upstream == "" || output == "" {
		return fmt.Errorf("both -upstream and -output are needed")
	}
	own, err := io.ReadAll(generated)
	if err != nil {
		return fmt.Errorf("reading the generated ClusterManagementAddOn: %w", err)
	}
	base, err := os.ReadFile(filepath.Join(upstream, extended))
	if err != nil {
		return fmt.Errorf("reading OCM's ClusterManagementAddOn: %w", err)
	}
	result, err := extend(base, own)
	if err != nil {
		return fmt.Errorf("extending %s: %w", extended, err)
	}
	if err := os.WriteFile(filepath.Join(output, extendedAs), result, 0o644); err != nil {
		return err
	}
	for _, file := range copied {
		content, err := os.ReadFile(filepath.Join(upstream, file.from))
		if err != nil {
			return fmt.Errorf("reading OCM's definition: %w", err)
		}
		if err := os.WriteFile(filepath.Join(output, file.to), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
