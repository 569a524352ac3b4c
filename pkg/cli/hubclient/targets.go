package hubclient

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// RequireClusters returns an error if the flags do not select clusters, or --namespace is set, of a command that can be about a single cluster.
func (s *Selection) RequireClusters(cmd *cobra.Command, of string) error {
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed clusters and their namespaces on the hub")
	}
	return s.Require(cmd, of)
}

// Single returns the only cluster that is selected by its name; empty if clusters are selected otherwise.
func (s *Selection) Single() string {
	if len(s.Names) == 1 {
		return s.Names[0]
	}
	return ""
}

// Targets selects the Instances or add-ons of a name on managed clusters.
type Targets struct {
	Selection
	Name string
	// Failed is set to select only Instances with a failed plan.
	Failed bool
}

// AddFailed adds --failed to a command.
func (t *Targets) AddFailed(cmd *cobra.Command, usage string) {
	cmd.Flags().BoolVar(&t.Failed, "failed", false, usage)
}

// CheckTargets returns an error if the flags do not select clusters. --failed alone selects all clusters.
func (t *Targets) CheckTargets(cmd *cobra.Command, of string) error {
	if t.Failed && t.IsAll() {
		t.all = true
	}
	return t.RequireClusters(cmd, of)
}

// Target is an Instance, or an add-on without an Instance, on a cluster.
type Target struct {
	client.ObjectKey
	// Instance is nil if it does not exist, or if the target was not read.
	Instance *kudo.Instance
}

// Read returns the Instance. If it does not exist, the error states why the add-on of that name has no Instance, or lists the existing names.
func (t Target) Read(ctx context.Context, c client.Reader) (*kudo.Instance, error) {
	if t.Instance != nil {
		return t.Instance, nil
	}
	return read.ReadInstance(ctx, c, t.ObjectKey)
}

// Find returns the targets, sorted by cluster. A single cluster that is selected by its name is not read. Clusters that have neither an
// Instance nor an add-on of the name are omitted, unless they were named; it returns an error if all are. hasFailed decides which Instances
// have a failed plan; if none has, there are no targets.
func (t *Targets) Find(ctx context.Context, h Hub, hasFailed func(*kudo.Instance) bool) ([]Target, error) {
	if cluster := t.Single(); cluster != "" && !t.Failed {
		return []Target{{ObjectKey: client.ObjectKey{Namespace: cluster, Name: t.Name}}}, nil
	}
	clusters, err := t.Clusters(ctx, h)
	if err != nil {
		return nil, err
	}
	found, err := t.read(ctx, h, clusters)
	if err != nil {
		return nil, err
	}
	var targets []Target
	for _, cluster := range clusters {
		target, exists := found[cluster]
		if !exists {
			target.ObjectKey = client.ObjectKey{Namespace: cluster, Name: t.Name}
		}
		if t.isMeant(target, exists, hasFailed) {
			targets = append(targets, target)
		}
	}
	if len(found)+len(targets) == 0 {
		return nil, fmt.Errorf("none of the %d selected clusters has an Instance or add-on %q", len(clusters), t.Name)
	}
	return targets, nil
}

// isMeant reports whether a target is selected. One that does not exist is selected if its cluster was named.
func (t *Targets) isMeant(target Target, exists bool, hasFailed func(*kudo.Instance) bool) bool {
	if t.Failed {
		return target.Instance != nil && hasFailed(target.Instance)
	}
	return exists || len(t.Names) > 0
}

// read reads the Instances and add-ons of the name on the clusters, by cluster.
func (t *Targets) read(ctx context.Context, h Hub, clusters []string) (map[string]Target, error) {
	found, meant := map[string]Target{}, clusterFilter(clusters)
	for _, namespace := range read.NamespacesOf(clusters) {
		options := []client.ListOption{client.InNamespace(namespace), client.MatchingFields{"metadata.name": t.Name}}
		var addOns addonv1alpha1.ManagedClusterAddOnList
		if err := h.List(ctx, &addOns, options...); err != nil {
			return nil, read.ListingProblem("add-ons", namespace, err)
		}
		for i := range addOns.Items {
			if key := client.ObjectKeyFromObject(&addOns.Items[i]); meant(key.Namespace) {
				found[key.Namespace] = Target{ObjectKey: key}
			}
		}
		var instances kudo.InstanceList
		if err := h.List(ctx, &instances, options...); err != nil && !meta.IsNoMatchError(err) {
			return nil, read.ListingProblem("Instances", namespace, err)
		}
		for i := range instances.Items {
			if key := client.ObjectKeyFromObject(&instances.Items[i]); meant(key.Namespace) {
				found[key.Namespace] = Target{ObjectKey: key, Instance: &instances.Items[i]}
			}
		}
	}
	return found, nil
}

// NoneFailedText returns the message that no selected Instance has a failed plan.
func (t *Targets) NoneFailedText(plan string) string {
	return fmt.Sprintf("%s of %s has failed on the selected clusters.\n", strings.TrimSpace("No plan "+plan), text.Word(t.Name))
}

// HasFailed reports whether the last plan of an Instance has failed, or another one that it owes, or whether it has returned to its former version.
func HasFailed(instance *kudo.Instance) bool {
	last := instance.Status.Execution
	return last != nil && instance.Status.PlanStatus[last.Plan].Status == kudo.FatalError ||
		instance.Status.Returned != nil || plan.ReachedState(instance.Status, nil).FailedOwed() != ""
}
