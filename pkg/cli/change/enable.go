package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// enableOptions say how to enable an add-on, and where.
type enableOptions struct {
	hubclient.Selection
	// namespace on the managed clusters; empty: what the add-on's definition leads to.
	namespace  string
	parameters map[string]string
	// unset are parameters that are to have their default again.
	unset            []string
	withDependencies bool
	wait             bool
	timeout          time.Duration
}

func NewCmdEnable(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	const of = "the add-on is to run on"
	var (
		parameters []string
		options    enableOptions
	)
	cmd := &cobra.Command{
		Use:   "enable ADDON --cluster CLUSTER[,CLUSTER]",
		Short: "Run an add-on on managed clusters",
		Long: "Enable makes the ManagedClusterAddOn of an add-on on each of the clusters, which --selector or --all-clusters may name as\n" +
			"well. What it requires there is named where it is missing, and with --with-dependencies is enabled too. Nothing has to\n" +
			"be enabled in order: an add-on that runs by plans is installed once it has what it requires.\n\n" +
			"Parameters given by -p are kept in the AddOnDeploymentConfig ADDON-parameters in the cluster's namespace, to which the add-on\n" +
			"refers. On an add-on that is enabled already they change, and all others stay.",
		Example: "  kubectl addon enable kafka --cluster cluster1 --namespace data --with-dependencies --wait\n" +
			"  kubectl addon enable kafka --selector region=eu -p BROKERS=5",
		Args: terminal.Exactly("ADDON"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := options.Require(cmd, of)
			if err == nil {
				err = checkNamespace(cmd, options.namespace)
			}
			if err != nil {
				return err
			}
			if options.parameters, err = parseParameters(cmd, parameters); err != nil {
				return err
			}
			h, err := hubclient.Connect(flags, streams.ErrOut)
			if err != nil {
				return err
			}
			return hubclient.Advise(enable(cmd.Context(), h, streams, args[0], options), strings.Join(options.Names, ","))
		},
	}
	options.AddFlags(cmd, of)
	cmd.Flags().BoolVar(&options.withDependencies, "with-dependencies", false, "enable what it requires as well, where that is missing")
	cmd.Flags().StringVarP(&options.namespace, "namespace", "n", "", "namespace on the managed clusters to install it in")
	parametersFlag(cmd, &parameters)
	cmd.Flags().BoolVar(&options.wait, "wait", false, "wait until it is available, with all that is enabled")
	terminal.TimeoutFlag(cmd, &options.timeout)
	return cmd
}

// enable makes the add-on on each of the clusters. What cannot be done on one of them holds up none of the others.
func enable(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, addOn string, options enableOptions) error {
	clusters, err := options.Clusters(ctx, h)
	if err != nil {
		return err
	}
	definitions, fleet, err := hubclient.GatherFleet(ctx, h, clusters)
	if err != nil {
		return err
	}
	if _, defined := definitions[addOn]; !defined {
		names := slices.Sorted(maps.Keys(definitions))
		return fmt.Errorf("there is no ClusterManagementAddOn %q%s; there are: %s", addOn, terminal.DidYouMean(addOn, names), terminal.Listed(names))
	}
	reader := hubclient.Remembering(h, h)
	var steps []step
	var faults []error
	hints := terminal.ClusterTexts{}
	for _, cluster := range clusters {
		found, err := enabling{view: fleet[cluster], addOn: addOn, options: options}.steps(ctx, reader, hints)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		steps = append(steps, found...)
	}
	if err := terminal.Warn(streams.ErrOut, hints.Texts()...); err != nil {
		return err
	}
	done, err := carryOut(ctx, h, streams.Out, steps)
	if faults = append(faults, err); options.wait && len(done) > 0 {
		faults = append(faults, awaitAvailable(ctx, h, streams, done, options.timeout))
	}
	return errors.Join(faults...)
}

// carryOut writes the steps, those of one cluster in their order, and says which are done. One that fails holds up what follows on its
// cluster only.
func carryOut(ctx context.Context, c client.Client, out io.Writer, steps []step) ([]step, error) {
	byCluster := map[string][]step{}
	for _, s := range steps {
		byCluster[s.wanted.Namespace] = append(byCluster[s.wanted.Namespace], s)
	}
	clusters := slices.Sorted(maps.Keys(byCluster))
	texts, faults, finished := make([]string, len(clusters)), make([]error, len(clusters)), make([]int, len(clusters))
	write := func(i int) {
		for _, s := range byCluster[clusters[i]] {
			text, err := s.carryOut(ctx, c)
			if texts[i] += text; err != nil {
				faults[i] = err
				return
			}
			finished[i]++
		}
	}
	var done []step
	atOnce(len(clusters), write, func(i int) {
		faults[i] = errors.Join(printers.WriteEscaped(out, texts[i]), faults[i])
		done = append(done, byCluster[clusters[i]][:finished[i]]...)
	})
	return done, errors.Join(faults...)
}
