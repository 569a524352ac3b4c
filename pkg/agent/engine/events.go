package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// specChanged admits all changes of an Instance except for the engine's own status writes.
func specChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletionChanged(), acknowledgementsChanged())
}

// judgedChanged admits changes of an applied object that affect tasks or condition Ready. Many objects change all the time in irrelevant
// ways: leader elections, counters and timestamps in a status. It admits all changes of an object that expressions of a package judge: they are evaluated in
// passes only, whose number is limited. It admits a change by another writer of a field that the engine has applied, and all changes of an object with
// such a field.
func judgedChanged(drifts *drift.Tracker, byExpressions func(*unstructured.Unstructured) bool) predicate.TypedPredicate[client.Object] {
	type view struct {
		uid         types.UID
		health      health.Result
		unavailable string
		metadata    string
		applied     string
	}
	return controller.ChangeIn(func(o client.Object) view {
		live := o.(*unstructured.Unstructured)
		v := view{uid: live.GetUID(), health: health.Of(live), unavailable: health.Unavailable(live)}
		annotations := live.GetAnnotations()
		v.applied = drift.Digest(live, fieldManager)
		v.metadata = fmt.Sprint(live.GetDeletionTimestamp() != nil, live.GetFinalizers(), live.GetLabels(),
			annotations[kudo.AnnotationExecution], annotations[kudo.AnnotationInstanceNamespace])
		if live.GroupVersionKind() == storageClass {
			v.metadata += fmt.Sprint(isDefaultClass(live))
		}
		if _, ofPipe := annotations[kudo.AnnotationPipe]; ofPipe || byExpressions(live) || drifts.IsDrifted(live.GetUID()) { // its containers, or any fields, matter
			v.metadata += live.GetResourceVersion()
		}
		return v
	})
}

// isJudgedByRule reports whether expressions judge an object of a custom kind: those of the running or the desired version of its Instance.
func (e *engine) isJudgedByRule(live *unstructured.Unstructured) bool {
	if !strings.Contains(live.GroupVersionKind().Group, ".") {
		return false
	}
	ctx := context.Background() // both are read from the cache
	for _, owner := range e.ownersOf(ctx, live) {
		instance := &kudo.Instance{}
		if err := e.client.Get(ctx, owner.NamespacedName, instance, client.UnsafeDisableDeepCopy); err != nil {
			continue // it is gone
		}
		names := versionsOf(instance)
		if desired := instance.Spec.OperatorVersion.Name; !slices.Contains(names, desired) {
			names = append(names, desired)
		}
		for _, name := range names {
			version, key := &kudo.OperatorVersion{}, client.ObjectKey{Namespace: owner.Namespace, Name: name}
			if err := e.client.Get(ctx, key, version, client.UnsafeDisableDeepCopy); err != nil {
				continue
			}
			if health.RuleOf(version.Spec.Health, live) != nil {
				return true
			}
		}
	}
	return false
}

func deletionChanged() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetDeletionTimestamp() != nil })
}

// acknowledgementsChanged admits changes of the hub's status of KudoOperator tasks.
func acknowledgementsChanged() predicate.Predicate {
	return controller.ChangeIn(func(o client.Object) string { return mirror.Acknowledgements(o.(*kudo.Instance)) })
}

// viewChild returns the state that a parent depends on: the generation of the child, and its conditions.
func viewChild(o client.Object) string {
	i := o.(*kudo.Instance)
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	if ready == nil {
		return fmt.Sprint(i.Annotations)
	}
	return fmt.Sprint(i.Annotations, i.Status.ObservedGeneration, ready.Status, ready.Reason, ready.Message, plan.IsAvailable(i.Status),
		controller.ViewCondition(i.Status.Conditions, kudo.ConditionWaiting))
}

// The indexes of Instances on the managed cluster, by which events of other objects find them without a look at all Instances.
const (
	byLabel   = "tandem.labels.instance"        // the value of KUDO's label on their objects
	byVersion = "spec.operatorVersion.name"     // the mirrored OperatorVersion
	byChild   = "status.children.instance"      // the children that they wait for, or include in their health
	bySecret  = "spec.parametersFrom.secret"    // the Secrets with values of their sensitive parameters
	byParent  = "tandem.annotations.parent"     // the parent of a child
	byClaims  = "tandem.inventory.volumeclaims" // "true" if they have applied volume claims
	byGroup   = "tandem.inventory.group"        // the API groups of their objects that CustomResourceDefinitions may define
)

var indexes = map[string]func(*kudo.Instance) []string{
	byLabel:   func(i *kudo.Instance) []string { return []string{render.InstanceName(i.Name)} },
	byVersion: func(i *kudo.Instance) []string { return []string{i.Spec.OperatorVersion.Name} },
	bySecret: func(i *kudo.Instance) (names []string) {
		for _, from := range i.Spec.ParametersFrom {
			names = append(names, from.SecretKeyRef.Name)
		}
		return names
	},
	byChild: func(i *kudo.Instance) (names []string) {
		for _, child := range i.Status.Children {
			names = append(append(names, child.Instance), child.Former...)
		}
		return names
	},
	byParent: func(i *kudo.Instance) []string { return []string{i.Annotations[kudo.AnnotationParent]} },
	byClaims: func(i *kudo.Instance) []string {
		isClaim := func(e kudo.InventoryEntry) bool { return e.Group == "" && e.Kind == "PersistentVolumeClaim" }
		return []string{strconv.FormatBool(slices.ContainsFunc(i.Status.Inventory, isClaim))}
	},
	byGroup: func(i *kudo.Instance) (groups []string) {
		for _, entry := range i.Status.Inventory {
			if strings.Contains(entry.Group, ".") && !slices.Contains(groups, entry.Group) {
				groups = append(groups, entry.Group)
			}
		}
		return groups
	},
}

// index adds the indexes to the cache of the managed cluster.
func index(ctx context.Context, local ctrl.Manager) error {
	for field, values := range indexes {
		err := local.GetFieldIndexer().IndexField(ctx, &kudo.Instance{}, field, func(o client.Object) []string { return values(o.(*kudo.Instance)) })
		if err != nil {
			return fmt.Errorf("indexing Instances by %s: %w", field, err)
		}
	}
	return nil
}

// ownersOf maps an applied object to its Instance.
func (e *engine) ownersOf(ctx context.Context, o client.Object) []reconcile.Request {
	namespace, marked := o.GetAnnotations()[kudo.AnnotationInstanceNamespace]
	if !marked {
		namespace = o.GetNamespace()
	}
	return e.requestsFor(ctx, namespace, byLabel, o.GetLabels()[kudo.LabelInstance])
}

// affectedBy maps an object of any kind to the Instances to reconcile when it changes: its owner, and for a StorageClass all Instances with
// volume claims.
func (e *engine) affectedBy(kind schema.GroupVersionKind) func(context.Context, client.Object) []reconcile.Request {
	if kind != storageClass {
		return e.ownersOf
	}
	return func(ctx context.Context, class client.Object) []reconcile.Request {
		return append(e.ownersOf(ctx, class), e.requestsFor(ctx, "", byClaims, "true")...)
	}
}

// usersOf maps an OperatorVersion to the Instances that refer to it.
func (e *engine) usersOf(ctx context.Context, version client.Object) []reconcile.Request {
	return e.requestsFor(ctx, version.GetNamespace(), byVersion, version.GetName())
}

// readersOf maps a Secret to the Instances whose sensitive parameters refer to it.
func (e *engine) readersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	return e.requestsFor(ctx, secret.GetNamespace(), bySecret, secret.GetName())
}

// parentsOf maps an Instance to the parents that wait for it, or include its health.
func (e *engine) parentsOf(ctx context.Context, child client.Object) []reconcile.Request {
	return e.requestsFor(ctx, child.GetNamespace(), byChild, child.GetName())
}

// viewParent returns the state on which the permissions of children depend, and what they do while it is being removed.
func viewParent(o client.Object) string {
	i := o.(*kudo.Instance)
	return fmt.Sprint(i.Spec.OperatorVersion, i.Status.Execution != nil, versionsOf(i), mirror.Acknowledgements(i), i.Annotations[kudo.AnnotationParent],
		i.IsRemoving(), i.SkipsCleanup(), i.Status.PlanStatus[kudo.CleanupPlan].Status,
		plan.IsExecuting(i.Status), i.Spec.ClusterWindows, i.Spec.Windows, i.Spec.IgnoreWindowsUntil)
}

// descendantsOf maps an Instance to its descendants, which may have its permissions and are removed after it.
func (e *engine) descendantsOf(ctx context.Context, parent client.Object) []reconcile.Request {
	children := e.requestsFor(ctx, parent.GetNamespace(), byParent, parent.GetName())
	requests := slices.Clone(children)
	for _, child := range children {
		descendants := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: child.Name}}
		requests = append(requests, e.descendantsOf(ctx, descendants)...) // ends, because the name of a child is longer than that of its parent
	}
	return requests
}

// allInstances returns all Instances: those whose plans wait for a maintenance window are few, and the others write nothing.
func (e *engine) allInstances(ctx context.Context, _ client.Object) []reconcile.Request {
	return e.requests(ctx, "all")
}

// withGroup returns the Instances with listed objects of an API group.
func (e *engine) withGroup(ctx context.Context, group string) []reconcile.Request {
	return e.requestsFor(ctx, "", byGroup, group)
}

// requestsFor returns requests for the Instances of a namespace (all namespaces if empty) with that value in an index.
func (e *engine) requestsFor(ctx context.Context, namespace, index, value string) []reconcile.Request {
	return e.requests(ctx, index, client.InNamespace(namespace), client.MatchingFields{index: value})
}

// requests returns requests for the Instances that these options select. The description is for the log.
func (e *engine) requests(ctx context.Context, described string, which ...client.ListOption) []reconcile.Request {
	list := &kudo.InstanceList{}
	if err := e.client.List(ctx, list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "failed to list Instances", "which", described)
		return nil
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
	}
	return requests
}
