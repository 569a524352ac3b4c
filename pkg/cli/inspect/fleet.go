package inspect

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// FleetOptions holds the arguments and flags of the command.
type FleetOptions struct {
	*hubclient.Factory
	where  hubclient.Selection
	output *terminal.Output
}

// NewCmdFleet returns the command. If runF is set, it replaces runFleet.
func NewCmdFleet(f *hubclient.Factory, runF func(context.Context, *FleetOptions) error) *cobra.Command {
	o := &FleetOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runFleet
	}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Summarize the status of all add-ons on managed clusters",
		Long: "Summarize the status of each add-on and the reasons of problems. Below, list the clusters with a mark for each add-on, the\n" +
			"worst first: clusters with the same marks share a line. With -o wide, nothing is omitted. Instances that belong to no\n" +
			"add-on are included as instance/NAME, and are available if they are ready. An add-on that is available, but whose last change is\n" +
			"blocked or waiting, or that is degraded, counts in that column only.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon fleet\n" +
			"  kubectl addon fleet --selector region=eu -o wide",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.where.Check(cmd); err != nil {
				return err
			}
			if cmd.Flags().Changed("namespace") {
				return terminal.Usagef(cmd, "--namespace is not supported: add-ons of all clusters are shown")
			}
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, "are shown")
	o.output.AddFlag(cmd)
	return cmd
}

func runFleet(ctx context.Context, o *FleetOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	found, err := Glance(ctx, h, o.where, unreadTo(o.ErrOut))
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	warnOfManager(ctx, h, o.ManagerNamespace(), o.ErrOut)
	data := found.Sum()
	return o.output.Print(o.Out, terminal.Shown{Text: SummaryText(data, o.output.Format == terminal.FormatWide), Data: data})
}

// Glance reads the add-ons and independent Instances of the selected clusters. Clusters without any are included, as far as the user
// may read them. unread gets the error if the user may not read Instances.
func Glance(ctx context.Context, h hubclient.Hub, where hubclient.Selection, unread func(error)) (fleet.Glance, error) {
	found := fleet.Glance{}
	var of []string
	if where.IsAll() {
		clusters, err := read.Clusters(ctx, h, "", labels.Everything())
		if err != nil {
			return nil, err
		}
		for _, cluster := range clusters.Names {
			found[cluster] = map[fleet.Subject]fleet.Glimpse{}
		}
	} else {
		var err error
		if of, err = where.Clusters(ctx, h); err != nil {
			return nil, err
		}
		for _, cluster := range of {
			found[cluster] = map[fleet.Subject]fleet.Glimpse{}
		}
	}
	err := h.EachAddOn(ctx, of, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		found.Add(addOn.Namespace, fleet.Subject{Name: addOn.Name}, fleet.GlimpseOf(addOn))
	})
	if err != nil {
		return nil, err
	}
	return found, h.EachInstance(ctx, of, func(instance *kudo.Instance) {
		if fleet.Independent(instance) {
			found.Add(instance.Namespace, fleet.Subject{Instance: true, Name: instance.Name}, fleet.GlimpseOfInstance(instance))
		}
	}, unread)
}
