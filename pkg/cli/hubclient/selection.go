package hubclient

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// Selection selects managed clusters.
type Selection struct {
	Names     []string
	all       bool
	selector  string
	labels    labels.Selector
	placement string
}

// AddFlags adds the flags that select clusters to a command; of completes the help text of --cluster.
func (s *Selection) AddFlags(cmd *cobra.Command, of string) {
	cmd.Flags().StringSliceVar(&s.Names, "cluster", nil, "Comma-separated names of managed clusters that "+of+".")
	cmd.Flags().BoolVarP(&s.all, "all-clusters", "A", false, "All managed clusters.")
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "Managed clusters with these labels, such as region=eu,tier!=test.")
	cmd.Flags().StringVar(&s.placement, "placement", "", "Managed clusters selected by this OCM Placement, given as [NAMESPACE/]NAME.")
}

// Require returns an error if the flags do not select clusters.
func (s *Selection) Require(cmd *cobra.Command, of string) error {
	if s.IsAll() && !s.all {
		return terminal.Usagef(cmd, "select the managed clusters that %s: --cluster, --selector, --placement or --all-clusters is required", of)
	}
	return s.Check(cmd)
}

// Check returns an error if the flags select clusters in more than one way, or are invalid.
func (s *Selection) Check(cmd *cobra.Command) error {
	ways := 0
	for _, given := range []bool{len(s.Names) > 0, s.all, s.selector != "", s.placement != ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return terminal.Usagef(cmd, "--cluster, --selector, --placement and --all-clusters are mutually exclusive")
	}
	if slices.Contains(s.Names, "") {
		return terminal.Usagef(cmd, "invalid argument %q for \"--cluster\" flag: names must not be empty", strings.Join(s.Names, ","))
	}
	if s.placement != "" {
		if key := s.placementKey(); key.Namespace == "" || key.Name == "" || strings.Contains(key.Name, "/") {
			return terminal.Usagef(cmd, "invalid argument %q for \"--placement\" flag: must be [NAMESPACE/]NAME", s.placement)
		}
	}
	var err error
	if s.labels, err = labels.Parse(s.selector); err != nil {
		return terminal.Usagef(cmd, "invalid argument %q for \"--selector\" flag: %v", s.selector, err)
	}
	return nil
}

// IsAll reports whether all clusters are selected.
func (s *Selection) IsAll() bool {
	return len(s.Names) == 0 && s.selector == "" && s.placement == ""
}

// Clusters returns the sorted names of the selected clusters. Clusters selected by name must exist, as far as the user may read them.
func (s *Selection) Clusters(ctx context.Context, c client.Reader) ([]string, error) {
	if s.placement != "" {
		return selectedBy(ctx, c, s.placementKey())
	}
	if len(s.Names) > 0 {
		names := slices.Compact(slices.Sorted(slices.Values(s.Names)))
		there, err := read.Clusters(ctx, c, "", labels.Everything())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			there.Cluster = name
			if err := there.CheckExists(); err != nil {
				return nil, err
			}
		}
		return names, nil
	}
	found, err := read.Clusters(ctx, c, "", s.labels)
	switch {
	case err != nil:
		return nil, err
	case found.Unreadable:
		return nil, fmt.Errorf("cannot list managed clusters: the hub does not serve ManagedClusters, or you are not allowed to list them; " +
			"select clusters with --cluster")
	case len(found.Names) == 0 && s.selector != "":
		return nil, fmt.Errorf("no managed cluster has labels %s: run 'kubectl get managedclusters --show-labels'", s.selector)
	case len(found.Names) == 0:
		return nil, fmt.Errorf("no managed clusters found: run 'kubectl get managedclusters'")
	}
	return found.Names, nil
}

// placementKey returns the key of the Placement; its namespace is default unless given.
func (s *Selection) placementKey() client.ObjectKey {
	namespace, name, both := strings.Cut(s.placement, "/")
	if !both {
		namespace, name = metav1.NamespaceDefault, s.placement
	}
	return client.ObjectKey{Namespace: namespace, Name: name}
}

var placementKinds = schema.GroupVersion{Group: read.ManagedClusterKind.Group, Version: "v1beta1"}

// placementLabel is OCM's label on the PlacementDecisions of a Placement.
const placementLabel = "cluster.open-cluster-management.io/placement"

// selectedBy returns the sorted clusters of a Placement's decisions.
func selectedBy(ctx context.Context, c client.Reader, placement client.ObjectKey) ([]string, error) {
	decisions := &unstructured.UnstructuredList{}
	decisions.SetGroupVersionKind(placementKinds.WithKind("PlacementDecision"))
	err := c.List(ctx, decisions, client.InNamespace(placement.Namespace), client.MatchingLabels{placementLabel: placement.Name})
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the hub does not serve Placements because it is not an OCM hub: select clusters with --cluster or --selector")
	}
	if err != nil {
		return nil, fmt.Errorf("listing the decisions of Placement %s: %w", placement, err)
	}
	var names []string
	for _, decision := range decisions.Items {
		made, _, _ := unstructured.NestedSlice(decision.Object, "status", "decisions")
		for _, one := range made {
			fields, _ := one.(map[string]any)
			if name, _, _ := unstructured.NestedString(fields, "clusterName"); name != "" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no managed cluster is selected by Placement %s, or it does not exist: run 'kubectl get placements -n %s'",
			placement, placement.Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
