package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selection says which managed clusters a command is for.
type selection struct {
	names    []string
	all      bool
	selector string
	labels   labels.Selector
}

func (s *selection) addFlags(cmd *cobra.Command, of string) {
	cmd.Flags().StringSliceVar(&s.names, "cluster", nil, "managed clusters that "+of+", separated by commas")
	cmd.Flags().BoolVar(&s.all, "all-clusters", false, "all managed clusters")
	cmd.Flags().StringVarP(&s.selector, "selector", "l", "", "managed clusters with these labels, such as region=eu,tier!=test")
}

// require refuses a command line that does not say which clusters are meant.
func (s *selection) require(cmd *cobra.Command, of string) error {
	if len(s.names) == 0 && !s.all && s.selector == "" {
		return usagef(cmd, "name the managed clusters that %s: by --cluster, --selector or --all-clusters", of)
	}
	return s.check(cmd)
}

// check refuses a command line that names clusters in two ways, or in one that makes no sense.
func (s *selection) check(cmd *cobra.Command) error {
	ways := 0
	for _, given := range []bool{len(s.names) > 0, s.all, s.selector != ""} {
		if given {
			ways++
		}
	}
	if ways > 1 {
		return usagef(cmd, "--cluster, --selector and --all-clusters exclude each other")
	}
	if slices.Contains(s.names, "") {
		return usagef(cmd, "--cluster %s: a name is empty", strings.Join(s.names, ","))
	}
	var err error
	if s.labels, err = labels.Parse(s.selector); err != nil {
		return usagef(cmd, "--selector %s: %v", s.selector, err)
	}
	return nil
}

// everything says that no cluster is left out.
func (s *selection) everything() bool { return len(s.names) == 0 && s.selector == "" }

// clusters are the names of the clusters that are meant, sorted. Where that is by name they have to be there, as far as the user may see.
func (s *selection) clusters(ctx context.Context, c client.Reader) ([]string, error) {
	if len(s.names) > 0 {
		names := slices.Compact(slices.Sorted(slices.Values(s.names)))
		there, err := gatherClusters(ctx, c, "", labels.Everything())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			there.cluster = name
			if err := there.missing(); err != nil {
				return nil, err
			}
		}
		return names, nil
	}
	found, err := gatherClusters(ctx, c, "", s.labels)
	switch {
	case err != nil:
		return nil, err
	case found.unreadable:
		return nil, fmt.Errorf("which managed clusters there are cannot be read: the hub has no ManagedClusters, or you may not list them; " +
			"name the clusters by --cluster")
	case len(found.names) == 0 && s.selector != "":
		return nil, fmt.Errorf("no managed cluster has labels %s: see 'kubectl get managedclusters --show-labels'", s.selector)
	case len(found.names) == 0:
		return nil, fmt.Errorf("there is no managed cluster yet: see 'kubectl get managedclusters'")
	}
	return found.names, nil
}
