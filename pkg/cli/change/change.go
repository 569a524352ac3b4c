package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// changeOptions say what is to become of the Instances and add-ons of one name, where, and how to go about it.
type changeOptions struct {
	hubclient.Selection
	name  string
	given givenParameters
	// version chooses among the versions of an operator: by OperatorVersion, operatorVersion and appVersion; the highest where empty.
	version, appVersion string
	// decide is what the command makes of a cluster.
	decide  func(c *changing, ctx context.Context, cluster string) (change, error)
	dryRun  bool
	wait    bool
	timeout time.Duration
	output  *terminal.Output
}

// addFlags adds the flags that all commands have which change Instances.
func (o *changeOptions) addFlags(cmd *cobra.Command, of string) {
	o.Selection.AddFlags(cmd, of)
	o.given.addFlags(cmd)
	o.addDryRun(cmd)
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the plans have ended")
	terminal.TimeoutFlag(cmd, &o.timeout)
}

// addDryRun adds --dry-run, and how to print what it shows.
func (o *changeOptions) addDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "write nothing: show which plans would run, and what they would change")
	o.output = terminal.NewOutput(terminal.FormatWide)
	o.output.AddFlag(cmd)
}

// addVersionFlags adds the flags that choose a version.
func (o *changeOptions) addVersionFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.version, "operator-version", "", "version of the package, or name of the OperatorVersion; the highest if left out")
	cmd.Flags().StringVar(&o.version, "version", "", "the same as --operator-version")
	cmd.Flags().StringVar(&o.appVersion, "app-version", "", "version of what the package runs; the highest if left out")
}

// check refuses a command line that makes no sense.
func (o *changeOptions) check(cmd *cobra.Command, of string) error {
	if err := o.Require(cmd, of); err != nil {
		return err
	}
	switch changed := cmd.Flags().Changed; {
	case changed("output") && !o.dryRun:
		return terminal.Usagef(cmd, "--output goes with --dry-run")
	case changed("version") && changed("operator-version"):
		return terminal.Usagef(cmd, "--version and --operator-version are the same: leave one of them away")
	}
	return o.given.parse(cmd)
}

// changing is what there is to know before anything is changed.
type changing struct {
	changeOptions
	reader client.Reader
	fleet  map[string]hubclient.Cluster
	// instances are those of each cluster.
	instances map[string][]kudo.Instance
	// stored are the OperatorVersions of a namespace.
	stored func(namespace string) ([]kudo.OperatorVersion, error)
}

// errAbsent says that a cluster has nothing of the name.
var errAbsent = errors.New("absent")

func (o changeOptions) run(ctx context.Context, flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) error {
	h, err := hubclient.Connect(flags, streams.ErrOut)
	if err != nil {
		return err
	}
	return hubclient.Advise(changeAll(ctx, h, streams, o), strings.Join(o.Names, ","))
}

// changeAll makes the change on each of the clusters, or shows what it would be. What cannot be done on one of them holds up none of the
// others.
func changeAll(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, options changeOptions) error {
	clusters, err := options.Clusters(ctx, h)
	if err == nil {
		err = options.given.elsewhere(clusters)
	}
	if err != nil {
		return err
	}
	c, err := gatherChanging(ctx, h, clusters, options)
	if err != nil {
		return err
	}
	changes, refused, err := c.changes(ctx, clusters)
	if err != nil {
		return err
	}
	if options.dryRun {
		return showChanges(streams, options.output, changes, refused)
	}
	done, failed := writeChanges(ctx, h, streams, changes)
	faults := []error{refused.err(), failed}
	if options.wait && len(done) > 0 {
		faults = append(faults, awaitPlans(ctx, h, streams, done, options.timeout))
	}
	return errors.Join(faults...)
}

// gatherChanging reads the add-ons and Instances of the clusters.
func gatherChanging(ctx context.Context, c client.Client, clusters []string, options changeOptions) (*changing, error) {
	found := &changing{
		changeOptions: options, instances: map[string][]kudo.Instance{},
		reader: hubclient.Remembering(c, c),
		stored: onceEach(func(namespace string) ([]kudo.OperatorVersion, error) {
			return hubclient.StoredVersions(ctx, c, namespace)
		}),
	}
	var err error
	if _, found.fleet, err = hubclient.GatherFleet(ctx, c, clusters); err != nil {
		return nil, err
	}
	for _, namespace := range hubclient.NamespacesOf(clusters) {
		var list kudo.InstanceList
		if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the Instances of %s: %w", terminal.OnClusters(clusters), err)
		}
		for _, instance := range list.Items {
			found.instances[instance.Namespace] = append(found.instances[instance.Namespace], instance)
		}
	}
	return found, nil
}

// onceEach is of, which it asks once for each name; an error is asked for again.
func onceEach[T any](of func(name string) (T, error)) func(name string) (T, error) {
	known := map[string]T{}
	return func(name string) (T, error) {
		if found, asked := known[name]; asked {
			return found, nil
		}
		found, err := of(name)
		if err == nil {
			known[name] = found
		}
		return found, err
	}
}

// changes are what the command makes of the clusters. Those that have nothing of the name are left out, unless they were named. The
// error says that none has.
func (c *changing) changes(ctx context.Context, clusters []string) ([]change, refusals, error) {
	var changes []change
	refused := refusals{}
	for _, cluster := range clusters {
		found, err := c.decide(c, ctx, cluster)
		switch {
		case errors.Is(err, errAbsent) && len(c.Names) == 0:
		case errors.Is(err, errAbsent):
			refused[cluster] = c.lacks(cluster)
		case err != nil:
			refused[cluster] = err
		default:
			changes = append(changes, found)
		}
	}
	if len(changes) == 0 && len(refused) == 0 {
		return nil, nil, fmt.Errorf("none of the %d clusters has an Instance or add-on %q", len(clusters), c.name)
	}
	return changes, refused, nil
}

// lacks is the error for a cluster that has nothing of the name.
func (c *changing) lacks(cluster string) error {
	there := hubclient.Inventory{ManagedClusters: hubclient.ManagedClusters{Cluster: cluster, Unreadable: true}, AddOns: c.fleet[cluster].Installed()}
	for _, instance := range c.instances[cluster] {
		there.Instances = append(there.Instances, instance.Name)
	}
	slices.Sort(there.Instances)
	return there.Lacks(c.name)
}

// standing is the Instance of the name on a cluster; nil if there is none.
func (c *changing) standing(cluster string) *kudo.Instance {
	i := slices.IndexFunc(c.instances[cluster], func(i kudo.Instance) bool { return i.Name == c.name })
	if i < 0 {
		return nil
	}
	return &c.instances[cluster][i]
}

// versionAt is the OperatorVersion of that name; nil if there is none.
func (c *changing) versionAt(ctx context.Context, name client.ObjectKey) (*kudo.OperatorVersion, error) {
	version := &kudo.OperatorVersion{}
	err := c.reader.Get(ctx, name, version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %s: %w", name, err)
	}
	return version, nil
}

// startedVersion is the OperatorVersion that was last started for an Instance; nil if there is none any more.
func (c *changing) startedVersion(ctx context.Context, instance *kudo.Instance) (*kudo.OperatorVersion, error) {
	if instance == nil || instance.Status.Execution == nil {
		return nil, nil
	}
	started := instance.Status.Execution.OperatorVersion
	version, err := c.versionAt(ctx, client.ObjectKey{Namespace: started.Namespace, Name: started.Name})
	if err != nil || version == nil || version.UID != started.UID {
		return nil, err
	}
	return version, nil
}

// candidates are the OperatorVersions that the children of these may run: those that stand where their parents' do. They are read where
// one of these has children.
func (c *changing) candidates(namespace string, parents ...*kudo.OperatorVersion) []kudo.OperatorVersion {
	hasChildren := func(v *kudo.OperatorVersion) bool {
		return v != nil && slices.ContainsFunc(v.Spec.Tasks, tree.MakesChild)
	}
	if !slices.ContainsFunc(parents, hasChildren) {
		return nil
	}
	stored, err := c.stored(namespace)
	if err != nil {
		return nil // then the children are said to lack a version
	}
	return stored
}

// writeChanges writes the changes, and says which Instances are to be waited for.
func writeChanges(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, changes []change) ([]awaitedPlan, error) {
	var done []awaitedPlan
	texts, faults := make([]string, len(changes)), make([]error, len(changes))
	write := func(i int) { texts[i], faults[i] = changes[i].write(ctx, h) }
	atOnce(len(changes), write, func(i int) {
		if faults[i] == nil {
			faults[i] = printers.WriteEscaped(streams.Out, texts[i])
			done = append(done, changes[i].awaited())
		}
	})
	return done, errors.Join(faults...)
}

// write writes the change, and says what was done and what comes of it.
func (c *change) write(ctx context.Context, h client.Client) (string, error) {
	coming := c.comingText()
	if c.step != nil {
		text, err := c.step.carryOut(ctx, h)
		return text + coming, err
	}
	name, did := terminal.ObjectName(kudo.GroupVersion.Group, "Instance", c.After.Name), "configured"
	switch {
	case c.Before == nil:
		did = "created"
		if err := h.Create(ctx, c.After, client.FieldOwner(hubclient.FieldManager)); err != nil {
			return "", fmt.Errorf("making Instance %q of cluster %q: %w", c.After.Name, c.cluster, err)
		}
	case sameSpec(c.Before, c.After):
		did = "unchanged"
	default:
		stands := c.Before.DeepCopy()
		if err := request(ctx, h, stands, c.After.Spec); err != nil {
			return "", err
		}
		c.After = stands
	}
	return fmt.Sprintf("%s %s on %s\n", name, did, c.cluster) + coming, nil
}

// awaited is the Instance as it is waited for.
func (c *change) awaited() awaitedPlan {
	a := awaitedPlan{ObjectKey: client.ObjectKey{Namespace: c.cluster, Name: c.After.Name}, generation: c.After.Generation}
	if c.step != nil {
		a.wanted = c.After
		if stands := c.step.current; stands != nil {
			a.stood = hopeless("add-on", stands, stands.Status.Conditions)
		}
	}
	return a
}

func (o *changeOptions) addUnset(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.given.unset, "unset", nil, "parameters that are to have their defaults again, separated by commas")
}

// checkStanding refuses a command line that makes no sense for what stands, whose namespace is fixed.
func (o *changeOptions) checkStanding(cmd *cobra.Command, of string) error {
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace has no meaning here: --cluster names the managed cluster, and with it the namespace on the hub")
	}
	return o.check(cmd, of)
}

// checkNamespace refuses what no namespace on the managed clusters can be called.
func checkNamespace(cmd *cobra.Command, namespace string) error {
	if faults := validation.IsDNS1123Label(namespace); namespace != "" && len(faults) > 0 {
		return terminal.Usagef(cmd, "--namespace %q: %s", namespace, faults[0])
	}
	return nil
}
