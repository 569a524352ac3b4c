package change

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/text"
)

// SuspendOptions holds the arguments and flags of the commands suspend and resume.
type SuspendOptions struct {
	*hubclient.Factory
	hubclient.Targets
	suspend bool
}

// NewCmdSuspend returns the command. If runF is set, it replaces runSuspend.
func NewCmdSuspend(f *hubclient.Factory, runF func(context.Context, *SuspendOptions) error) *cobra.Command {
	return newCmdSuspend(&SuspendOptions{Factory: f, suspend: true}, runF, &cobra.Command{
		Use:   "suspend NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Suspend an Instance or add-on: no plan starts until it is resumed",
		Long: "Suspend an Instance or add-on: no plan starts until it is resumed, and changes to its version and parameters wait. A running plan finishes the\n" +
			"steps that it has started, and starts no others; its timeouts stop. Health is still reported, plans can be cancelled, and\n" +
			"the Instance can be removed.\n\n" +
			"Select the clusters with --cluster, --selector, --placement or --all-clusters; clusters that do not have NAME are skipped\n" +
			"unless they are named.",
		Example: "  kubectl addon suspend kafka --cluster cluster1\n" +
			"  kubectl addon suspend kafka --selector region=eu",
	})
}

// NewCmdResume returns the command. If runF is set, it replaces runSuspend.
func NewCmdResume(f *hubclient.Factory, runF func(context.Context, *SuspendOptions) error) *cobra.Command {
	return newCmdSuspend(&SuspendOptions{Factory: f}, runF, &cobra.Command{
		Use:   "resume NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Resume a suspended Instance or add-on",
		Long: "Resume a suspended Instance or add-on: its plan continues, and changes that were made in the meantime are applied.\n\n" +
			"Select the clusters with --cluster, --selector, --placement or --all-clusters; clusters that do not have NAME are skipped\n" +
			"unless they are named.",
		Example: "  kubectl addon resume kafka --cluster cluster1\n" +
			"  kubectl addon resume kafka --all-clusters",
	})
}

func newCmdSuspend(o *SuspendOptions, runF func(context.Context, *SuspendOptions) error, cmd *cobra.Command) *cobra.Command {
	if runF == nil {
		runF = runSuspend
	}
	const of = "run the Instance or add-on"
	cmd.Args = terminal.Exactly("NAME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.CheckTargets(cmd, of); err != nil {
			return err
		}
		o.Name = args[0]
		return runF(cmd.Context(), o)
	}
	o.AddFlags(cmd, of)
	return cmd
}

func runSuspend(ctx context.Context, o *SuspendOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(setSuspension(ctx, h, o), strings.Join(o.Names, ","))
}

// suspension is the change of an Instance that is suspended or resumed.
type suspension struct {
	instance *kudo.Instance
	wanted   kudo.InstanceSpec
	changes  bool
}

// setSuspension suspends or resumes the Instance on each of the clusters. A failure on one cluster does not affect the others.
func setSuspension(ctx context.Context, h hubclient.Hub, o *SuspendOptions) error {
	targets, err := o.Find(ctx, h, nil)
	if err != nil {
		return err
	}
	var found []suspension
	refused := change.Refusals{}
	for _, target := range targets {
		instance, err := target.Read(ctx, h)
		s := suspension{instance: instance}
		if err == nil {
			s.wanted, s.changes, err = change.Suspend(instance, o.suspend)
		}
		if err != nil {
			refused[target.Namespace] = err
			continue
		}
		found = append(found, s)
	}
	problems := make([]error, len(found))
	write := func(i int) {
		if found[i].changes {
			problems[i] = change.Request(ctx, requester(h), found[i].instance, found[i].wanted)
		}
	}
	var failed error
	atOnce(len(found), write, func(i int) {
		failed = errors.Join(failed, problems[i])
		if problems[i] == nil {
			failed = errors.Join(failed, printers.WriteEscaped(o.Out, found[i].text(o.suspend, len(targets) > 1)))
		}
	})
	return errors.Join(refused.Err(), failed)
}

// text describes what was changed, on which cluster if there are several.
func (s suspension) text(suspend, several bool) string {
	done := "resumed"
	if suspend {
		done = "suspended"
	}
	if !s.changes {
		done = "already " + done
		if !suspend {
			done = "not suspended"
		}
	}
	line := fmt.Sprintf("%s %s\n", text.ObjectName(kudo.GroupVersion.Group, "Instance", s.instance.Name), done)
	if several {
		return onCluster(line, s.instance.Namespace)
	}
	return line
}
