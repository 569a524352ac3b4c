package cli

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/releases"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// completionTimeout is the timeout for the hub during completion. Completion fails silently after it.
const completionTimeout = 2 * time.Second

// words holds the words already typed: the arguments, and the values of the flags for the cluster and the namespace of packages.
type words struct {
	args               []string
	cluster, namespace string
	// current is the namespace of the kubeconfig, if the flag does not name another one.
	current string
}

// choices returns the names on the hub that complete an argument.
type choices func(ctx context.Context, c client.Client, typed words) ([]string, error)

// argumentChoices maps argument names in a command's Use to choices. Other arguments are files.
var argumentChoices = map[string]choices{
	"NAME":    installedNames,
	"ADDON":   allOf(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn")),
	"PLAN":    planChoices,
	"PACKAGE": packageNames,
	"RELEASE": releaseNames,
	"FROM":    packageNames,
	"TO":      packageNames,
}

// flagChoices maps flags to the choices for their values.
var flagChoices = map[string]choices{
	"cluster":   allOf(read.ManagedClusterKind),
	"requires":  allOf(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn")),
	"optional":  allOf(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn")),
	"package":   packageNames,
	"namespace": allOf(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}),
}

// complete adds completion to a command and its subcommands, unless they define their own.
func complete(cmd *cobra.Command, f *hubclient.Factory) {
	for _, below := range cmd.Commands() {
		complete(below, f)
	}
	for name, found := range flagChoices {
		if _, known := cmd.GetFlagCompletionFunc(name); cmd.Flag(name) != nil && !known {
			utilruntime.Must(cmd.RegisterFlagCompletionFunc(name, completion(f, found)))
		}
	}
	arguments := argumentsOf(cmd)
	if cmd.ValidArgsFunction != nil || len(arguments) == 0 {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(arguments) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, onHub := argumentChoices[arguments[len(args)]]
		if !onHub || packages.IsPath(typed) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return completion(f, found)(cmd, args, typed)
	}
}

// argumentsOf returns the names of a command's arguments from its Use, in order.
func argumentsOf(cmd *cobra.Command) []string {
	var names []string
	for _, part := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(part, "-") {
			break
		}
		names = append(names, strings.Trim(part, "[]."))
	}
	return names
}

// completion completes with choices from the hub. In a comma-separated list it completes the last element.
func completion(f *hubclient.Factory, found choices) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		said := words{args: args, namespace: (&packages.Finder{Factory: f}).Namespace()}
		said.current, _, _ = f.Flags.ToRawKubeConfigLoader().Namespace()
		if cluster := cmd.Flag("cluster"); cluster != nil {
			said.cluster, _, _ = strings.Cut(strings.Trim(cluster.Value.String(), "[]"), ",")
		}
		before := typed[:strings.LastIndex(typed, ",")+1]
		var completions []cobra.Completion
		for _, name := range inTime(cmd.Context(), f, found, said) {
			if strings.HasPrefix(before+name, typed) {
				completions = append(completions, before+name)
			}
		}
		return completions, cobra.ShellCompDirectiveNoFileComp
	}
}

// inTime returns the sorted choices, or none if the hub does not respond in time.
func inTime(ctx context.Context, f *hubclient.Factory, found choices, said words) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	answer := make(chan []string, 1)
	go func() { // some calls of a client do not end with the context
		c, err := f.Hub()
		if err != nil {
			answer <- nil
			return
		}
		names, _ := found(ctx, c, said)
		slices.Sort(names)
		answer <- slices.Compact(names)
	}()
	select {
	case names := <-answer:
		return names
	case <-ctx.Done():
		return nil
	}
}

// allOf returns the names of all objects of a cluster-scoped kind.
func allOf(kind schema.GroupVersionKind) choices {
	return func(ctx context.Context, c client.Client, _ words) ([]string, error) {
		return read.NamesIn(ctx, c, "", kind)
	}
}

// installedNames returns the names of the Instances and add-ons of the cluster.
func installedNames(ctx context.Context, c client.Client, said words) ([]string, error) {
	if said.cluster == "" {
		return nil, nil
	}
	instances, err := read.NamesIn(ctx, c, said.cluster, kudo.GroupVersion.WithKind("Instance"))
	if err != nil {
		return nil, err
	}
	addOns, err := read.NamesIn(ctx, c, said.cluster, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))
	return append(instances, addOns...), err
}

// packageNames returns the names of the OperatorVersions.
func packageNames(ctx context.Context, c client.Client, said words) ([]string, error) {
	return read.NamesIn(ctx, c, said.namespace, kudo.GroupVersion.WithKind("OperatorVersion"))
}

// releaseNames returns the names of the releases of Helm in the namespace of the kubeconfig.
func releaseNames(ctx context.Context, c client.Client, said words) ([]string, error) {
	return releases.Names(ctx, c, said.current)
}

// planChoices returns the plans of the Instance named by the first argument.
func planChoices(ctx context.Context, c client.Client, said words) ([]string, error) {
	if said.cluster == "" || len(said.args) == 0 {
		return nil, nil
	}
	instance := &kudo.Instance{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: said.cluster, Name: said.args[0]}, instance); err != nil {
		return nil, err
	}
	view := read.View(ctx, c, instance)
	if view.Version == nil {
		return nil, view.Unreadable
	}
	return slices.Collect(maps.Keys(view.Version.Spec.Plans)), nil
}
