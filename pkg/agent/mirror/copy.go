package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

// copy updates the mirror to the generation on the hub: first the OperatorVersion, then the Instance, and last the mark that lets the
// engine proceed.
func (m *mirror) copy(ctx context.Context, wanted, existing *kudo.Instance) error {
	if existing != nil && existing.Namespace != wanted.TargetNamespace() {
		return fmt.Errorf("its workloads run in namespace %q: set spec.installNamespace to that namespace, or delete Instance %q there first",
			existing.Namespace, existing.Name)
	}
	if err := m.refuses(wanted, existing); err != nil {
		return err
	}
	version, err := m.copyVersion(ctx, wanted)
	if err != nil {
		return err
	}
	reference := corev1.ObjectReference{Name: version.Name, Namespace: version.Namespace}
	if existing == nil {
		defer m.signer.creates(targetOf(wanted))()
		if existing, err = m.create(ctx, wanted, reference); err != nil {
			return err
		}
	}
	if err := m.takeUp(ctx, wanted, existing); err != nil {
		return err
	}
	changed, err := m.overwrite(ctx, wanted, existing, reference)
	if err != nil {
		return err
	}
	return m.acknowledge(ctx, wanted, changed)
}

// overwrite gives an existing mirror the spec and the marks of the Instance on the hub, with a signature, and returns it.
func (m *mirror) overwrite(ctx context.Context, wanted, existing *kudo.Instance, version corev1.ObjectReference) (*kudo.Instance, error) {
	changed := existing.DeepCopy()
	changed.Spec = specOf(wanted, version)
	controllerutil.AddFinalizer(changed, kudo.Finalizer)
	marks := marksOf(wanted)
	if parent, exists := existing.Annotations[kudo.AnnotationParent]; exists && marks[kudo.AnnotationParent] == "" && m.signer.confirms(existing) {
		marks[kudo.AnnotationParent] = parent // the parent may be gone before its child, which keeps its permissions
	}
	mark(changed, marks)
	if err := m.signer.Sign(changed); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(existing.Spec, changed.Spec) && equality.Semantic.DeepEqual(existing.ObjectMeta, changed.ObjectMeta) {
		return changed, nil
	}
	return changed, m.update(ctx, changed)
}

// refuses returns a *rights.Refused if an Instance would be installed in a reserved namespace. One that is installed there already stays, and its
// spec is still followed: it is not uninstalled because the agent's flags or its release have changed.
func (m *mirror) refuses(wanted, existing *kudo.Instance) error {
	if wanted.Status.Execution != nil || existing != nil && mirrors(existing, wanted) {
		return nil
	}
	return m.rights.CheckInstall(wanted.TargetNamespace())
}

// takeUp prepares the status of a mirror that was not handed over yet, that another writer has created, such as a backup program, or whose partial
// removal was cancelled: then everything is deployed again, the inventory lists what else may exist, and handled requests stay handled. Objects
// that only the removal has found are not pruned by a later plan.
func (m *mirror) takeUp(ctx context.Context, wanted, existing *kudo.Instance) error {
	switch _, copied := existing.Annotations[kudo.AnnotationHubGeneration]; {
	case existing.Annotations[kudo.AnnotationHubDeleted] != "" && (existing.Status.Execution != nil || len(existing.Status.Inventory) > 0):
		existing.Status = kudo.InstanceStatus{
			Inventory: plan.AppliedEntries(existing.Status.Inventory), HandledRequests: plan.MigrateStatus(existing.Status, nil).HandledRequests,
		}
		return m.writeStatus(ctx, existing)
	case !copied, !m.signer.IsSigned(existing):
		return m.restore(ctx, wanted, existing)
	}
	return nil
}

// acknowledge copies the hub's status of KudoOperator tasks, and a request to cancel the running execution. A running plan needs both, even
// if the hub has not resolved the current spec.
func (m *mirror) acknowledge(ctx context.Context, wanted, existing *kudo.Instance) error {
	if !mirrors(existing, wanted) {
		return nil
	}
	if request := wanted.Spec.PlanExecution; request.Cancel && existing.Spec.PlanExecution != request {
		existing.Spec.PlanExecution = request // it starts nothing, and must reach a running plan even if the change cannot be mirrored
		return m.update(ctx, existing)
	}
	if equality.Semantic.DeepEqual(existing.Status.Children, wanted.Status.Children) {
		return nil
	}
	existing.Status.Children = wanted.DeepCopy().Status.Children
	return m.writeStatus(ctx, existing)
}

// create creates a mirror, which the caller signs: until then, the engine ignores it.
func (m *mirror) create(ctx context.Context, wanted *kudo.Instance, version corev1.ObjectReference) (*kudo.Instance, error) {
	slot := fmt.Sprint(install.SlotOf(wanted))
	m.slots.LockKey(slot)
	defer func() { _ = m.slots.UnlockKey(slot) }() // it is locked
	if err := m.freeOf(ctx, wanted); err != nil {
		return nil, err
	}
	made := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Name:        wanted.Name,
			Namespace:   wanted.TargetNamespace(),
			Annotations: identityOf(wanted),
			Finalizers:  []string{kudo.Finalizer},
		},
		Spec: specOf(wanted, version),
	}
	if wanted.Status.Execution != nil {
		made.Annotations[kudo.AnnotationInventoryRestored] = "true"
	}
	err := m.createWithNamespace(ctx, made)
	if apierrors.IsAlreadyExists(err) {
		return nil, m.nameTakenError(ctx, made, err)
	}
	if err != nil {
		return nil, fmt.Errorf("mirroring Instance %q: %w", wanted.Name, err)
	}
	m.writes.NoteIfNewer(made)
	return made, nil
}

// nameTakenError returns the error for a mirror whose name is taken: a conflict if another mirror has it, which the cache lacks.
func (m *mirror) nameTakenError(ctx context.Context, made *kudo.Instance, refused error) error {
	existing := &kudo.Instance{}
	if err := m.localLive.Get(ctx, client.ObjectKeyFromObject(made), existing); err != nil {
		return fmt.Errorf("reading Instance %q: %w", made.Name, err)
	}
	if kudo.IsMirror(existing) {
		return apierrors.NewConflict(kudo.GroupVersion.WithResource("instances").GroupResource(), made.Name, refused)
	}
	return fmt.Errorf("namespace %q already has an Instance %q that does not belong to the hub: install into another namespace "+
		"(spec.installNamespace); on a hub that manages itself, it must not be the namespace of the cluster", made.Namespace, made.Name)
}

// freeOf returns an error if another Instance keeps the slot of the new mirror: one that precedes it on the hub, or one in the install namespace,
// orphaned or not. Only one mirror at a time is created in a slot, and the API server is read if there is another Instance: the cache may lack a
// mirror that was just created.
func (m *mirror) freeOf(ctx context.Context, wanted *kudo.Instance) error {
	onHub := &kudo.InstanceList{}
	if err := m.hub.List(ctx, onHub, client.InNamespace(m.cluster), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Instances on the hub: %w", err)
	}
	if collision := install.Collision(wanted, onHub.Items); collision != nil {
		return errors.New(collision.Message)
	}
	reader := client.Reader(m.local)
	if slices.ContainsFunc(onHub.Items, func(i kudo.Instance) bool {
		return i.Name != wanted.Name && install.SlotOf(&i) == install.SlotOf(wanted)
	}) {
		reader = m.localLive
	}
	list := &kudo.InstanceList{}
	if err := reader.List(ctx, list, client.InNamespace(wanted.TargetNamespace())); err != nil {
		return fmt.Errorf("listing mirrored Instances: %w", err)
	}
	for _, other := range list.Items {
		if other.Name == wanted.Name || render.InstanceName(other.Name) != render.InstanceName(wanted.Name) || !m.signer.hasObjects(&other) {
			continue
		}
		return fmt.Errorf("namespace %q has Instance %q, whose objects have the same names and labels: install into another namespace "+
			"(spec.installNamespace), or remove that Instance first; if the hub no longer has it, re-create it there before", other.Namespace, other.Name)
	}
	return nil
}

// restore gives a re-created mirror the status on the hub, so that nothing runs again. A status on the mirror itself is never older. A
// missing OperatorVersion on the hub is ignored: the engine then continues with the one in the Instance's spec.
func (m *mirror) restore(ctx context.Context, wanted, made *kudo.Instance) error {
	last := wanted.Status.Execution
	if last == nil || made.Status.Execution != nil {
		return nil
	}
	key := types.NamespacedName{Namespace: last.OperatorVersion.Namespace, Name: last.OperatorVersion.Name}
	if err := m.ensureVersion(ctx, key, made.Namespace); client.IgnoreNotFound(err) != nil {
		return err
	}
	made.Status = *wanted.Status.DeepCopy()
	meta.RemoveStatusCondition(&made.Status.Conditions, kudo.ConditionResolved)
	made.Annotations[kudo.AnnotationInventoryRestored] = "true" // written with the signature
	return m.writeStatus(ctx, made)
}
