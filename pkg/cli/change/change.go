package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/fleet"
	"github.com/tandem-addons/tandem/pkg/survey"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// changeOptions selects the Instances and add-ons to change, the change, and how to apply it.
type changeOptions struct {
	*hubclient.Factory
	hubclient.Selection
	name  string
	given givenParameters
	// version selects a version of an operator by OperatorVersion, operatorVersion or appVersion; the highest version if empty.
	version, appVersion string
	dryRunFlags
	terminal.WaitFlags
}

// addFlags adds the flags shared by all commands that change Instances.
func (o *changeOptions) addFlags(cmd *cobra.Command, of string) {
	o.Selection.AddFlags(cmd, of)
	o.given.addFlags(cmd)
	o.addDryRun(cmd)
	o.AddWait(cmd, false, "Wait until the plans have ended.")
}

// addVersionFlags adds the flags that select a version.
func (o *changeOptions) addVersionFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.version, "operator-version", "",
		"Version of the package, or name of the OperatorVersion. Defaults to the highest version.")
	cmd.Flags().StringVar(&o.version, "version", "", "Alias of --operator-version.")
	cmd.Flags().StringVar(&o.appVersion, "app-version", "",
		"Version of the application that the package runs. Defaults to the highest version.")
}

// check validates the flags.
func (o *changeOptions) check(cmd *cobra.Command, of string) error {
	if err := o.Require(cmd, of); err != nil {
		return err
	}
	if err := o.checkDryRun(cmd); err != nil {
		return err
	}
	if changed := cmd.Flags().Changed; changed("version") && changed("operator-version") {
		return terminal.Usagef(cmd, "--version is an alias of --operator-version: use only one of them")
	}
	return o.given.parse(cmd)
}

// changing holds the state that is read before a change.
type changing struct {
	*changeOptions
	reader hubReader
	fleet  map[string]fleet.Cluster
	// instances lists the Instances by cluster.
	instances map[string][]kudo.Instance
	// stored returns the OperatorVersions of a namespace.
	stored func(namespace string) ([]kudo.OperatorVersion, error)
}

// errAbsent is returned for a cluster that has no object of the name.
var errAbsent = errors.New("absent")

// decider returns the change that a command makes on a cluster.
type decider func(ctx context.Context, c *changing, cluster string) (change, error)

// run applies the change that decide returns to each of the clusters.
func (o *changeOptions) run(ctx context.Context, decide decider) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(changeAll(ctx, h, o, decide), strings.Join(o.Names, ","))
}

// changeAll applies the change to each of the clusters, or shows it. A failure on one cluster does not affect the others.
func changeAll(ctx context.Context, h hubclient.Hub, o *changeOptions, decide decider) error {
	clusters, err := o.Clusters(ctx, h)
	if err == nil {
		err = o.given.elsewhere(clusters)
	}
	if err != nil {
		return err
	}
	c, err := gatherChanging(ctx, h, clusters, o)
	if err != nil {
		return err
	}
	changes, refused, err := c.changes(ctx, clusters, decide)
	if err != nil {
		return err
	}
	if o.dryRun {
		return showChanges(o.IOStreams, o.output, changes, refused)
	}
	done, failed := writeChanges(ctx, h, o.IOStreams, changes)
	problems := []error{refused.err(), failed}
	if o.Wait && len(done) > 0 {
		problems = append(problems, awaitPlans(ctx, h, o.IOStreams, done, o.Timeout))
	}
	return errors.Join(problems...)
}

// gatherChanging reads the add-ons and Instances of the clusters.
func gatherChanging(ctx context.Context, c client.Client, clusters []string, options *changeOptions) (*changing, error) {
	found := &changing{
		changeOptions: options, instances: map[string][]kudo.Instance{},
		reader: newReader(ctx, c),
		stored: onceEach(func(namespace string) ([]kudo.OperatorVersion, error) {
			return survey.StoredVersions(ctx, c, namespace)
		}),
	}
	var err error
	if _, found.fleet, err = survey.Fleet(ctx, c, clusters); err != nil {
		return nil, err
	}
	for _, namespace := range survey.NamespacesOf(clusters) {
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

// onceEach returns a function that caches the results of a function by name. Errors are not cached.
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

// changes returns the changes on the clusters. Clusters without an object of the name are omitted, unless they were named explicitly. It
// returns an error if no cluster has one.
func (c *changing) changes(ctx context.Context, clusters []string, decide decider) ([]change, refusals, error) {
	var changes []change
	refused := refusals{}
	for _, cluster := range clusters {
		found, err := decide(ctx, c, cluster)
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
		return nil, nil, fmt.Errorf("none of the %d selected clusters has an Instance or add-on %q", len(clusters), c.name)
	}
	return changes, refused, nil
}

// lacks returns the error for a cluster that has no object of the name.
func (c *changing) lacks(cluster string) error {
	there := survey.Inventory{ManagedClusters: survey.ManagedClusters{Cluster: cluster, Unreadable: true}, AddOns: c.fleet[cluster].Installed()}
	for _, instance := range c.instances[cluster] {
		there.Instances = append(there.Instances, instance.Name)
	}
	slices.Sort(there.Instances)
	return there.Lacks(c.name)
}

// existing returns the existing Instance of the name on a cluster, or nil.
func (c *changing) existing(cluster string) *kudo.Instance {
	i := slices.IndexFunc(c.instances[cluster], func(i kudo.Instance) bool { return i.Name == c.name })
	if i < 0 {
		return nil
	}
	return &c.instances[cluster][i]
}

// versionAt returns the OperatorVersion of that name, or nil.
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

// startedVersion returns the OperatorVersion that was last started for an Instance, or nil if it no longer exists.
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

// candidates returns the OperatorVersions that child Instances of the parents may run: the ones in the namespace of the parents. They are
// read only if one of the parents has children.
func (c *changing) candidates(namespace string, parents ...*kudo.OperatorVersion) ([]kudo.OperatorVersion, error) {
	hasChildren := func(v *kudo.OperatorVersion) bool {
		return v != nil && slices.ContainsFunc(v.Spec.Tasks, tree.MakesChild)
	}
	if !slices.ContainsFunc(parents, hasChildren) {
		return nil, nil
	}
	return c.stored(namespace)
}

// writeChanges writes the changes and returns the Instances to wait for.
func writeChanges(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, changes []change) ([]awaitedPlan, error) {
	var done []awaitedPlan
	texts, problems := make([]string, len(changes)), make([]error, len(changes))
	write := func(i int) { texts[i], problems[i] = changes[i].write(ctx, h) }
	atOnce(len(changes), write, func(i int) {
		if problems[i] == nil {
			done = append(done, changes[i].awaited())
		}
		problems[i] = errors.Join(printers.WriteEscaped(streams.Out, texts[i]), problems[i])
	})
	return done, errors.Join(problems...)
}

// write writes the change and returns a message that states what was written and the resulting plans. If it fails, the message states what
// was written before.
func (c *change) write(ctx context.Context, h client.Client) (string, error) {
	coming := c.comingText()
	if c.step != nil {
		text, err := c.step.carryOut(ctx, h)
		if err != nil {
			return text, err
		}
		return text + coming, nil
	}
	name, did := terminal.ObjectName(kudo.GroupVersion.Group, "Instance", c.After.Name), "configured"
	switch {
	case c.Before == nil:
		did = "created"
		if err := h.Create(ctx, c.After, client.FieldOwner(hubclient.FieldManager)); err != nil {
			return "", fmt.Errorf("creating Instance %q of cluster %q: %w", c.After.Name, c.cluster, err)
		}
	case sameSpec(c.Before, c.After):
		did = "unchanged"
	default:
		current := c.Before.DeepCopy()
		if err := action.Request(ctx, requester(h), current, c.After.Spec); err != nil {
			return "", err
		}
		c.After = current
	}
	return fmt.Sprintf("%s %s on %s\n", name, did, c.cluster) + coming, nil
}

// awaited returns the wait for the plans of the Instance.
func (c *change) awaited() awaitedPlan {
	a := awaitedPlan{ObjectKey: client.ObjectKey{Namespace: c.cluster, Name: c.After.Name}, generation: c.After.Generation}
	if c.step != nil {
		a.wanted, a.stood = c.After, problemBefore(c.step.current)
	}
	return a
}

func (o *changeOptions) addUnset(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.given.unset, "unset", nil, "Comma-separated names of parameters to reset to their defaults.")
}

// checkExisting rejects flags that do not apply to an existing Instance, because its namespace is fixed.
func (o *changeOptions) checkExisting(cmd *cobra.Command, of string) error {
	if err := refuseNamespace(cmd); err != nil {
		return err
	}
	return o.check(cmd, of)
}

// checkNamespace rejects names that are not valid for a namespace on the managed clusters.
func checkNamespace(cmd *cobra.Command, namespace string) error {
	if problems := validation.IsDNS1123Label(namespace); namespace != "" && len(problems) > 0 {
		return terminal.Usagef(cmd, "invalid argument %q for \"--namespace\" flag: %s", namespace, problems[0])
	}
	return nil
}
