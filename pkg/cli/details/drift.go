package details

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// DriftOptions holds the arguments and flags of the command.
type DriftOptions struct {
	*hubclient.Factory
	hubclient.Selection
	// instances lists the names of Instances; empty for all.
	instances []string
	output    *terminal.Output
}

// NewCmdDrift returns the command. If runF is set, it replaces runDrift.
func NewCmdDrift(f *hubclient.Factory, runF func(context.Context, *DriftOptions) error) *cobra.Command {
	o := &DriftOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runDrift
	}
	cmd := &cobra.Command{
		Use:   "drift [NAME...] [--cluster CLUSTER[,CLUSTER]]",
		Short: "Show objects that differ from what was applied",
		Long: "List the Instances with objects that another writer has changed or deleted since they were applied, or that could not be\n" +
			"compared, on the selected clusters, all by default. OBJECTS is the number of objects that differ, GONE how many of them do\n" +
			"not exist, FIELDS the number of changed or removed fields, and SINCE when the drift was found. With -o wide, MESSAGE names\n" +
			"them. The Instance of an add-on has the name of the add-on; child Instances are included.\n\n" +
			"With NAME and a single cluster, show each object with the field managers that have changed it, and what was applied (-)\n" +
			"and exists now (+), of numbers, booleans and images. Other values may be secret: agents do not report them. The agent\n" +
			"compares an Instance at rest, after a change and at regular intervals.\n\n" +
			"The command contacts only the hub.",
		Example: "  kubectl addon drift\n" +
			"  kubectl addon drift --selector region=eu -o wide\n" +
			"  kubectl addon drift kafka --cluster cluster1\n" +
			"  kubectl addon drift -o jsonpath='{.instances[*].instance}'",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSelection(cmd, &o.Selection); err != nil {
				return err
			}
			if slices.Contains(args, "") {
				return terminal.Usagef(cmd, "NAME must not be empty")
			}
			o.instances = args
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, "run the Instances")
	o.output.AddFlag(cmd)
	return cmd
}

func runDrift(ctx context.Context, o *DriftOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	show := showDrifts
	if len(o.instances) > 0 && o.Single() != "" {
		show = showFields
	}
	return hubclient.Advise(show(ctx, h, o), strings.Join(o.Names, ","))
}

// showFields prints the drift of the named Instances on a single cluster. A problem with one does not affect the others.
func showFields(ctx context.Context, h hubclient.Hub, o *DriftOptions) error {
	var drifts []progress.Drift
	var texts []string
	var problems []error
	for _, name := range o.instances {
		instance, err := read.ReadInstance(ctx, h, client.ObjectKey{Namespace: o.Single(), Name: name})
		if err != nil {
			problems = append(problems, err)
			continue
		}
		found := progress.DriftOf(instance)
		drifts, texts = append(drifts, found), append(texts, driftText(found))
	}
	if len(drifts) == 0 {
		return errors.Join(problems...)
	}
	shown := terminal.Shown{Text: strings.Join(texts, "\n"), Data: drifts[0]}
	if len(o.instances) > 1 {
		list := progress.FleetDriftOf(drifts)
		list.Instances = drifts // those in sync too
		shown.Data = list
	}
	return errors.Join(append(problems, o.output.Print(o.Out, shown))...)
}

// showDrifts prints the drift of the Instances of the selected clusters, except those that are being deleted: agents do not compare them.
func showDrifts(ctx context.Context, h hubclient.Hub, o *DriftOptions) error {
	var clusters []string
	if !o.IsAll() {
		var err error
		if clusters, err = o.Clusters(ctx, h); err != nil {
			return err
		}
	}
	var drifts []progress.Drift
	met := map[string]bool{}
	err := h.EachDrift(ctx, clusters, func(instance *kudo.Instance) {
		isMeant := len(o.instances) == 0 || slices.Contains(o.instances, instance.Name)
		met[instance.Name] = true
		if isMeant && instance.DeletionTimestamp.IsZero() {
			drifts = append(drifts, progress.DriftOf(instance))
		}
	})
	if err != nil {
		return err
	}
	problems := missingProblems(o.instances, met)
	if len(drifts) == 0 && len(problems) > 0 {
		return errors.Join(problems...)
	}
	list := progress.FleetDriftOf(drifts)
	shown := terminal.Shown{Text: driftsText(list, o.output.Format == terminal.FormatWide), Data: list}
	return errors.Join(append(problems, o.output.Print(o.Out, shown))...)
}

// missingProblems returns an error for each name that no Instance has, given those that exist.
func missingProblems(names []string, existing map[string]bool) (problems []error) {
	for _, name := range names {
		if !existing[name] {
			all := slices.Sorted(maps.Keys(existing))
			problems = append(problems, fmt.Errorf("no Instance %q on the selected clusters%s; Instances: %s", name, text.DidYouMean(name, all), text.ListOrNone(all)))
		}
	}
	return problems
}
