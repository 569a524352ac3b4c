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

	"github.com/tandem-addons/tandem/pkg/action"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/fleet"
	"github.com/tandem-addons/tandem/pkg/survey"
)

// EnableOptions holds the arguments and flags of the command.
type EnableOptions struct {
	*hubclient.Factory
	hubclient.Selection
	addOn string
	action.Desired
	terminal.WaitFlags
}

// NewCmdEnable returns the command. If runF is set, it replaces runEnable.
func NewCmdEnable(f *hubclient.Factory, runF func(context.Context, *EnableOptions) error) *cobra.Command {
	o := &EnableOptions{Factory: f}
	if runF == nil {
		runF = runEnable
	}
	var parameters []string
	const of = "should run the add-on"
	cmd := &cobra.Command{
		Use:   "enable ADDON --cluster CLUSTER[,CLUSTER]",
		Short: "Enable an add-on on managed clusters",
		Long: "Create the ManagedClusterAddOn of an add-on for managed clusters. Select the clusters with --cluster, --selector,\n" +
			"--placement or --all-clusters. Required add-ons that are missing on a cluster are reported, and with --with-dependencies\n" +
			"enabled too. The order does not matter: a plan-based add-on is installed once the add-ons that it requires are\n" +
			"available.\n\n" +
			"Parameters given with -p are stored in the AddOnDeploymentConfig ADDON-parameters in the cluster's namespace, and the\n" +
			"add-on refers to it. If the add-on is already enabled, the given parameters change and all others stay the same.\n\n" +
			"If the add-on is being removed from a cluster, the command waits until it is gone, and enables it again. With\n" +
			"--with-dependencies the same applies to required add-ons.",
		Example: "  kubectl addon enable kafka --cluster cluster1 --namespace data --with-dependencies --wait\n" +
			"  kubectl addon enable kafka --selector region=eu -p BROKERS=5",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.Require(cmd, of)
			if err == nil {
				err = checkNamespace(cmd, o.Namespace)
			}
			if err != nil {
				return err
			}
			if o.Parameters, err = parseParameters(cmd, parameters); err != nil {
				return err
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	cmd.Flags().BoolVar(&o.WithDependencies, "with-dependencies", false, "Also enable required add-ons that are missing.")
	cmd.Flags().StringVarP(&o.Namespace, "namespace", "n", "", "Namespace on the managed clusters to install the add-on into.")
	parametersFlag(cmd, &parameters)
	o.AddWait(cmd, false, "Wait until all add-ons that the command enables are available.")
	return cmd
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
	if err != nil {
		return err
	}
	definitions, fleet, err := survey.Fleet(ctx, h, clusters)
	if err != nil {
		return err
	}
	if err := action.Undefined(definitions, o.addOn); err != nil {
		return err
	}
	first, err := o.enableOn(ctx, h, fleet, clusters, o.IOStreams)
	again := func(ctx context.Context, clusters []string, streams genericiooptions.IOStreams) (enabled, error) {
		_, fleet, err := survey.Fleet(ctx, h, clusters)
		if err != nil {
			return enabled{}, err
		}
		return o.enableOn(ctx, h, fleet, clusters, streams)
	}
	w := enableWait{addOn: o.addOn, available: o.Wait, enable: again}
	return errors.Join(err, w.await(ctx, h, o.IOStreams, o.Timeout, first))
}

// enableOn enables the add-on on each of the clusters, unless it is being removed.
func (o *EnableOptions) enableOn(
	ctx context.Context, h hubclient.Hub, fleet map[string]fleet.Cluster, clusters []string, streams genericiooptions.IOStreams,
) (enabled, error) {
	reader, hints := action.NewReader(ctx, survey.Remembering(h)), terminal.ClusterTexts{}
	var steps []action.Step
	var result enabled
	var problems []error
	for _, cluster := range clusters {
		e := action.Enabling{View: fleet[cluster], AddOn: o.addOn, Desired: o.Desired}
		removals := e.Removals()
		found, err := e.After(removals).Decide(ctx, reader)
		if found.Waiting != "" {
			hints.Add(cluster, found.Waiting+"; enable missing ones with --with-dependencies")
		}
		for _, remark := range found.Remarks {
			hints.Add(cluster, remark)
		}
		switch {
		case err != nil:
			problems = append(problems, err)
		case len(removals) > 0:
			for _, removed := range removals {
				result.going = append(result.going, installed{ObjectKey: client.ObjectKeyFromObject(removed), AddOn: removed})
				hints.Add(cluster, removed.Name+" is being removed, and is enabled again once it is gone")
			}
		default:
			steps = append(steps, found.Steps...)
		}
	}
	if err := terminal.Warn(streams.ErrOut, hints.Texts()...); err != nil {
		return enabled{}, err
	}
	var err error
	result.done, err = carryOut(ctx, h, streams.Out, steps)
	return result, errors.Join(append(problems, err)...)
}

// carryOut writes the steps of each cluster in order and returns the completed steps. A failure stops the remaining steps of the same
// cluster only.
func carryOut(ctx context.Context, c client.Client, out io.Writer, steps []action.Step) ([]action.Step, error) {
	byCluster := map[string][]action.Step{}
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
	var done []action.Step
	atOnce(len(clusters), write, func(i int) {
		problems[i] = errors.Join(printers.WriteEscaped(out, texts[i]), problems[i])
		done = append(done, byCluster[clusters[i]][:finished[i]]...)
	})
	return done, errors.Join(problems...)
}
