package change

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// SuspendOptions holds the arguments and flags of the commands suspend and resume.
type SuspendOptions struct {
	*hubclient.Factory
	hubclient.Targets
	suspend bool
	// all selects all Instances in place of those of a name, and everywhere all clusters, also those of tomorrow.
	all, everywhere bool
	reason          string
}

// whatIsSuspended describes the selections of both commands.
const whatIsSuspended = "NAME on clusters (--cluster, --selector, --placement or --all-clusters) is the Instance on each of them, as it exists now. The others\n" +
	"include Instances that are installed later:\n\n" +
	"  NAME --everywhere        add-on NAME on all clusters      annotation kudo.dev/suspend of its ClusterManagementAddOn\n" +
	"  --all --cluster CLUSTER  everything on these clusters     annotation kudo.dev/suspend of their ManagedClusters\n" +
	"  --all --everywhere       everything on all clusters       ConfigMap tandem-suspend in the namespace of addon-manager (-n)\n\n"

// NewCmdSuspend returns the command. If runF is set, it replaces runSuspend.
func NewCmdSuspend(f *hubclient.Factory, runF func(context.Context, *SuspendOptions) error) *cobra.Command {
	o := &SuspendOptions{Factory: f, suspend: true}
	cmd := newCmdSuspend(o, runF, &cobra.Command{
		Use:   "suspend (NAME | --all) (--cluster CLUSTER[,CLUSTER] | --everywhere)",
		Short: "Suspend Instances, add-ons, clusters or everything: no plan starts until they are resumed",
		Long: "Suspend Instances: no plan starts until they are resumed, and changes to their versions and parameters wait. A running plan finishes the\n" +
			"steps that it has started, and starts no others; its timeouts stop. Health is still reported, plans can be cancelled, and\n" +
			"Instances can be removed.\n\n" +
			whatIsSuspended +
			"An Instance is suspended while any of these suspends it, and agents that are disconnected learn of it later.\n" +
			"Clusters that do not have NAME are skipped unless they are named.",
		Example: "  kubectl addon suspend kafka --cluster cluster1\n" +
			"  kubectl addon suspend kafka --everywhere --reason bad-release\n" +
			"  kubectl addon suspend --all --cluster cluster1 --reason storage\n" +
			"  kubectl addon suspend --all --everywhere",
	})
	cmd.Flags().StringVar(&o.reason, "reason", "", "Why it is suspended, with --all or --everywhere: messages and 'kubectl addon check' show it.")
	return cmd
}

// NewCmdResume returns the command. If runF is set, it replaces runSuspend.
func NewCmdResume(f *hubclient.Factory, runF func(context.Context, *SuspendOptions) error) *cobra.Command {
	return newCmdSuspend(&SuspendOptions{Factory: f}, runF, &cobra.Command{
		Use:   "resume (NAME | --all) (--cluster CLUSTER[,CLUSTER] | --everywhere)",
		Short: "Resume suspended Instances, add-ons, clusters or everything",
		Long: "Resume suspended Instances: their plans continue, and changes that were made in the meantime are applied.\n\n" +
			whatIsSuspended +
			"Each of these ends only the suspension with the same arguments: an Instance that something else suspends stays suspended, and\n" +
			"'kubectl addon check' lists what is suspended. Clusters that do not have NAME are skipped unless they are named.",
		Example: "  kubectl addon resume kafka --cluster cluster1\n" +
			"  kubectl addon resume kafka --everywhere\n" +
			"  kubectl addon resume --all --cluster cluster1\n" +
			"  kubectl addon resume --all --everywhere",
	})
}

func newCmdSuspend(o *SuspendOptions, runF func(context.Context, *SuspendOptions) error, cmd *cobra.Command) *cobra.Command {
	if runF == nil {
		runF = runSuspend
	}
	cmd.Args = terminal.AtMost("NAME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.check(cmd, args); err != nil {
			return err
		}
		return runF(cmd.Context(), o)
	}
	o.AddFlags(cmd, "run the Instance or add-on")
	cmd.Flags().BoolVar(&o.all, "all", false, "Everything on the clusters, also what is installed later.")
	cmd.Flags().BoolVar(&o.everywhere, "everywhere", false, "All clusters, also those that join later.")
	return cmd
}

// maxReason is the number of characters of a reason that addon-manager passes on.
const maxReason = 200

// check returns an error if the arguments and flags do not select what is suspended.
func (o *SuspendOptions) check(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		o.Name = args[0]
	}
	switch {
	case o.all && o.Name != "":
		return terminal.Usagef(cmd, "NAME and --all are mutually exclusive: --all is everything on the clusters")
	case !o.all && o.Name == "":
		return terminal.Usagef(cmd, "NAME or --all is required")
	}
	if err := o.checkReason(cmd); err != nil {
		return err
	}
	switch {
	case o.everywhere:
		return o.checkEverywhere(cmd)
	case o.IsAll() && !cmd.Flags().Changed("all-clusters"):
		return terminal.Usagef(cmd, "select the managed clusters: --cluster, --selector, --placement, --all-clusters or --everywhere is required")
	default:
		return o.CheckTargets(cmd, "run the Instance or add-on")
	}
}

// checkReason returns an error if the reason is too long, or given for single Instances.
func (o *SuspendOptions) checkReason(cmd *cobra.Command) error {
	switch number := utf8.RuneCountInString(o.reason); {
	case number > 0 && !o.all && !o.everywhere:
		return terminal.Usagef(cmd, "--reason requires --all or --everywhere: a single Instance has no reason")
	case number > maxReason:
		return terminal.Usagef(cmd, "--reason has %d characters: at most %d are allowed", number, maxReason)
	default:
		return nil
	}
}

// checkEverywhere returns an error if --everywhere is given together with clusters, or with a namespace that has no meaning.
func (o *SuspendOptions) checkEverywhere(cmd *cobra.Command) error {
	for _, flag := range []string{"cluster", "selector", "placement", "all-clusters"} {
		if cmd.Flags().Changed(flag) {
			return terminal.Usagef(cmd, "--everywhere and --%s are mutually exclusive: --everywhere is all clusters, also those that join later", flag)
		}
	}
	if !o.all && cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported with NAME: an add-on has one ClusterManagementAddOn for all clusters")
	}
	return nil
}

func runSuspend(ctx context.Context, o *SuspendOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	if o.all || o.everywhere {
		return hubclient.Advise(setSuspensions(ctx, h, o), o.ManagerNamespace())
	}
	return hubclient.Advise(setSuspension(ctx, h, o), strings.Join(o.Names, ","))
}

// origins returns the objects that suspend what the flags select.
func (o *SuspendOptions) origins(ctx context.Context, h hubclient.Hub) ([]suspension.Origin, error) {
	switch {
	case o.all && o.everywhere:
		return []suspension.Origin{{Kind: suspension.KindEverything, Name: o.ManagerNamespace() + "/" + kudo.SuspendConfigMap, Reason: o.reason}}, nil
	case o.everywhere:
		return []suspension.Origin{{Kind: suspension.KindAddOn, Name: o.Name, Reason: o.reason}}, nil
	}
	clusters, err := o.Clusters(ctx, h)
	if err != nil {
		return nil, err
	}
	origins := make([]suspension.Origin, len(clusters))
	for i, cluster := range clusters {
		origins[i] = suspension.Origin{Kind: suspension.KindCluster, Name: cluster, Reason: o.reason}
	}
	return origins, nil
}

// setSuspensions suspends or resumes all Instances of objects. A failure for one of them does not affect the others.
func setSuspensions(ctx context.Context, h hubclient.Hub, o *SuspendOptions) error {
	origins, err := o.origins(ctx, h)
	if err != nil {
		return err
	}
	set := change.ResumeMany
	if o.suspend {
		set = change.SuspendMany
	}
	changes, problems := make([]bool, len(origins)), make([]error, len(origins))
	var failed error
	atOnce(len(origins), func(i int) { changes[i], problems[i] = set(ctx, requester(h), origins[i]) }, func(i int) {
		failed = errors.Join(failed, problems[i])
		if problems[i] == nil {
			failed = errors.Join(failed, printers.WriteEscaped(o.Out, originName(origins[i])+" "+doneText(o.suspend, changes[i])+"\n"))
		}
	})
	if hint := check.Hint(read.Leader(ctx, h, o.ManagerNamespace()), h.Now()); hint != "" { // it passes them on
		failed = errors.Join(failed, terminal.Warn(o.ErrOut, hint))
	}
	return failed
}

// originName names an object that suspends Instances, as kubectl does.
func originName(o suspension.Origin) string {
	switch o.Kind {
	case suspension.KindEverything:
		return "everything (configmap/" + kudo.SuspendConfigMap + ")"
	case suspension.KindCluster:
		return text.ObjectName(clusterv1.GroupName, string(o.Kind), o.Name)
	default:
		return text.ObjectName(addonv1alpha1.GroupVersion.Group, string(o.Kind), o.Name)
	}
}

// doneText says what was done, or that there was nothing to do.
func doneText(suspend, changes bool) string {
	switch {
	case suspend && changes:
		return "suspended"
	case suspend:
		return "already suspended"
	case changes:
		return "resumed"
	default:
		return "not suspended"
	}
}

// suspendChange is the change of an Instance that is suspended or resumed.
type suspendChange struct {
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
	var found []suspendChange
	refused := change.Refusals{}
	for _, target := range targets {
		instance, err := target.Read(ctx, h)
		s := suspendChange{instance: instance}
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

// text describes what was changed, on which cluster if there are several, and what else suspends the Instance.
func (s suspendChange) text(suspend, several bool) string {
	line := fmt.Sprintf("%s %s\n", text.ObjectName(kudo.GroupVersion.Group, "Instance", s.instance.Name), doneText(suspend, s.changes))
	if several {
		line = onCluster(line, s.instance.Namespace)
	}
	if wider := suspension.Parse(s.instance.Spec.SuspendedBy); !suspend && len(wider) > 0 {
		line += fmt.Sprintf("  still suspended by %s; to resume:\n", suspension.Describe(wider))
		for _, origin := range wider {
			line += "  " + origin.ResumeCommand() + "\n"
		}
	}
	return line
}
