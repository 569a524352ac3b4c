package ocm

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/text"
)

// actionReleaseAgent is the action of events about an add-on that is kept or released.
const actionReleaseAgent = "Release"

// agents keeps the disabled add-on that delivers addon-agent to a cluster until the agent has removed everything that only it can remove:
// without the agent, every other removal would wait forever. On a detached cluster nothing is removed, and nothing waits.
type agents struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
}

func (a *agents) SetUp(mgr manager.Manager) error {
	isAgent := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == addonv1alpha1.AgentAddOn })
	return controller.New(mgr, "agent", controller.Options{}).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(isAgent, controller.ChangeIn(viewAgent))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, controller.EnqueueFrom(agentOn), builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, controller.EnqueueFrom(a.agentsOf), builder.WithPredicates(controller.ChangeIn(read.ViewDefinition), controller.AfterStart())).
		Watches(&kudo.Instance{}, controller.EnqueueFrom(agentOn), builder.WithPredicates(controller.Existence(), controller.AfterStart())).
		Watches(&clusterv1.ManagedCluster{}, controller.EnqueueFrom(agentOf), builder.WithPredicates(controller.DeletionStart(), controller.AfterStart())).
		Complete(a)
}

// agentOn returns the agent's add-on on an object's cluster.
func agentOn(_ context.Context, object client.Object) ([]reconcile.Request, error) {
	return agentIn(object.GetNamespace()), nil
}

// agentOf returns the agent's add-on of a ManagedCluster.
func agentOf(_ context.Context, cluster client.Object) ([]reconcile.Request, error) {
	return agentIn(cluster.GetName()), nil
}

// agentsOf returns the agents' add-ons of all clusters with an add-on of the definition, which may no longer be plan-based.
func (a *agents) agentsOf(ctx context.Context, definition client.Object) ([]reconcile.Request, error) {
	requests, err := read.AddOnsNamed(ctx, a.client, definition.GetName())
	for i := range requests {
		requests[i].Name = addonv1alpha1.AgentAddOn
	}
	return requests, err
}

func agentIn(cluster string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster, Name: addonv1alpha1.AgentAddOn}}}
}

// Reconcile holds or releases the agent of one cluster.
func (a *agents) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var addOn addonv1alpha1.ManagedClusterAddOn
	if err := a.client.Get(ctx, request.NamespacedName, &addOn); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading ManagedClusterAddOn %s: %w", request.NamespacedName, err))
	}
	if addOn.DeletionTimestamp.IsZero() {
		return controller.RetryConflict(controller.AddFinalizer(ctx, a.client, &addOn, addonv1alpha1.FinalizerAgent, ManagerDelivery))
	}
	if !controllerutil.ContainsFinalizer(&addOn, addonv1alpha1.FinalizerAgent) {
		return ctrl.Result{}, nil
	}
	detached, err := read.IsDetached(ctx, a.live, addOn.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	remaining, err := a.listRemaining(ctx, addOn.Namespace)
	if err != nil {
		return ctrl.Result{}, err
	}
	if detached || remaining == "" {
		return controller.RetryConflict(controller.RemoveFinalizer(ctx, a.client, &addOn, addonv1alpha1.FinalizerAgent))
	}
	return controller.RetryConflict(a.wait(ctx, &addOn, remaining))
}

// listRemaining lists what the agent of a cluster has to remove first: the plan-based add-ons, and the Instances without an owner. It
// uses live reads, because the cache may lack recently created objects.
func (a *agents) listRemaining(ctx context.Context, cluster string) (string, error) {
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := a.live.List(ctx, &addOns, client.InNamespace(cluster)); err != nil {
		return "", fmt.Errorf("listing ManagedClusterAddOns in %q: %w", cluster, err)
	}
	instances, err := read.InstancesOn(ctx, a.live, cluster)
	if err != nil {
		return "", err
	}
	var named []string
	for i := range addOns.Items {
		definition, err := read.Definition(ctx, a.live, addOns.Items[i].Name)
		if err != nil {
			return "", err
		}
		if install.IsPlanManaged(definition) {
			named = append(named, "add-on "+addOns.Items[i].Name)
		}
	}
	for i := range instances {
		if metav1.GetControllerOf(&instances[i]) == nil {
			named = append(named, "Instance "+instances[i].Name)
		}
	}
	if len(named) == 0 && len(instances) > 0 {
		named = append(named, "Instance "+instances[0].Name)
	}
	return strings.Join(named, ", "), nil
}

// remainingLimit limits the list in a condition, in bytes.
const remainingLimit = 512

// wait reports what the removal waits for.
func (a *agents) wait(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, remaining string) error {
	message := "addon-agent is still required to remove objects from the cluster; disable or delete these first: " +
		text.Truncate(remaining, remainingLimit)
	wrote, err := apply.Condition(ctx, a.client, addOn, addOn.Status.Conditions, ManagerDelivery, metav1.Condition{
		Type: addonv1alpha1.ConditionAddOnsRemaining, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonWaitingForRemoval,
		Message: message,
	}, time.Now())
	if wrote {
		a.recorder.Eventf(addOn, nil, corev1.EventTypeNormal, addonv1alpha1.ReasonWaitingForRemoval, actionReleaseAgent, "%s", controller.TruncateNote(message))
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// agentView holds the fields of the agent's add-on that its removal depends on.
type agentView struct {
	deleting, held bool
}

func viewAgent(a *addonv1alpha1.ManagedClusterAddOn) agentView {
	return agentView{
		deleting: !a.DeletionTimestamp.IsZero(),
		held:     controllerutil.ContainsFinalizer(a, addonv1alpha1.FinalizerAgent),
	}
}
