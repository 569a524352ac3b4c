package mirror

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// fieldManager is the field manager of the mirror.
const fieldManager = "addon-agent-mirror"

// maxWrites is the maximum number of remembered writes of mirrors. Others are read from the API server.
const maxWrites = 10000

// NewWrites returns the writes of mirrored Instances by all controllers, which share them.
func NewWrites() *controller.Writes {
	return controller.NewExpectations(client.ObjectKeyFromObject, maxWrites)
}

// dropError returns the error of an Instance whose mirror lacks what keeps its plans from starting; nil if it lacks nothing. No plan of it starts, because it
// is not signed.
func dropError(wanted, stored kudo.InstanceSpec) error {
	var dropped string
	switch {
	case wanted.Suspend && !stored.Suspend:
		dropped = "spec.suspend"
	case wanted.SuspendedBy != stored.SuspendedBy:
		dropped = "spec.suspendedBy"
	case wanted.Windows != stored.Windows:
		dropped = "spec.windows"
	case wanted.ClusterWindows != stored.ClusterWindows:
		dropped = "spec.clusterWindows"
	case wanted.HealthyFor != nil && stored.HealthyFor == nil:
		dropped = "spec.healthyFor"
	case wanted.OnFailure != stored.OnFailure:
		dropped = "spec.onFailure"
	case wanted.PlanExecution.Resume != stored.PlanExecution.Resume:
		dropped = "spec.planExecution.resume"
	default:
		return nil
	}
	return fmt.Errorf("the API server of the managed cluster drops %s: its CustomResourceDefinition instances.kudo.dev is older than this agent; apply the one "+
		"of this version", dropped)
}

// update writes a mirror. The engine continues to ignore one that is not signed.
func (m *reconciler) update(ctx context.Context, changed *kudo.Instance, signed bool) error {
	wanted := changed.Spec
	write := func() error {
		err := m.updateAsIs(ctx, changed)
		if err == nil { // signed without it, its plans would start
			err = dropError(wanted, changed.Spec)
		}
		return err
	}
	var err error
	if signed {
		err = m.signAndWrite(ctx, changed, write)
	} else {
		err = write()
	}
	if err != nil {
		return fmt.Errorf("updating mirrored Instance %q: %w", changed.Name, err)
	}
	m.writes.NoteIfNewer(changed)
	return nil
}

// signAndWrite signs a mirror and writes it, again if the API server has normalized it, for example by a default of a newer resource
// definition.
func (m *reconciler) signAndWrite(ctx context.Context, mirrored client.Object, write func() error) error {
	if err := m.signer.Sign(mirrored); err != nil {
		return err
	}
	if err := write(); err != nil || m.signer.IsSigned(mirrored) {
		return err
	}
	if err := m.signer.Sign(mirrored); err != nil {
		return err
	}
	return m.updateAsIs(ctx, mirrored)
}

func (m *reconciler) updateAsIs(ctx context.Context, signed client.Object) error {
	return m.local.Update(ctx, signed, client.FieldOwner(fieldManager), apply.Unchecked)
}

// writeStatus writes the status of a mirror. The rest stays as it is to be signed: the response may have changes of another writer.
func (m *reconciler) writeStatus(ctx context.Context, changed *kudo.Instance) error {
	written := changed.DeepCopy()
	if err := m.local.Status().Update(ctx, written, client.FieldOwner(fieldManager), apply.Unchecked); err != nil {
		return fmt.Errorf("writing the status of mirrored Instance %q: %w", changed.Name, err)
	}
	changed.ResourceVersion, changed.Status = written.ResourceVersion, written.Status
	m.writes.NoteIfNewer(changed)
	return nil
}

// createWithNamespace creates an object, after its namespace if that does not exist.
func (m *reconciler) createWithNamespace(ctx context.Context, made client.Object) error {
	err := m.local.Create(ctx, made, client.FieldOwner(fieldManager), apply.Unchecked)
	if !apierrors.IsNotFound(err) {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: made.GetNamespace()}}
	err = m.local.Create(ctx, namespace, client.FieldOwner(fieldManager), apply.Unchecked)
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", namespace.Name, err)
	}
	return m.local.Create(ctx, made, client.FieldOwner(fieldManager), apply.Unchecked)
}
