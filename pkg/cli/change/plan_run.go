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
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanRunOptions holds the arguments and flags of the command.
type PlanRunOptions struct {
	*hubclient.Factory
	hubclient.Targets
	plan       string
	parameters map[string]string
	now        bool
	terminal.WaitFlags

	// resume is true if the last execution is resumed, and dryRun if nothing is written.
	resume, dryRun bool
}

// NewCmdPlanRun returns the command. If runF is set, it replaces runPlanRun.
func NewCmdPlanRun(f *hubclient.Factory, runF func(context.Context, *PlanRunOptions) error) *cobra.Command {
	o := &PlanRunOptions{Factory: f}
	if runF == nil {
		runF = runPlanRun
	}
	var parameters []string
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:     "run NAME PLAN --cluster CLUSTER[,CLUSTER]",
		Aliases: []string{"trigger"},
		Short:   "Run a plan of an Instance or add-on",
		Long: "Request a plan of an Instance or add-on with its current version and parameters. While another plan runs, the request is\n" +
			"queued. Select the clusters with --cluster, --selector, --placement or --all-clusters; clusters that do not have NAME are\n" +
			"skipped unless they are named. With --failed, run the plan only where its last run has failed.\n\n" +
			"With -p the command also changes parameters of an Instance that belongs neither to an add-on nor to another Instance. If\n" +
			"the change alone triggers the requested plan, the plan does not run twice. If it triggers another plan, that plan runs\n" +
			"first.",
		Example: "  kubectl addon plan run kafka backup --cluster cluster1\n" +
			"  kubectl addon plan run kafka deploy --cluster cluster1 -p BROKERS=5 --wait --timeout 10m\n" +
			"  kubectl addon plan run kafka deploy --failed",
		Args: terminal.Exactly("NAME", "PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.CheckTargets(cmd, of)
			if err != nil {
				return err
			}
			if o.parameters, err = parseForAll(cmd, parameters); err != nil {
				return err
			}
			o.Name, o.plan = args[0], args[1]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	o.AddFailed(cmd, "Only clusters where the last run of the plan has failed; all of them by default.")
	parametersFlag(cmd, &parameters)
	cmd.Flags().BoolVar(&o.now, "now", false, "Start the plan outside of the maintenance windows that the hub sets. Until an hour from now, other changes of the "+
		"Instance do not wait for these either. Those of the administrator of the managed cluster still apply.")
	o.AddWait(cmd, false, "Wait until the plan has ended.")
	return cmd
}

// NewCmdPlanResume returns the command that resumes a failed plan. If runF is set, it replaces runPlanRun.
func NewCmdPlanResume(f *hubclient.Factory, runF func(context.Context, *PlanRunOptions) error) *cobra.Command {
	o := &PlanRunOptions{Factory: f, resume: true}
	if runF == nil {
		runF = runPlanRun
	}
	var parameters []string
	const of = "run the Instance or add-on"
	cmd := &cobra.Command{
		Use:   "resume NAME --cluster CLUSTER[,CLUSTER]",
		Short: "Resume the failed plan of an Instance or add-on",
		Long: "Run the last plan of an Instance or add-on again after it has failed or was cancelled, without the steps that have completed.\n" +
			"The agent skips such a step if it would render the same and its objects are healthy and unchanged; it does not write them.\n" +
			"Steps with random values run again, and so does every step after one that runs again, unless they run in parallel.\n\n" +
			"The command prints which steps can be skipped. 'plan status' shows which ones the agent has skipped, and why others run\n" +
			"again. With -p it also changes parameters of an Instance that belongs neither to an add-on nor to another Instance: steps\n" +
			"that the change does not affect are skipped.\n\n" +
			"If the Instance has returned to its former version, the plan of the version that has failed runs again, with all steps.\n\n" +
			"Select the clusters with --cluster, --selector, --placement or --all-clusters; clusters that have nothing to resume are\n" +
			"skipped unless they are named. With --failed, select all clusters where the last plan has failed.",
		Example: "  kubectl addon plan resume kafka --cluster cluster1 --dry-run\n" +
			"  kubectl addon plan resume kafka --cluster cluster1 -p BROKERS=5 --wait\n" +
			"  kubectl addon plan resume kafka --failed",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := o.CheckTargets(cmd, of)
			if err != nil {
				return err
			}
			if o.parameters, err = parseForAll(cmd, parameters); err != nil {
				return err
			}
			o.Name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, of)
	o.AddFailed(cmd, "Only clusters where the last plan has failed; all of them by default.")
	cmd.Flags().StringVar(&o.plan, "plan", "", "Fail unless the last plan is this one.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print the steps that can be skipped, without writing anything.")
	parametersFlag(cmd, &parameters)
	o.AddWait(cmd, false, "Wait until the plan has ended.")
	return cmd
}

func runPlanRun(ctx context.Context, o *PlanRunOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(planRun(ctx, h, o), strings.Join(o.Names, ","))
}

// parametersFlag adds the flag -p, which parseParameters parses.
func parametersFlag(cmd *cobra.Command, parameters *[]string) {
	cmd.Flags().StringArrayVarP(parameters, "parameter", "p", nil,
		"Parameter to set, as NAME=VALUE, or as NAME=secret:SECRET/KEY if it is sensitive. Can be repeated.")
}

func parseParameters(cmd *cobra.Command, given []string) (map[string]string, error) {
	parameters := make(map[string]string, len(given))
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, terminal.Usagef(cmd, "invalid argument %q for \"--parameter\" flag: must be NAME=VALUE", text)
		}
		if !utf8.ValidString(text) {
			return nil, terminal.Usagef(cmd, "invalid argument for \"--parameter\" flag: %q is not UTF-8 text: encode the value, for example with base64", name)
		}
		if _, twice := parameters[name]; twice {
			return nil, terminal.Usagef(cmd, "--parameter %s is given twice", name)
		}
		parameters[name] = value
	}
	return parameters, nil
}

// parseForAll is parseParameters for commands that set parameters on all their clusters alike.
func parseForAll(cmd *cobra.Command, given []string) (map[string]string, error) {
	parameters, err := parseParameters(cmd, given)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if strings.Contains(name, "/") {
			return nil, terminal.Usagef(cmd, "invalid argument %q for \"--parameter\" flag: %s takes NAME=VALUE; "+
				"only enable, install, update and upgrade take CLUSTER/NAME=VALUE", name, cmd.Name())
		}
	}
	return parameters, err
}

// planRun requests the plan on each of the clusters and, if requested, waits for its end. A failure on one cluster does not affect the others.
func planRun(ctx context.Context, h hubclient.Hub, o *PlanRunOptions) error {
	targets, err := o.Find(ctx, h, o.hasFailed)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return printers.WriteEscaped(o.Out, o.NoneFailedText(o.plan))
	}
	requests, refused := o.requests(ctx, h, targets)
	if len(requests)+len(refused) == 0 {
		return fmt.Errorf("no plan of %q can be resumed on the selected clusters: none has failed", o.Name)
	}
	if err := warnOfRequests(o.ErrOut, requests); err != nil {
		return err
	}
	if o.dryRun {
		return errors.Join(refused.Err(), printRequests(o.Out, requests, len(targets) > 1))
	}
	awaited, failed := writeRequests(ctx, h, o, requests, len(targets) > 1)
	problems := []error{refused.Err(), failed}
	if o.Wait && len(awaited) > 0 {
		problems = append(problems, awaitPlans(ctx, h, o.IOStreams, awaited, o.Timeout))
	}
	return errors.Join(problems...)
}

// hasFailed reports whether the plan of an Instance has failed; for a resumption, its last one.
func (o *PlanRunOptions) hasFailed(instance *kudo.Instance) bool {
	name, last := o.plan, instance.Status.Execution
	if o.resume {
		if last == nil || name != "" && name != last.Plan {
			return false
		}
		name = last.Plan
	}
	return instance.Status.PlanStatus[name].Status == kudo.FatalError
}

// planRequest is the request for a plan of an Instance.
type planRequest struct {
	progress.View
	plan     string
	wanted   kudo.InstanceSpec
	warnings []string

	// resumption is set if the plan is resumed.
	resumption *change.Resumption
}

// requests returns the requests for the plan, and the reasons why others are refused.
func (o *PlanRunOptions) requests(ctx context.Context, c client.Reader, targets []hubclient.Target) ([]planRequest, change.Refusals) {
	var requests []planRequest
	refused := change.Refusals{}
	reader := read.NewCachingReader(c)
	for _, target := range targets {
		instance, err := target.Read(ctx, c)
		if err == nil {
			var r planRequest
			if r, err = o.request(read.View(ctx, reader, instance)); err == nil {
				if o.now {
					change.IgnoreWindows(&r.wanted, time.Now())
				}
				requests = append(requests, r)
			}
		}
		var idle *change.IdleError
		if err != nil && !(errors.As(err, &idle) && len(o.Names) == 0) {
			refused[target.Namespace] = err
		}
	}
	return requests, refused
}

// request returns the request for the plan of an Instance.
func (o *PlanRunOptions) request(v progress.View) (r planRequest, err error) {
	if parent := v.Instance.Parent(); o.now && parent != nil {
		return r, fmt.Errorf("cluster %s: Instance %q has the maintenance windows of its parent: use --now with Instance %q", v.Instance.Namespace, v.Instance.Name, parent.Name)
	}
	r, uid := planRequest{View: v, plan: o.plan}, types.UID(uuid.NewString())
	if !o.resume {
		r.wanted, r.warnings, err = change.Run(v, o.plan, uid, o.parameters)
		return r, err
	}
	resumption, err := change.Resume(v, o.plan, uid, o.parameters)
	r.plan, r.wanted, r.warnings, r.resumption = resumption.Plan, resumption.Spec, resumption.Warnings, &resumption
	return r, err
}

// printRequests prints what would be requested.
func printRequests(out io.Writer, requests []planRequest, several bool) error {
	for _, r := range requests {
		if err := printers.WriteEscaped(out, r.text(several, " (dry run)")); err != nil {
			return err
		}
	}
	return nil
}

// text describes the result of the request, on which cluster if there are several.
func (r planRequest) text(several bool, suffix string) string {
	if r.resumption == nil {
		return onClusterIf(several, askedText(r.View, r.plan), r.Instance.Namespace)
	}
	name := text.ObjectName(kudo.GroupVersion.Group, "Instance", r.Instance.Name)
	return onClusterIf(several, fmt.Sprintf("%s resume of plan %s requested%s\n", name, r.plan, suffix), r.Instance.Namespace) + resumptionText(*r.resumption)
}

// maxShownSteps is the maximum number of steps of each kind that a resumption shows.
const maxShownSteps = 20

// resumptionText lists the steps of a plan that is resumed.
func resumptionText(r change.Resumption) string {
	var b strings.Builder
	for _, part := range []struct {
		title string
		steps []string
	}{
		{"Will be skipped if their rendered output is unchanged and their objects are healthy", r.Skipped},
		{"Will run again although completed", r.Reruns},
		{"Will run", r.Steps},
	} {
		if len(part.steps) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:\n", part.title)
		for _, step := range text.Limit(part.steps, maxShownSteps, "more") {
			fmt.Fprintf(&b, "  %s\n", step)
		}
	}
	return b.String()
}

// onClusterIf is onCluster if there are several clusters.
func onClusterIf(several bool, text, cluster string) string {
	if several {
		return onCluster(text, cluster)
	}
	return text
}

// warnOfRequests prints the warnings of the hub, with the clusters if there are several.
func warnOfRequests(out io.Writer, requests []planRequest) error {
	if len(requests) == 1 {
		return terminal.Warn(out, requests[0].warnings...)
	}
	warnings := terminal.ClusterTexts{}
	for _, r := range requests {
		for _, warning := range r.warnings {
			warnings.Add(r.Instance.Namespace, warning)
		}
	}
	return terminal.Warn(out, warnings.Texts()...)
}

// writeRequests writes the requests and returns the plans to wait for.
func writeRequests(
	ctx context.Context, h hubclient.Hub, o *PlanRunOptions, requests []planRequest, several bool,
) ([]awaitedPlan, error) {
	var awaited []awaitedPlan
	problems := make([]error, len(requests))
	write := func(i int) { problems[i] = change.Request(ctx, requester(h), requests[i].Instance, requests[i].wanted) }
	atOnce(len(requests), write, func(i int) {
		if problems[i] != nil {
			return
		}
		instance := requests[i].Instance
		awaited = append(awaited, awaitedPlan{
			ObjectKey: client.ObjectKeyFromObject(instance), generation: instance.Generation, plan: requests[i].plan, request: requests[i].wanted.PlanExecution.UID,
		})
		problems[i] = printers.WriteEscaped(o.Out, requests[i].text(several, ""))
	})
	return awaited, errors.Join(problems...)
}

// askedText describes the result of a request for a plan.
func askedText(v progress.View, plan string) string {
	text := fmt.Sprintf("%s plan %s requested\n", text.ObjectName(kudo.GroupVersion.Group, "Instance", v.Instance.Name), plan)
	if preceding := change.PrecedingText(v, plan); preceding != "" {
		text += preceding + "\n"
	}
	return text
}
