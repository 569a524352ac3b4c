package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// EnableOptions holds the arguments and flags of the command.
type EnableOptions struct {
	*hubclient.Factory
	hubclient.Selection
	addOn string
	desired
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
			"add-on refers to it. If the add-on is already enabled, the given parameters change and all others stay the same.",
		Example: "  kubectl addon enable kafka --cluster cluster1 --namespace data --with-dependencies --wait\n" +
			"  kubectl addon enable kafka --selector region=eu -p BROKERS=5",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.Require(cmd, of)
			if err == nil {
				err = checkNamespace(cmd, o.namespace)
			}
			if err != nil {
				return err
			}
			if o.parameters, err = parseParameters(cmd, parameters); err != nil {
				return err
			}
			o.addOn = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	cmd.Flags().BoolVar(&o.withDependencies, "with-dependencies", false, "Also enable required add-ons that are missing.")
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Namespace on the managed clusters to install the add-on into.")
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

// enable creates the add-on on each of the clusters. A failure on one cluster does not affect the others.
func enable(ctx context.Context, h hubclient.Hub, o *EnableOptions) error {
	clusters, err := o.Clusters(ctx, h)
	if err != nil {
		return err
	}
	definitions, fleet, err := hubclient.GatherFleet(ctx, h, clusters)
	if err != nil {
		return err
	}
	if _, defined := definitions[o.addOn]; !defined {
		names := slices.Sorted(maps.Keys(definitions))
		return fmt.Errorf("ClusterManagementAddOn %q not found%s; available add-ons: %s",
			o.addOn, terminal.DidYouMean(o.addOn, names), terminal.Listed(names))
	}
	reader := hubclient.Remembering(h, h)
	var steps []step
	var problems []error
	hints := terminal.ClusterTexts{}
	for _, cluster := range clusters {
		found, err := enabling{view: fleet[cluster], addOn: o.addOn, desired: o.desired}.steps(ctx, reader, hints)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		steps = append(steps, found...)
	}
	if err := terminal.Warn(o.ErrOut, hints.Texts()...); err != nil {
		return err
	}
	done, err := carryOut(ctx, h, o.Out, steps)
	if problems = append(problems, err); o.Wait && len(done) > 0 {
		problems = append(problems, awaitAvailable(ctx, h, o.IOStreams, done, o.Timeout))
	}
	return errors.Join(problems...)
}

// carryOut writes the steps of each cluster in order and returns the completed steps. A failure stops the remaining steps of the same
// cluster only.
func carryOut(ctx context.Context, c client.Client, out io.Writer, steps []step) ([]step, error) {
	byCluster := map[string][]step{}
	for _, s := range steps {
		byCluster[s.wanted.Namespace] = append(byCluster[s.wanted.Namespace], s)
	}
	clusters := slices.Sorted(maps.Keys(byCluster))
	texts, problems, finished := make([]string, len(clusters)), make([]error, len(clusters)), make([]int, len(clusters))
	write := func(i int) {
		for _, s := range byCluster[clusters[i]] {
			text, err := s.carryOut(ctx, c)
			if texts[i] += text; err != nil {
				problems[i] = err
				return
			}
			finished[i]++
		}
	}
	var done []step
	atOnce(len(clusters), write, func(i int) {
		problems[i] = errors.Join(printers.WriteEscaped(out, texts[i]), problems[i])
		done = append(done, byCluster[clusters[i]][:finished[i]]...)
	})
	return done, errors.Join(problems...)
}
