package plans

import (
	"context"
	"fmt"
	"slices"
	"strings"

	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// commands is the life of an Instance and an add-on by kubectl addon: a command that fails because of a fault is repeated once.
func commands() scenario {
	return scenario{
		name:    "commands",
		open:    []string{"enable", "change"},
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, patient()) },
		actions: []action{
			{"install", command("install", "patient", "NAME", "--namespace=NAME"), ready},
			{"update", command("update", "NAME", "-p", "VALUE=two"), expectValue("", "two")},
			{"run", request("wait"), waits},
			{"cancel", command("plan", "cancel", "NAME", "--wait=false"), fails("wait")},
			{"enable", enableByCommand, expectValue("-addon", "three")},
			{"change", command("update", "NAME-addon", "-p", "VALUE=four"), expectValue("-addon", "four")},
			{"disable", command("disable", "NAME-addon", "--yes", "--wait=false"), func(ctx context.Context, r *run) error {
				return r.expectDisabled(ctx, r.addOn())
			}},
			{"uninstall", command("uninstall", "NAME", "--yes", "--wait=false"), expectGone},
		},
		onHub: []kind{
			kudo.GroupVersion.WithKind("Instance"), addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"),
			addonv1alpha1.GroupVersion.WithKind("AddOnDeploymentConfig"), addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"),
		},
		onCluster: onCluster[:3],
	}
}

// patient returns a package with a plan that runs until it is cancelled.
func patient() *kudo.OperatorVersion {
	version := branch("patient", "1.0.0")
	version.Spec.Tasks = append(version.Spec.Tasks, kudo.Task{Name: "wait", Kind: kudo.TaskDummy})
	version.Spec.Plans["wait"] = serial("wait")
	return version
}

// command returns an action that runs a command, in which NAME is the name of the Instance.
func command(arguments ...string) func(context.Context, *run) error {
	return func(_ context.Context, r *run) error {
		call := func() error { return r.call(arguments) }
		err := call()
		if err == nil || !r.hasFaulted() {
			return err
		}
		r.note("the user repeats the command: %v", err)
		if err := call(); err != nil { // there may be nothing left to do: the state is compared
			r.note("the repeated command fails: %v", err)
		}
		return nil
	}
}

// call calls the plugin.
func (r *run) call(arguments []string) error {
	given := []string{"--cluster=" + cluster}
	for _, argument := range arguments {
		given = append(given, strings.ReplaceAll(argument, "NAME", r.name))
	}
	at := slices.IndexFunc(r.programs, func(p *program) bool { return p.command })
	return r.programs[at].call(given...)
}

// hasFaulted reports whether the fault of the action has happened, and waits until its program can continue.
func (r *run) hasFaulted() bool {
	r.world.mutex.Lock()
	f := r.fault
	fired := f != nil && f.victim != nil
	r.world.mutex.Unlock()
	if fired {
		<-f.recovered
	}
	return fired
}

// request returns an action that requests a plan with a command. Each call is another request, so the user repeats the command only if
// there is no request.
func request(plan string) func(context.Context, *run) error {
	arguments := []string{"plan", "run", "NAME", plan}
	return func(ctx context.Context, r *run) error {
		err := r.call(arguments)
		if err == nil || !r.hasFaulted() {
			return err
		}
		i := r.instance("")
		if err := r.hub.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil || i.Spec.PlanExecution.PlanName == plan {
			return err
		}
		return r.call(arguments)
	}
}

// enableByCommand defines the add-on, and enables it with a command.
func enableByCommand(ctx context.Context, r *run) error {
	definition := definitionOf(r.addOn())
	definition.Spec.SupportedConfigs[0].DefaultConfig.Name = "patient-1.0.0"
	definition.Spec.SupportedConfigs = append(definition.Spec.SupportedConfigs, upstream.ConfigMeta{
		ConfigGroupResource: upstream.ConfigGroupResource{
			Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
		},
	})
	if err := r.hub.Create(ctx, definition); err != nil {
		return err
	}
	return command("enable", "NAME-addon", "--namespace=NAME", "-p", "VALUE=three")(ctx, r)
}

// expectValue returns a check that an Instance has applied a value and is ready.
func expectValue(suffix, value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error { return r.expectApplied(ctx, r.name+suffix, value) }
}

// waits returns an error unless plan wait runs.
func waits(ctx context.Context, r *run) error {
	i := r.instance("")
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(i), i); err != nil {
		return err
	}
	if x := i.Status.Execution; x == nil || x.Plan != "wait" || i.Status.PlanStatus["wait"].Status != kudo.InProgress {
		return fmt.Errorf("the last execution is %+v, want plan wait to run", x)
	}
	return nil
}
