package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// staleCachePause is how long a cache is given to catch up with a write that it has not seen.
const staleCachePause = 50 * time.Millisecond

// mirror copies Instances and their OperatorVersions from the hub to the managed cluster. A generation is copied once the hub
// has resolved it, so that whatever stands here may be carried out, with or without the hub.
type mirror struct {
	cluster            string
	hub, local         client.Client
	hubLive, localLive client.Reader
	notes              *notes
	clock              func() time.Time

	// needs is held by whoever mirrors an OperatorVersion and then the Instance that needs it, and alone by whoever drops those that
	// nothing needs.
	needs sync.RWMutex
}

func addMirror(o Options, shared *notes, hub, local ctrl.Manager) error {
	m := &mirror{
		cluster:   o.ClusterName,
		hub:       hub.GetClient(),
		local:     local.GetClient(),
		hubLive:   hub.GetAPIReader(),
		localLive: local.GetAPIReader(),
		notes:     shared,
		clock:     time.Now,
	}
	err := ctrl.NewControllerManagedBy(hub).
		Named("mirror").
		For(&kudo.Instance{}, builder.WithPredicates(onHubChanged())).
		Watches(&kudo.Instance{}, handler.EnqueueRequestsFromMapFunc(m.childrenOf), builder.WithPredicates(changed(hasLetGo))).
		WatchesRawSource(localInstances(o.ClusterName, local, mirrorChanged())).
		WatchesRawSource(source.Kind(local.GetCache(), &kudo.OperatorVersion{}, handler.TypedEnqueueRequestsFromMapFunc(m.usersOf))).
		WithOptions(controller.Options{MaxConcurrentReconciles: sideBySide, RateLimiter: retries()}).
		Complete(m)
	if err != nil {
		return fmt.Errorf("adding the mirror: %w", err)
	}
	return nil
}

// onHubView is what matters to the mirror of an Instance on the hub; what the agent itself reports does not.
type onHubView struct {
	uid        types.UID
	generation int64
	deleting   bool
	forced     bool
	resolved   metav1.Time
	executed   bool
	children   string
}

func onHubChanged() predicate.Predicate {
	return changed(func(o client.Object) onHubView {
		i := o.(*kudo.Instance)
		view := onHubView{
			uid: i.UID, generation: i.Generation, deleting: i.DeletionTimestamp != nil, forced: i.ForceReleased(),
			executed: i.Status.Execution != nil, children: acknowledgements(i),
		}
		if resolved(i) {
			view.resolved = meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved).LastTransitionTime
		}
		return view
	})
}

// localInstances maps every mirror to its Instance on the hub.
func localInstances(cluster string, local ctrl.Manager, which ...predicate.TypedPredicate[*kudo.Instance]) source.Source {
	return source.Kind(local.GetCache(), &kudo.Instance{}, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, i *kudo.Instance) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster, Name: i.Name}}}
		}), which...)
}

// mirrorChanged lets through what matters to the mirror of what stands: everything but the engine's status, and of that which
// OperatorVersion it runs, and that nothing is left.
func mirrorChanged() predicate.TypedPredicate[*kudo.Instance] {
	type view struct {
		metadata string
		spec     int64
		runs     corev1.ObjectReference
		removed  bool
	}
	return changed(func(i *kudo.Instance) view {
		v := view{
			metadata: fmt.Sprint(i.UID, i.Annotations, i.Finalizers, i.DeletionTimestamp != nil),
			spec:     i.Generation,
			removed:  i.Removed(),
		}
		if i.Status.Execution != nil {
			v.runs = i.Status.Execution.OperatorVersion
		}
		return v
	})
}

// changed lets an update pass only where what view shows of the object differs; creation and deletion always pass.
func changed[O client.Object, V comparable](view func(O) V) predicate.TypedPredicate[O] {
	return predicate.TypedFuncs[O]{UpdateFunc: func(e event.TypedUpdateEvent[O]) bool {
		return view(e.ObjectOld) != view(e.ObjectNew)
	}}
}

// usersOf maps a mirrored OperatorVersion to the Instances beside it: one that is lost is mirrored again.
func (m *mirror) usersOf(ctx context.Context, version *kudo.OperatorVersion) []reconcile.Request {
	list := &kudo.InstanceList{}
	if err := m.local.List(ctx, list, client.InNamespace(version.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing Instances", "namespace", version.Namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: m.cluster, Name: list.Items[i].Name}})
	}
	return requests
}

// Reconcile makes the mirror of one Instance what the hub says, or marks it when the hub says nothing any more.
func (m *mirror) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wanted := &kudo.Instance{}
	err := m.hub.Get(ctx, request.NamespacedName, wanted)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("reading Instance %q on the hub: %w", request.Name, err)
	}
	if apierrors.IsNotFound(err) {
		wanted = nil
		m.notes.forget(request.Name)
	}
	standing, err := m.find(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	m.needs.RLock()
	err = m.follow(ctx, wanted, standing)
	m.needs.RUnlock()
	if apierrors.IsConflict(err) { // the cache lags behind: the next look is at what is there now
		return reconcile.Result{RequeueAfter: staleCachePause}, nil
	}
	if wanted != nil {
		m.notes.setFault(wanted, faultOf(err))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, m.dropVersions(ctx)
}

// faultOf is what a user should know of an error: nothing of those that pass by themselves.
func faultOf(err error) string {
	var network *url.Error
	switch {
	case err == nil, errors.As(err, &network), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ""
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsInternalError(err),
		apierrors.IsServiceUnavailable(err):
		return ""
	default:
		return err.Error()
	}
}

// follow does what the state of the Instance on the hub asks for; wanted is nil where it is missing.
func (m *mirror) follow(ctx context.Context, wanted, standing *kudo.Instance) error {
	switch {
	case standing != nil && standing.Removing() && standing.Removed() && !isOf(standing, wanted):
		return m.drop(ctx, standing)
	case wanted == nil, wanted.ForceReleased():
		return m.orphan(ctx, standing)
	case wanted.DeletionTimestamp != nil:
		return m.remove(ctx, wanted, standing)
	case standing != nil && standing.Removing(): // that of one that the hub has let go of, or has deleted in a past that was undone
		return m.orphan(ctx, standing)
	case resolved(wanted):
		return m.copy(ctx, wanted, standing)
	case standing != nil:
		return m.acknowledge(ctx, wanted, standing)
	}
	return nil
}

// isOf says whether a mirror is that of exactly this Instance on the hub, which has not let go of it.
func isOf(standing, wanted *kudo.Instance) bool {
	return wanted != nil && !wanted.ForceReleased() && standing.Annotations[kudo.AnnotationHubUID] == string(wanted.UID)
}

// drop deletes a mirror of which nothing is left, once the hub has heard of that. Until then its removal can be called off.
func (m *mirror) drop(ctx context.Context, standing *kudo.Instance) error {
	dropped := standing.DeepCopy()
	if controllerutil.RemoveFinalizer(dropped, kudo.Finalizer) {
		if err := m.update(ctx, dropped); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	err := m.local.Delete(ctx, dropped, client.Preconditions{UID: &dropped.UID, ResourceVersion: &dropped.ResourceVersion})
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("deleting Instance %q: %w", dropped.Name, err))
	}
	return nil
}

// byName is the field by which Instances are found; the API server has it, and the cache an index of it.
const byName = "metadata.name"

// indexInstances lets the cache of the managed cluster find Instances by name.
func indexInstances(ctx context.Context, local ctrl.Manager) error {
	return local.GetFieldIndexer().IndexField(ctx, &kudo.Instance{}, byName, func(o client.Object) []string {
		return []string{o.GetName()}
	})
}

// find reads a mirror. That there is none is asked of the API server: one that the cache has not seen yet must not be taken for one that
// is gone. One that has changed since the cache saw it is not written to, for that is a conflict.
func (m *mirror) find(ctx context.Context, name string) (*kudo.Instance, error) {
	if standing, err := findMirror(ctx, m.local, name); err != nil || standing != nil {
		return standing, err
	}
	return findMirror(ctx, m.localLive, name)
}

// findMirror reads the mirror of an Instance by its name, which is unique on the hub; nil if there is none.
func findMirror(ctx context.Context, local client.Reader, name string) (*kudo.Instance, error) {
	list := &kudo.InstanceList{}
	if err := local.List(ctx, list, client.MatchingFields{byName: name}); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	for i := range list.Items {
		if kudo.IsMirror(&list.Items[i]) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// resolved says whether the hub has found everything that this very generation refers to.
func resolved(i *kudo.Instance) bool {
	condition := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionResolved)
	return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == i.Generation
}

// orphan marks a mirror for which the hub has no Instance, or has let go of it: what is there stays, and its removal, if that has
// begun, is called off. One of which nothing is left goes all the same.
func (m *mirror) orphan(ctx context.Context, standing *kudo.Instance) error {
	if standing == nil || standing.Annotations[kudo.AnnotationOrphaned] != "" || standing.Removing() && standing.DeletionTimestamp != nil {
		return nil
	}
	if err := m.annotate(ctx, standing, map[string]string{kudo.AnnotationOrphaned: "true"}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("the hub has no such Instance any more: what it has applied stays", "mirror", client.ObjectKeyFromObject(standing))
	return nil
}

// remove hands the mirror over for removal, unless nothing was ever there. What is deleted with all of its cluster's namespace is no
// removal.
func (m *mirror) remove(ctx context.Context, wanted, standing *kudo.Instance) error {
	if standing == nil && (wanted.Status.Execution == nil || wanted.Removed()) {
		m.notes.setRemoved(wanted)
		return nil
	}
	if standing != nil && standing.Removing() {
		return nil
	}
	if waits, err := m.waitsForParent(ctx, wanted); err != nil || waits {
		return err
	}
	detached, err := m.detached(ctx)
	if err != nil {
		return err
	}
	if detached {
		return m.orphan(ctx, standing)
	}
	return m.handOver(ctx, wanted, standing)
}

// handOver marks the mirror so that the engine may destroy. One that was lost is made again first, for its workloads stand.
func (m *mirror) handOver(ctx context.Context, wanted, standing *kudo.Instance) (err error) {
	if standing == nil {
		if standing, err = m.create(ctx, wanted, wanted.Spec.OperatorVersion); err != nil {
			return err
		}
	}
	if err := m.restore(ctx, wanted, standing); err != nil {
		return err
	}
	delete(standing.Annotations, kudo.AnnotationOrphaned)
	return m.annotate(ctx, standing, map[string]string{kudo.AnnotationHubDeleted: m.clock().UTC().Format(time.RFC3339)})
}

// detached says whether the cluster is being taken off the hub: its namespace goes, and everything in it because of that. It is asked
// of the API server, for the namespace is marked before anything in it is.
func (m *mirror) detached(ctx context.Context) (bool, error) {
	namespace := &corev1.Namespace{}
	err := m.hubLive.Get(ctx, types.NamespacedName{Name: m.cluster}, namespace)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the cluster's namespace on the hub, without which nothing is removed: %w", err)
	}
	return namespace.DeletionTimestamp != nil, nil
}

// annotate adds marks to what stands.
func (m *mirror) annotate(ctx context.Context, standing *kudo.Instance, marks map[string]string) error {
	if standing.Annotations == nil {
		standing.Annotations = map[string]string{}
	}
	maps.Copy(standing.Annotations, marks)
	return m.update(ctx, standing)
}

// copy brings the mirror to the generation on the hub: OperatorVersion first, then the Instance, and last the mark by which
// the engine knows that it may go on.
func (m *mirror) copy(ctx context.Context, wanted, standing *kudo.Instance) error {
	if standing != nil && standing.Namespace != wanted.TargetNamespace() {
		return fmt.Errorf("its workloads stand in namespace %q: set spec.installNamespace to that, or delete Instance %q there first",
			standing.Namespace, standing.Name)
	}
	version, err := m.copyVersion(ctx, wanted)
	if err != nil {
		return err
	}
	reference := corev1.ObjectReference{Name: version.Name, Namespace: version.Namespace}
	if standing == nil {
		if standing, err = m.create(ctx, wanted, reference); err != nil {
			return err
		}
	}
	if err := m.takeUp(ctx, wanted, standing); err != nil {
		return err
	}
	changed := standing.DeepCopy()
	changed.Spec = specOf(wanted, reference)
	delete(changed.Annotations, kudo.AnnotationOrphaned)
	delete(changed.Annotations, kudo.AnnotationHubDeleted)
	controllerutil.AddFinalizer(changed, kudo.Finalizer)
	maps.Copy(changed.Annotations, marksOf(wanted))
	if !equality.Semantic.DeepEqual(standing.Spec, changed.Spec) || !equality.Semantic.DeepEqual(standing.ObjectMeta, changed.ObjectMeta) {
		if err := m.update(ctx, changed); err != nil {
			return err
		}
	}
	return m.acknowledge(ctx, wanted, changed)
}

// acknowledge copies what the hub has done about KudoOperator tasks, and a request to cancel what runs. A plan that runs needs both, also
// while the hub has not resolved what the spec asks for by now.
func (m *mirror) acknowledge(ctx context.Context, wanted, standing *kudo.Instance) error {
	if standing.Annotations[kudo.AnnotationHubUID] != string(wanted.UID) {
		return nil
	}
	if request := wanted.Spec.PlanExecution; request.Cancel && standing.Spec.PlanExecution != request {
		standing.Spec.PlanExecution = request // it starts nothing, and what runs must not run on because of a change that cannot
		return m.update(ctx, standing)
	}
	if equality.Semantic.DeepEqual(standing.Status.Children, wanted.Status.Children) {
		return nil
	}
	standing.Status.Children = wanted.DeepCopy().Status.Children
	return m.writeStatus(ctx, standing)
}

// takeUp sees to the status of a mirror that was not handed over yet, or of which something was removed before its removal was called
// off: there everything is deployed anew, and the inventory says what else may stand.
func (m *mirror) takeUp(ctx context.Context, wanted, standing *kudo.Instance) error {
	switch _, copied := standing.Annotations[kudo.AnnotationHubGeneration]; {
	case standing.Annotations[kudo.AnnotationHubDeleted] != "" && standing.Status.Execution != nil:
		standing.Status = kudo.InstanceStatus{Inventory: standing.Status.Inventory}
		return m.writeStatus(ctx, standing)
	case !copied:
		return m.restore(ctx, wanted, standing)
	}
	return nil
}

// specOf is the mirror's spec: the hub's, with the mirrored OperatorVersion.
func specOf(wanted *kudo.Instance, version corev1.ObjectReference) kudo.InstanceSpec {
	spec := *wanted.Spec.DeepCopy()
	spec.OperatorVersion = version
	spec.InstallNamespace = wanted.TargetNamespace()
	return spec
}

func marksOf(wanted *kudo.Instance) map[string]string {
	return map[string]string{
		kudo.AnnotationHubUID:        string(wanted.UID),
		kudo.AnnotationHubGeneration: strconv.FormatInt(wanted.Generation, 10),
	}
}

// create makes a mirror. If the hub knows of an execution, the engine leaves it alone until its status is restored.
func (m *mirror) create(ctx context.Context, wanted *kudo.Instance, version corev1.ObjectReference) (*kudo.Instance, error) {
	made := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Name:        wanted.Name,
			Namespace:   wanted.TargetNamespace(),
			Annotations: map[string]string{kudo.AnnotationHubUID: string(wanted.UID)},
			Finalizers:  []string{kudo.Finalizer},
		},
		Spec: specOf(wanted, version),
	}
	if wanted.Status.Execution == nil {
		maps.Copy(made.Annotations, marksOf(wanted))
	}
	err := m.local.Create(ctx, made, client.FieldOwner(managerMirror))
	if apierrors.IsNotFound(err) { // the namespace is missing, and no OperatorVersion was mirrored into it before
		if err := m.ensureNamespace(ctx, made.Namespace); err != nil {
			return nil, err
		}
		err = m.local.Create(ctx, made, client.FieldOwner(managerMirror))
	}
	if apierrors.IsAlreadyExists(err) { // no mirror, for those are found by name
		return nil, fmt.Errorf("namespace %q has an Instance %q that is not the hub's: install into another namespace "+
			"(spec.installNamespace), which on a hub that manages itself must not be that of the cluster", made.Namespace, made.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("mirroring Instance %q: %w", wanted.Name, err)
	}
	return made, nil
}

// restore gives a mirror made anew the status that the hub knows, so that nothing is executed again. What a mirror knows itself is
// never older. An OperatorVersion that the hub has no more is done without: the engine then goes on with the one that the Instance
// asks for.
func (m *mirror) restore(ctx context.Context, wanted, made *kudo.Instance) error {
	last := wanted.Status.Execution
	if last == nil || made.Status.Execution != nil {
		return nil
	}
	key := types.NamespacedName{Namespace: last.OperatorVersion.Namespace, Name: last.OperatorVersion.Name}
	if _, err := m.ensureVersion(ctx, key, made.Namespace); client.IgnoreNotFound(err) != nil {
		return err
	}
	made.Status = *wanted.Status.DeepCopy()
	meta.RemoveStatusCondition(&made.Status.Conditions, kudo.ConditionResolved)
	return m.writeStatus(ctx, made)
}

func (m *mirror) writeStatus(ctx context.Context, changed *kudo.Instance) error {
	if err := m.local.Status().Update(ctx, changed, client.FieldOwner(managerMirror)); err != nil {
		return fmt.Errorf("writing the status of mirrored Instance %q: %w", changed.Name, err)
	}
	return nil
}

func (m *mirror) update(ctx context.Context, changed *kudo.Instance) error {
	if err := m.local.Update(ctx, changed, client.FieldOwner(managerMirror)); err != nil {
		return fmt.Errorf("updating mirrored Instance %q: %w", changed.Name, err)
	}
	return nil
}

func (m *mirror) ensureNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := m.local.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if apierrors.IsNotFound(err) {
		err = m.local.Create(ctx, namespace, client.FieldOwner(managerMirror))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("ensuring namespace %q: %w", name, err)
	}
	return nil
}

// copyVersion mirrors the OperatorVersion that the Instance's spec refers to, once: it is immutable.
func (m *mirror) copyVersion(ctx context.Context, wanted *kudo.Instance) (*kudo.OperatorVersion, error) {
	key := types.NamespacedName{Namespace: wanted.Spec.OperatorVersion.Namespace, Name: wanted.Spec.OperatorVersion.Name}
	if key.Namespace == "" {
		key.Namespace = m.cluster
	}
	return m.ensureVersion(ctx, key, wanted.TargetNamespace())
}

func (m *mirror) ensureVersion(ctx context.Context, key types.NamespacedName, namespace string) (*kudo.OperatorVersion, error) {
	original := &kudo.OperatorVersion{}
	if err := m.hub.Get(ctx, key, original); err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %q on the hub: %w", key, err)
	}
	made := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{
			Name:      mirrorName(corev1.ObjectReference{Name: original.Name, UID: original.UID}),
			Namespace: namespace,
			Annotations: map[string]string{
				kudo.AnnotationHubUID:             string(original.UID),
				kudo.AnnotationHubOperatorVersion: key.String(),
			},
		},
		Spec: original.Spec,
	}
	err := m.local.Get(ctx, client.ObjectKeyFromObject(made), &kudo.OperatorVersion{})
	if apierrors.IsNotFound(err) {
		if err := m.ensureNamespace(ctx, namespace); err != nil {
			return nil, err
		}
		err = m.local.Create(ctx, made, client.FieldOwner(managerMirror))
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("mirroring OperatorVersion %q: %w", key, err)
	}
	return made, nil
}

// mirrorName is the name on the managed cluster of the mirror of an OperatorVersion on the hub. It holds the uid: one that was
// replaced on the hub is another object here.
func mirrorName(onHub corev1.ObjectReference) string {
	short, _, _ := strings.Cut(string(onHub.UID), "-")
	return onHub.Name + "-" + short
}

// hubReference is the identity on the hub of a mirrored OperatorVersion.
func hubReference(mirrored *kudo.OperatorVersion) corev1.ObjectReference {
	namespace, name, _ := strings.Cut(mirrored.Annotations[kudo.AnnotationHubOperatorVersion], string(types.Separator))
	return corev1.ObjectReference{Namespace: namespace, Name: name, UID: types.UID(mirrored.Annotations[kudo.AnnotationHubUID])}
}

// dropVersions deletes the mirrored OperatorVersions that no Instance needs. Candidates come from the cache; that nothing
// needs them is asked of the API server, for a cache may lag behind the Instance that was just written.
func (m *mirror) dropVersions(ctx context.Context) error {
	versions := &kudo.OperatorVersionList{}
	if err := m.local.List(ctx, versions, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing mirrored OperatorVersions: %w", err)
	}
	candidates, err := unneeded(ctx, m.local, versions.Items)
	if err != nil || len(candidates) == 0 {
		return err
	}
	m.needs.Lock()
	defer m.needs.Unlock()
	if candidates, err = unneeded(ctx, m.localLive, candidates); err != nil {
		return err
	}
	for i := range candidates {
		err := m.local.Delete(ctx, &candidates[i], client.Preconditions{UID: &candidates[i].UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("dropping OperatorVersion %q: %w", candidates[i].Name, err)
		}
	}
	return nil
}

// unneeded lists the mirrored versions that no Instance asks for and none runs.
func unneeded(ctx context.Context, local client.Reader, versions []kudo.OperatorVersion) ([]kudo.OperatorVersion, error) {
	instances := &kudo.InstanceList{}
	if err := local.List(ctx, instances, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing mirrored Instances: %w", err)
	}
	needed := map[types.NamespacedName]bool{}
	for _, i := range instances.Items {
		needed[types.NamespacedName{Namespace: i.Namespace, Name: i.Spec.OperatorVersion.Name}] = true
		if i.Status.Execution != nil {
			needed[types.NamespacedName{Namespace: i.Namespace, Name: mirrorName(i.Status.Execution.OperatorVersion)}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(versions), func(v kudo.OperatorVersion) bool {
		_, mirrored := v.Annotations[kudo.AnnotationHubUID]
		return !mirrored || needed[client.ObjectKeyFromObject(&v)]
	}), nil
}
