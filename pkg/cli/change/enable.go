package change

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/kube/content"
)

// EnableOptions holds the arguments and flags of the command.
type EnableOptions struct {
	*hubclient.Factory
	hubclient.Selection
	addOn string
	change.Desired
	given givenParameters
	refusalFlags
	dryRunFlags
	terminal.WaitFlags
}

// NewCmdEnable returns the command. If runF is set, it replaces runEnable.
func NewCmdEnable(f *hubclient.Factory, runF func(context.Context, *EnableOptions) error) *cobra.Command {
	o := &EnableOptions{Factory: f}
	if runF == nil {
		runF = runEnable
	}
	const of = "should run the add-on"
	cmd := &cobra.Command{
		Use:   "enable ADDON --cluster CLUSTER[,CLUSTER]",
		Short: "Enable an add-on on managed clusters",
		Long: "Create the ManagedClusterAddOn of an add-on for managed clusters. Select the clusters with --cluster, --selector,\n" +
			"--placement or --all-clusters. Required add-ons that are missing on a cluster are reported, and with --with-dependencies\n" +
			"enabled too. The order does not matter: a plan-based add-on is installed once the add-ons that it requires are\n" +
			"available.\n\n" +
			"Parameters given with -p are stored in the AddOnDeploymentConfig ADDON-parameters in the cluster's namespace, and the\n" +
			"add-on refers to it; CLUSTER/NAME=VALUE sets one for a single cluster. If the add-on is already enabled, the given parameters change and all others stay the same. A config left\n" +
			"by an earlier installation is used only with -p; then all its parameters apply, unless --reset is set. The command names them.\n\n" +
			"If the add-on is being removed from a cluster, the command waits until it is gone, and enables it again. With\n" +
			"--with-dependencies the same applies to required add-ons.\n\n" + dryRunHelp,
		Example: "  kubectl addon enable kafka --cluster cluster1 --namespace data --with-dependencies --wait\n" +
			"  kubectl addon enable kafka --selector region=eu -p BROKERS=5 --dry-run\n" +
			"  kubectl addon enable kafka --cluster cluster1,cluster2 -p BROKERS=3 -p cluster2/BROKERS=5",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.checkFlags(cmd, of)
			if err != nil {
				return err
			}
			if err := o.given.parse(cmd); err != nil {
				return err
			}
			if o.Reset && o.given.none() {
				return terminal.Usagef(cmd, "--reset requires at least one parameter: use -p NAME=VALUE, or run 'kubectl addon update --reset'")
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	cmd.Flags().BoolVar(&o.WithDependencies, "with-dependencies", false, "Also enable required add-ons that are missing.")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "Namespace on the managed clusters to install the add-on into. "+
		"Defaults to the namespace that an AddOnDeploymentConfig of the add-on sets, else to open-cluster-management-agent-addon (OCM's default).")
	o.given.addFlags(cmd)
	cmd.Flags().BoolVar(&o.Reset, "reset", false, "Reset all parameters that -p does not set to their defaults, including those of an earlier installation.")
	o.addDryRun(cmd)
	o.addRefusal(cmd)
	o.AddWait(cmd, false, "Wait until all add-ons that the command enables are available.")
	return cmd
}

// checkFlags validates the flags.
func (o *EnableOptions) checkFlags(cmd *cobra.Command, of string) error {
	if err := o.Require(cmd, of); err != nil {
		return err
	}
	if err := checkNamespace(cmd, o.Namespace); err != nil {
		return err
	}
	return o.checkDryRun(cmd)
}

func runEnable(ctx context.Context, o *EnableOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(enable(ctx, h, o), strings.Join(o.Names, ","))
}

// enable creates the add-on on each of the clusters, and on those from which it is being removed once it is gone. A failure on one cluster
// does not affect the others.
func enable(ctx context.Context, h hubclient.Hub, o *EnableOptions) error {
	clusters, err := o.Clusters(ctx, h)
	if err == nil {
		err = o.given.elsewhere(clusters)
	}
	if err != nil {
		return err
	}
	definitions, fleet, err := read.Fleet(ctx, h, clusters)
	if err != nil {
		return err
	}
	if err := change.CheckDefined(definitions, o.addOn); err != nil {
		return change.ExplainUndefined(ctx, h, o.addOn, err)
	}
	if o.dryRun {
		return o.preview(o.decide(ctx, h, fleet, clusters))
	}
	first, err := o.enableOn(ctx, h, fleet, clusters, o.IOStreams)
	again := func(ctx context.Context, clusters []string, streams genericiooptions.IOStreams) (enabled, error) {
		_, fleet, err := read.Fleet(ctx, h, clusters)
		if err != nil {
			return enabled{}, err
		}
		return o.enableOn(ctx, h, fleet, clusters, streams)
	}
	w := enableWait{addOn: o.addOn, available: o.Wait, enable: again}
	return errors.Join(err, w.await(ctx, h, o.IOStreams, o.Timeout, first))
}

// enabling is what enables the add-on on a cluster once the removals are complete, or why it is refused.
type enabling struct {
	cluster  string
	removals []*addonv1alpha1.ManagedClusterAddOn
	change.EnableResult
	refused error
}

// desiredOn returns the desired state of the add-on on a cluster.
func (o *EnableOptions) desiredOn(cluster string) change.Desired {
	desired := o.Desired
	desired.Parameters = o.given.of(cluster)
	return desired
}

// decide returns what enables the add-on on each of the clusters. It is refused where a plan would fail, unless that is forced or only shown.
func (o *EnableOptions) decide(ctx context.Context, h hubclient.Hub, fleet map[string]fleet.Cluster, clusters []string) []enabling {
	reader := change.NewReader(ctx, read.NewCachingReader(content.NewFillingReader(h)))
	var all []enabling
	for _, cluster := range clusters {
		e := change.EnableRequest{View: fleet[cluster], AddOn: o.addOn, Desired: o.desiredOn(cluster)}
		next := enabling{cluster: cluster, removals: e.Removals()}
		next.EnableResult, next.refused = e.After(next.removals).Decide(ctx, reader)
		for i := range next.Changes {
			if next.refused == nil {
				next.refused = o.refuse(&next.Changes[i], o.dryRun)
			}
		}
		all = append(all, next)
	}
	o.check(ctx, h, all)
	return all
}

// check refuses what the hub would refuse, before anything is written. An add-on that is being removed is checked once it is gone.
func (o *EnableOptions) check(ctx context.Context, h hubclient.Hub, all []enabling) {
	changes := make([][]change.Change, len(all))
	for i := range all {
		if all[i].refused == nil && len(all[i].removals) == 0 {
			changes[i] = all[i].Changes
		}
	}
	for i, problem := range checkAll(ctx, h, changes, o.dryRun) {
		switch {
		case problem == nil:
		case o.dryRun && change.IsForbidden(problem):
			all[i].Remarks = append(all[i].Remarks, forbiddenText)
		default:
			all[i].refused = problem
		}
	}
}

// hints returns the warnings that the hub does not return; none if the change is refused, which has its own message.
func (e enabling) hints() []string {
	if e.refused != nil {
		return nil
	}
	var hints []string
	if e.Waiting != "" {
		hints = append(hints, e.Waiting+"; enable missing ones with --with-dependencies")
	}
	hints = append(hints, e.Remarks...)
	for _, removed := range e.removals {
		hints = append(hints, removed.Name+" is being removed, and is enabled again once it is gone")
	}
	return hints
}

// preview prints the changes of the add-ons. The hints are about the last one of a cluster, which is the requested one.
func (o *EnableOptions) preview(all []enabling) error {
	var changes []change.Change
	refused := change.Refusals{}
	for _, e := range all {
		if e.refused != nil {
			refused[e.cluster] = e.refused
			continue
		}
		for i, c := range e.Changes {
			c.Remarks = nil
			if i == len(e.Changes)-1 {
				c.Remarks = e.hints()
			}
			changes = append(changes, c)
		}
	}
	return showChanges(o.IOStreams, o.output, changes, refused)
}

// enableOn enables the add-on on each of the clusters, unless it is being removed.
func (o *EnableOptions) enableOn(
	ctx context.Context, h hubclient.Hub, fleet map[string]fleet.Cluster, clusters []string, streams genericiooptions.IOStreams,
) (enabled, error) {
	hints := terminal.ClusterTexts{}
	var steps []change.Step
	var result enabled
	refused := change.Refusals{}
	for _, e := range o.decide(ctx, h, fleet, clusters) {
		for _, hint := range e.hints() {
			hints.Add(e.cluster, hint)
		}
		switch {
		case e.refused != nil:
			refused[e.cluster] = e.refused
		case len(e.removals) > 0:
			for _, removed := range e.removals {
				result.going = append(result.going, installed{ObjectKey: client.ObjectKeyFromObject(removed), AddOn: removed})
			}
		default:
			steps = append(steps, e.Steps()...)
		}
	}
	if err := terminal.Warn(streams.ErrOut, hints.Texts()...); err != nil {
		return enabled{}, err
	}
	var err error
	result.done, err = carryOut(ctx, h, streams.Out, steps)
	return result, errors.Join(refused.Err(), err)
}

// carryOut writes the steps of each cluster in order and returns the completed steps. A failure stops the remaining steps of the same
// cluster only.
func carryOut(ctx context.Context, c client.Client, out io.Writer, steps []change.Step) ([]change.Step, error) {
	byCluster := map[string][]change.Step{}
	for _, s := range steps {
		byCluster[s.Wanted.Namespace] = append(byCluster[s.Wanted.Namespace], s)
	}
	clusters := slices.Sorted(maps.Keys(byCluster))
	texts, problems, finished := make([]string, len(clusters)), make([]error, len(clusters)), make([]int, len(clusters))
	write := func(i int) {
		for _, s := range byCluster[clusters[i]] {
			written, err := s.Write(ctx, requester(c))
			if texts[i] += writtenText(written); err != nil {
				problems[i] = err
				return
			}
			finished[i]++
		}
	}
	var done []change.Step
	atOnce(len(clusters), write, func(i int) {
		problems[i] = errors.Join(printers.WriteEscaped(out, texts[i]), problems[i])
		done = append(done, byCluster[clusters[i]][:finished[i]]...)
	})
	return done, errors.Join(problems...)
}
