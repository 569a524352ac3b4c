package cli

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/releases"
	"github.com/tandem-addons/tandem/pkg/console/change"
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
	"VERSION": versionArguments,
	"FROM":    packageNames,
	"TO":      packageNames,
}

// flagChoices maps flags to the choices for their values.
var flagChoices = map[string]choices{
	"cluster":          allOf(read.ManagedClusterKind),
	"requires":         allOf(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn")),
	"optional":         allOf(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn")),
	"package":          packageNames,
	"namespace":        allOf(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}),
	"operator-version": versionChoices,
	"to":               revisionChoices,
}

// complete adds completion to a command and its subcommands, unless they define their own.
func complete(cmd *cobra.Command, f *hubclient.Factory) {
	for _, below := range cmd.Commands() {
		complete(below, f)
	}
	completeFlags(cmd, f)
	if arguments := argumentsOf(cmd); cmd.ValidArgsFunction == nil && len(arguments) > 0 {
		cmd.ValidArgsFunction = argumentCompletion(f, arguments)
	}
}

// completeFlags adds completion to the flags of a command, unless they have their own.
func completeFlags(cmd *cobra.Command, f *hubclient.Factory) {
	completions := map[string]cobra.CompletionFunc{"parameter": parameterCompletion(f)}
	for name, found := range flagChoices {
		completions[name] = completion(f, found)
	}
	if cmd.Flag("operator-version") != nil { // otherwise it is the version of a chart
		completions["version"] = completion(f, versionChoices)
	}
	if !cmd.HasParent() {
		completions["context"] = contextCompletion(f)
	}
	completions["cluster-context"] = managedContextCompletion(f)
	for name, complete := range completions {
		if _, known := cmd.GetFlagCompletionFunc(name); cmd.Flag(name) != nil && !known {
			utilruntime.Must(cmd.RegisterFlagCompletionFunc(name, complete))
		}
	}
}

// argumentCompletion completes the arguments of those names. The last one may be given several times if the command's Use has an ellipsis.
func argumentCompletion(f *hubclient.Factory, arguments []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		last := len(arguments) - 1
		if len(args) > last && !strings.Contains(cmd.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, onHub := argumentChoices[arguments[min(len(args), last)]]
		if !onHub || bundle.IsPath(typed) {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return completion(f, found)(cmd, args, typed)
	}
}

// argumentsOf returns the names of a command's arguments from its Use, in order.
func argumentsOf(cmd *cobra.Command) []string {
	var names []string
	for _, part := range strings.Fields(cmd.Use)[1:] {
		name := strings.Trim(part, "[].")
		if strings.HasPrefix(name, "-") {
			break
		}
		names = append(names, name)
	}
	return names
}

// wordsOf returns the words already typed.
func wordsOf(f *hubclient.Factory, cmd *cobra.Command, args []string) words {
	said := words{args: args, namespace: (&packages.Finder{Factory: f}).Namespace()}
	said.current, _, _ = f.Flags.ToRawKubeConfigLoader().Namespace()
	if cluster := cmd.Flag("cluster"); cluster != nil {
		said.cluster, _, _ = strings.Cut(strings.Trim(cluster.Value.String(), "[]"), ",")
	}
	return said
}

// parameterCompletion completes -p with names of parameters: NAME=, or CLUSTER/NAME= after a cluster.
func parameterCompletion(f *hubclient.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		if strings.Contains(typed, "=") {
			return nil, directive
		}
		before := typed[:strings.LastIndex(typed, "/")+1]
		var completions []cobra.Completion
		for _, name := range inTime(cmd.Context(), f, parameterChoices, wordsOf(f, cmd, args)) {
			if strings.HasPrefix(before+name, typed) {
				completions = append(completions, before+name+"=")
			}
		}
		return completions, directive
	}
}

// contextCompletion completes the contexts of the kubeconfig.
func contextCompletion(f *hubclient.Factory) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		config, err := f.Flags.ToRawKubeConfigLoader().RawConfig()
		return contextsOf(config, err, typed)
	}
}

// managedContextCompletion completes the contexts of the kubeconfig of the managed cluster.
func managedContextCompletion(f *hubclient.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		own := cmd.Flag("cluster-kubeconfig")
		if own == nil || own.Value.String() == "" {
			return contextCompletion(f)(cmd, args, typed)
		}
		config, err := clientcmd.LoadFromFile(own.Value.String())
		return contextsOf(ptr.Deref(config, clientcmdapi.Config{}), err, typed)
	}
}

// contextsOf returns the contexts of a kubeconfig that begin with what was typed; none if it could not be read.
func contextsOf(config clientcmdapi.Config, err error, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(config.Contexts)), func(name string) bool {
		return !strings.HasPrefix(name, typed)
	}), cobra.ShellCompDirectiveNoFileComp
}

// completion completes with choices from the hub. In a comma-separated list it completes the last element.
func completion(f *hubclient.Factory, found choices) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var completions []cobra.Completion
		for _, name := range inTime(cmd.Context(), f, found, wordsOf(f, cmd, args)) {
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
	version, err := versionInUse(ctx, c, said)
	if err != nil || version == nil {
		return nil, err
	}
	return slices.Collect(maps.Keys(version.Spec.Plans)), nil
}

// parameterChoices returns the parameters of the Instance, add-on or operator named by the first argument.
func parameterChoices(ctx context.Context, c client.Client, said words) ([]string, error) {
	version, err := versionInUse(ctx, c, said)
	if err != nil || version == nil {
		return nil, err
	}
	var names []string
	for _, parameter := range version.Spec.Parameters {
		names = append(names, parameter.Name)
	}
	return names, nil
}

// versionArguments returns the versions of the operator named by the first argument. As a first argument itself, it is one of Kubernetes.
func versionArguments(ctx context.Context, c client.Client, said words) ([]string, error) {
	if len(said.args) == 0 {
		return read.KubernetesVersions(ctx, c)
	}
	return versionChoices(ctx, c, said)
}

// versionChoices returns the versions of the operator of the Instance or add-on, or of the operator, named by the first argument.
func versionChoices(ctx context.Context, c client.Client, said words) ([]string, error) {
	runs, err := versionInUse(ctx, c, said)
	if err != nil || runs == nil {
		return nil, err
	}
	stored, err := read.StoredVersions(ctx, c, runs.Namespace)
	var names []string
	for _, version := range stored {
		if version.OperatorName() == runs.OperatorName() {
			names = append(names, version.Spec.Version)
		}
	}
	return names, err
}

// versionInUse returns the OperatorVersion that the first argument selects: that of an Instance on the cluster, the default of an add-on, or one
// of an operator. It is nil if there is none.
func versionInUse(ctx context.Context, c client.Client, said words) (*kudo.OperatorVersion, error) {
	if len(said.args) == 0 {
		return nil, nil
	}
	name, instance := said.args[0], &kudo.Instance{}
	if said.cluster != "" && c.Get(ctx, client.ObjectKey{Namespace: said.cluster, Name: name}, instance) == nil {
		view := read.View(ctx, c, instance)
		return view.Version, view.Unreadable
	}
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	if c.Get(ctx, client.ObjectKey{Name: name}, definition) == nil {
		version := &kudo.OperatorVersion{}
		return version, c.Get(ctx, change.DefaultVersion(definition), version)
	}
	stored, err := read.StoredVersions(ctx, c, said.namespace)
	for i := range stored {
		if stored[i].OperatorName() == name || stored[i].Name == name {
			return &stored[i], nil
		}
	}
	return nil, err
}

// revisionChoices returns the numbers of the revisions of the Instance named by the first argument.
func revisionChoices(ctx context.Context, c client.Client, said words) ([]string, error) {
	if said.cluster == "" || len(said.args) == 0 {
		return nil, nil
	}
	instance, err := read.ReadInstance(ctx, c, client.ObjectKey{Namespace: said.cluster, Name: said.args[0]})
	if err != nil {
		return nil, err
	}
	var numbers []string
	for _, entry := range instance.Status.History {
		numbers = append(numbers, strconv.FormatInt(entry.Revision, 10))
	}
	return numbers, nil
}
