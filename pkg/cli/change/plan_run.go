package change

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/progress"
	"github.com/tandem-addons/tandem/pkg/survey"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanRunOptions holds the arguments and flags of the command.
type PlanRunOptions struct {
	*hubclient.Factory
	cluster, name, plan string
	parameters          map[string]string
	terminal.WaitFlags
}

// NewCmdPlanRun returns the command. If runF is set, it replaces runPlanRun.
func NewCmdPlanRun(f *hubclient.Factory, runF func(context.Context, *PlanRunOptions) error) *cobra.Command {
	o := &PlanRunOptions{Factory: f}
	if runF == nil {
		runF = runPlanRun
	}
	var parameters []string
	cmd := &cobra.Command{
		Use:     "run NAME PLAN --cluster CLUSTER",
		Aliases: []string{"trigger"},
		Short:   "Run a plan of an Instance or add-on",
		Long: "Request a plan of an Instance or add-on with its current version and parameters. While another plan runs, the request is\n" +
			"queued.\n\n" +
			"With -p the command also changes parameters of an Instance that belongs neither to an add-on nor to another Instance. If\n" +
			"the change alone triggers the requested plan, the plan does not run twice. If it triggers another plan, that plan runs\n" +
			"first.",
		Example: "  kubectl addon plan run kafka backup --cluster cluster1\n" +
			"  kubectl addon plan run kafka deploy --cluster cluster1 -p BROKERS=5 --wait --timeout 10m",
		Args: terminal.Exactly("NAME", "PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.parameters, err = parseParameters(cmd, parameters); err != nil {
				return err
			}
			o.name, o.plan = args[0], args[1]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "runs the Instance or add-on")
	parametersFlag(cmd, &parameters)
	o.AddWait(cmd, false, "Wait until the plan has ended.")
	return cmd
}

func runPlanRun(ctx context.Context, o *PlanRunOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: o.cluster, Name: o.name}
	return hubclient.Advise(planRun(ctx, h, key, o), o.cluster)
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
		if _, twice := parameters[name]; twice {
			return nil, terminal.Usagef(cmd, "--parameter %s is given twice", name)
		}
		parameters[name] = value
	}
	return parameters, nil
}

// planRun requests the plan and, if requested, waits for its end.
func planRun(ctx context.Context, h hubclient.Hub, key client.ObjectKey, o *PlanRunOptions) error {
	instance, err := survey.ReadInstance(ctx, h, key)
	if err != nil {
		return err
	}
	view := survey.View(ctx, h, instance)
	wanted, warnings, err := asking(view, o.plan, types.UID(uuid.NewString()), o.parameters)
	if err != nil {
		return err
	}
	if err := terminal.Warn(o.ErrOut, warnings...); err != nil {
		return err
	}
	if err := request(ctx, h, instance, wanted); err != nil {
		return err
	}
	if err := printers.WriteEscaped(o.Out, askedText(view, o.plan)); err != nil || !o.Wait {
		return err
	}
	a := awaitedPlan{ObjectKey: key, generation: instance.Generation, plan: o.plan, request: wanted.PlanExecution.UID}
	return awaitPlan(ctx, h, o.IOStreams, a, o.Timeout)
}

// askedText describes the result of a request for a plan.
func askedText(v progress.View, plan string) string {
	text := fmt.Sprintf("%s plan %s requested\n", terminal.ObjectName(kudo.GroupVersion.Group, "Instance", v.Instance.Name), plan)
	if first := v.Due(); first != "" && first != plan {
		return text + fmt.Sprintf("Plan %s runs first because of the changed parameters.\n", first)
	}
	if running := progress.RunningPlan(v.Instance); running != "" && running != plan {
		return text + fmt.Sprintf("It is queued until the running plan %s ends.\n", running)
	}
	return text
}

// asking returns the Instance's spec with a request for a plan under that UID and with changed parameters, and the warnings of the hub. It
// omits the request if the parameters alone trigger the plan. It returns an error if the plan cannot be requested.
func asking(v progress.View, plan string, uid types.UID, parameters map[string]string) (kudo.InstanceSpec, []string, error) {
	if err := refuses(v, plan, parameters); err != nil {
		return kudo.InstanceSpec{}, nil, err
	}
	wanted := v.Instance.DeepCopy()
	if err := setParameters(&wanted.Spec, merged(textsOf(wanted.Spec), parameters), v.Version); err != nil {
		return kudo.InstanceSpec{}, nil, fmt.Errorf("parameters of Instance %q: %w", wanted.Name, err)
	}
	wanted.Spec.PlanExecution = kudo.PlanExecution{}
	if (progress.View{Instance: wanted, Version: v.Version}).Due() != plan {
		wanted.Spec.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: uid}
	}
	warnings, err := install.Admit(
		&install.Instance{Instance: v.Instance, Version: v.Version}, install.Instance{Instance: wanted, Version: v.Version},
	)
	return wanted.Spec, warnings, err
}

// merged returns the values of a overridden by the values of b.
func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	values := make(map[string]string, len(a)+len(b))
	maps.Copy(values, a)
	maps.Copy(values, b)
	return values
}

// refuses returns an error for a plan that cannot be requested.
func refuses(v progress.View, plan string, parameters map[string]string) error {
	instance := v.Instance
	if !instance.DeletionTimestamp.IsZero() {
		return fmt.Errorf("only plan %s can run for Instance %q of cluster %q because the Instance is being removed; "+
			"see 'kubectl addon plan status %s --cluster %s'",
			kudo.CleanupPlan, instance.Name, instance.Namespace, instance.Name, instance.Namespace)
	}
	if apierrors.IsNotFound(v.Unreadable) {
		return fmt.Errorf("%w; push its package first ('kubectl addon package push DIR')", v.Unreadable)
	}
	if v.Version != nil {
		if err := lacksPlan(v.Version, plan); err != nil {
			return err
		}
	}
	owner := metav1.GetControllerOf(instance)
	switch {
	case len(parameters) == 0 || owner == nil:
		return nil
	case owner.Kind == "Instance":
		return fmt.Errorf("the parameters of Instance %q come from its parent, Instance %q; change them there", instance.Name, owner.Name)
	default:
		return fmt.Errorf("the parameters of Instance %q come from add-on %q; "+
			"change them with 'kubectl addon update %s --cluster %s -p NAME=VALUE'",
			instance.Name, owner.Name, owner.Name, instance.Namespace)
	}
}

// lacksPlan returns an error if the OperatorVersion does not have the plan.
func lacksPlan(version *kudo.OperatorVersion, plan string) error {
	plans := slices.Sorted(maps.Keys(version.Spec.Plans))
	if slices.Contains(plans, plan) {
		return nil
	}
	return fmt.Errorf("OperatorVersion %q has no plan %q%s; available plans: %s",
		version.Name, plan, text.DidYouMean(plan, plans), text.Listed(plans))
}

// request patches the request into the spec of this Instance. It fails if the Instance was re-created under the same name, and preserves
// concurrent changes to other fields.
func request(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec) error {
	spec := map[string]any{}
	if asked := wanted.PlanExecution; asked != instance.Spec.PlanExecution {
		spec["planExecution"] = execution(asked)
	}
	if changed := changedValues(instance.Spec.Parameters, wanted.Parameters); len(changed) > 0 {
		spec["parameters"] = changed
	}
	if !slices.Equal(wanted.ParametersFrom, instance.Spec.ParametersFrom) {
		spec["parametersFrom"] = wanted.ParametersFrom
	}
	if runs := wanted.OperatorVersion; runs != instance.Spec.OperatorVersion {
		spec["operatorVersion"] = map[string]any{"namespace": runs.Namespace, "name": runs.Name}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": instance.UID}, "spec": spec})
	if err != nil {
		return fmt.Errorf("encoding the request: %w", err)
	}
	err = c.Patch(ctx, instance, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(hubclient.FieldManager))
	if err != nil {
		return fmt.Errorf("changing Instance %q of cluster %q: %w", instance.Name, instance.Namespace, err)
	}
	return nil
}

// execution returns the merge patch of a request for a plan, or nil for none.
func execution(asked kudo.PlanExecution) any {
	if asked.PlanName == "" {
		return nil
	}
	values := map[string]any{"planName": asked.PlanName, "uid": asked.UID, "cancel": nil, "status": nil}
	if asked.Cancel {
		values["cancel"] = true
	}
	return values
}

// changedValues returns the merge patch of two maps, with nil for removed keys.
func changedValues(before, after map[string]string) map[string]any {
	changed := map[string]any{}
	for name, value := range after {
		if current, given := before[name]; !given || current != value {
			changed[name] = value
		}
	}
	for name := range before {
		if _, stays := after[name]; !stays {
			changed[name] = nil
		}
	}
	return changed
}
