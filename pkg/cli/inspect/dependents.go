package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// DependentsOptions holds the arguments and flags of the command.
type DependentsOptions struct {
	*hubclient.Factory
	addOn  string
	output *terminal.Output
}

// NewCmdDependents returns the command. If runF is set, it replaces runDependents.
func NewCmdDependents(f *hubclient.Factory, runF func(context.Context, *DependentsOptions) error) *cobra.Command {
	o := &DependentsOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide, terminal.FormatName)}
	if runF == nil {
		runF = runDependents
	}
	cmd := &cobra.Command{
		Use:   "dependents ADDON",
		Short: "Show the add-ons that depend on an add-on, and their clusters",
		Long: "Show the add-ons that depend on an add-on, directly or through others, with the clusters they are on. EFFECT is what\n" +
			"happens to them if the add-on becomes unavailable.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon dependents zookeeper\n" +
			"  kubectl addon dependents zookeeper -o json",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: add-ons of all clusters are shown")
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	return cmd
}

func runDependents(ctx context.Context, o *DependentsOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	view, err := gatherDependents(ctx, c, o.addOn)
	if err != nil {
		return hubclient.Advise(err, "")
	}
	data := dependentsOf(view)
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(o.output.Format == terminal.FormatWide), Data: data, Names: data.names()})
}

// gatherDependents reads the dependents of addOn and their clusters. If addOn is unknown, the error lists the existing add-ons.
func gatherDependents(ctx context.Context, c client.Reader, addOn string) (dependentsView, error) {
	view := dependentsView{addOn: addOn}
	definitions, err := hubclient.GatherDefinitions(ctx, c)
	if err != nil {
		return view, err
	}
	needs := make(map[string][]addonv1alpha1.AddonDependency, len(definitions))
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		needs[name] = definitions[name].Needs
		if problem := definitions[name].Malformed; problem != nil {
			view.malformed = append(view.malformed, problem)
		}
	}
	view.direct = dependency.Direct(needs)
	if _, defined := definitions[addOn]; !defined && len(view.direct[addOn]) == 0 {
		return view, fmt.Errorf("ClusterManagementAddOn %q not found, and no other one depends on it; ClusterManagementAddOns: %s",
			addOn, terminal.Listed(slices.Sorted(maps.Keys(definitions))))
	}
	asked := map[string]bool{addOn: true}
	for _, d := range dependency.Dependents(addOn, view.direct, func(string) bool { return true }) {
		asked[d.Name] = true
	}
	if len(asked) > 1 {
		view.there, err = gatherPlaces(ctx, c, asked)
	}
	return view, err
}

// gatherPlaces reads the clusters of the add-ons.
func gatherPlaces(ctx context.Context, c client.Reader, names map[string]bool) (map[string]map[string]bool, error) {
	there := map[string]map[string]bool{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	for {
		if err := c.List(ctx, page, client.Limit(hubclient.PageSize), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("listing the add-ons of all clusters: %w", err)
		}
		for i := range page.Items {
			cluster, name := page.Items[i].Namespace, page.Items[i].Name
			if !names[name] {
				continue
			}
			if there[cluster] == nil {
				there[cluster] = map[string]bool{}
			}
			there[cluster][name] = true
		}
		if page.Continue == "" {
			return there, nil
		}
	}
}
