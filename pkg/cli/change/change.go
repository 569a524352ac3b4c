package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/kube/content"
)

// changeOptions selects the Instances and add-ons to change, the change, and how to apply it.
type changeOptions struct {
	*hubclient.Factory
	hubclient.Selection
	name  string
	given givenParameters
	// choice selects the version of the operator.
	choice change.Choice
	refusalFlags
	dryRunFlags
	terminal.WaitFlags
}

// addFlags adds the flags shared by all commands that change Instances.
func (o *changeOptions) addFlags(cmd *cobra.Command, of string) {
	o.Selection.AddFlags(cmd, of)
	o.given.addFlags(cmd)
	o.addDryRun(cmd)
	o.addRefusal(cmd)
	o.AddWait(cmd, false, "Wait until the plans have ended.")
}

// addVersionFlags adds the flags that select a version.
func (o *changeOptions) addVersionFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.choice.Version, "operator-version", "",
		"Version of the package, or name of the OperatorVersion. Defaults to the highest version.")
	cmd.Flags().StringVar(&o.choice.Version, "version", "", "Alias of --operator-version.")
	cmd.Flags().StringVar(&o.choice.AppVersion, "app-version", "",
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

// decider returns the change that a command makes on a cluster.
type decider func(ctx context.Context, state *change.State, cluster string) (change.Change, error)

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
	state, err := change.Gather(ctx, read.NewCachingReader(content.NewFillingReader(h)), clusters)
	if err != nil {
		return err
	}
	changes, refused, err := o.changes(ctx, state, clusters, decide)
	if err != nil {
		return err
	}
	changes = o.accepted(ctx, h, changes, refused)
	if o.dryRun {
		return showChanges(o.IOStreams, o.output, changes, refused)
	}
	if err := warnOf(o.ErrOut, changes); err != nil {
		return err
	}
	done, failed := writeChanges(ctx, h, o.IOStreams, changes)
	problems := []error{refused.Err(), failed}
	if o.Wait && len(done) > 0 {
		problems = append(problems, awaitPlans(ctx, h, o.IOStreams, done, o.Timeout))
	}
	return errors.Join(problems...)
}

// warnOf prints the warnings that the hub does not return when the changes are written.
func warnOf(out io.Writer, changes []change.Change) error {
	hints := terminal.ClusterTexts{}
	for _, c := range changes {
		for _, remark := range c.Remarks {
			hints.Add(c.Cluster, remark)
		}
	}
	return terminal.Warn(out, hints.Texts()...)
}

// changes returns the changes on the clusters, and those that are refused. Clusters without an object of the name are omitted, unless they
// were named explicitly. It returns an error if no cluster has one.
func (o *changeOptions) changes(
	ctx context.Context, state *change.State, clusters []string, decide decider,
) ([]change.Change, change.Refusals, error) {
	var changes []change.Change
	refused := change.Refusals{}
	for _, cluster := range clusters {
		found, err := decide(ctx, state, cluster)
		if err == nil {
			err = o.refuse(&found, o.dryRun)
		}
		switch {
		case errors.Is(err, change.ErrAbsent) && len(o.Names) == 0:
		case errors.Is(err, change.ErrAbsent):
			refused[cluster] = state.NotFoundError(client.ObjectKey{Namespace: cluster, Name: o.name})
		case err != nil:
			refused[cluster] = err
		default:
			changes = append(changes, found)
		}
	}
	if len(changes) == 0 && len(refused) == 0 {
		return nil, nil, fmt.Errorf("none of the %d selected clusters has an Instance or add-on %q", len(clusters), o.name)
	}
	return changes, refused, nil
}

// accepted returns the changes that the hub does not refuse, and adds the others to refused, before anything is written.
func (o *changeOptions) accepted(ctx context.Context, h hubclient.Hub, changes []change.Change, refused change.Refusals) []change.Change {
	each := make([][]change.Change, len(changes))
	for i := range changes {
		each[i] = changes[i : i+1]
	}
	var accepted []change.Change
	for i, problem := range checkAll(ctx, h, each, o.dryRun) {
		c := changes[i]
		switch {
		case problem == nil:
		case o.dryRun && change.IsForbidden(problem):
			c.Remarks = append(c.Remarks, forbiddenText)
		default:
			refused[c.Cluster] = problem
			continue
		}
		accepted = append(accepted, c)
	}
	return accepted
}

// edit returns the change of the existing object on a cluster.
func (o *changeOptions) edit(ctx context.Context, state *change.State, cluster string, upgrade bool) (change.Change, error) {
	return state.Edit(ctx, change.Edit{
		ObjectKey: client.ObjectKey{Namespace: cluster, Name: o.name}, Parameters: o.given.of(cluster), Unset: o.given.unset, Reset: o.given.reset,
		Upgrade: upgrade, Choice: o.choice,
	})
}

// writeChanges writes the changes and returns the Instances to wait for.
func writeChanges(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, changes []change.Change) ([]awaitedPlan, error) {
	var done []awaitedPlan
	texts, problems := make([]string, len(changes)), make([]error, len(changes))
	write := func(i int) { texts[i], problems[i] = write(ctx, h, &changes[i]) }
	atOnce(len(changes), write, func(i int) {
		if problems[i] == nil {
			done = append(done, awaitedPlanOf(&changes[i]))
		}
		problems[i] = errors.Join(printers.WriteEscaped(streams.Out, texts[i]), problems[i])
	})
	return done, errors.Join(problems...)
}

// write writes the change and returns a message that states what was written and the resulting plans. If it fails, the message states what
// was written before.
func write(ctx context.Context, h client.Client, c *change.Change) (string, error) {
	coming := comingText(c)
	written, err := c.Write(ctx, requester(h), change.Request)
	if err != nil {
		return writtenText(written), err
	}
	return writtenText(written) + coming, nil
}

// writtenText returns a line for each written object.
func writtenText(written []change.Written) string {
	var b strings.Builder
	for _, w := range written {
		fmt.Fprintln(&b, w)
	}
	return b.String()
}

// awaitedPlanOf returns the wait for the plans of the Instance.
func awaitedPlanOf(c *change.Change) awaitedPlan {
	a := awaitedPlan{ObjectKey: client.ObjectKey{Namespace: c.Cluster, Name: c.After.Name}, generation: c.After.Generation}
	if c.Step != nil {
		a.wanted, a.before, a.problemBefore = c.After, c.Step.Current, problemBefore(c.Step.Current)
	}
	return a
}

func (o *changeOptions) addUnset(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.given.unset, "unset", nil, "Comma-separated names of parameters to reset to their defaults.")
	cmd.Flags().BoolVar(&o.given.reset, "reset", false, "Reset all parameters that are not given to their defaults.")
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
	if problem := change.NamespaceProblem(namespace); problem != "" {
		return terminal.Usagef(cmd, "invalid argument %q for \"--namespace\" flag: %s", namespace, problem)
	}
	return nil
}
