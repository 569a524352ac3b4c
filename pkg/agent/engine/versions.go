package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/mirror"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
)

// read reads an Instance from the cache if that has the last write of this process, else from the API server. After a start of the agent
// the last write is unknown.
func (e *engine) read(ctx context.Context, name types.NamespacedName) (*kudo.Instance, error) {
	instance := &kudo.Instance{}
	if err := e.client.Get(ctx, name, instance); client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if upToDate, known := e.writes.UpToDate(instance); upToDate && known {
		return instance, nil
	}
	if err := e.live.Get(ctx, name, instance); err != nil {
		if apierrors.IsNotFound(err) {
			e.writes.Forget(name)
		}
		return nil, err
	}
	e.writes.NoteNewest(instance)
	return instance, nil
}

// withVersions observes an Instance with its desired and its last started OperatorVersion, each nil if it does not exist.
func (e *engine) withVersions(ctx context.Context, instance *kudo.Instance) (plan.Observation, error) {
	o := plan.Observation{
		Now: e.clock(), Instance: instance, RetryDelay: e.retryDelay,
		Owner: plan.Owner{Namespace: instance.Namespace, Name: render.InstanceName(instance.Name), UID: instance.UID},
	}
	desired, err := e.version(ctx, instance, instance.Spec.OperatorVersion.Name)
	if err != nil {
		return o, err
	}
	if desired != nil {
		o.Desired, o.Reference = &desired.Spec, mirror.HubReference(desired)
	}
	last := instance.Status.Execution
	switch {
	case last == nil:
		return o, nil
	case desired != nil && desired.Name == mirror.VersionName(last.OperatorVersion):
		o.Running = &desired.Spec
	default:
		started, err := e.version(ctx, instance, mirror.VersionName(last.OperatorVersion))
		if err != nil || started == nil {
			return o, err
		}
		o.Running = &started.Spec
	}
	return o.Normalized(), nil
}

// version returns the signed OperatorVersion of an Instance; nil if it does not exist. After the first start, one that the cache lacks is read
// live: without it, a removal skips the cleanup plan, and the Instance loses its permissions.
func (e *engine) version(ctx context.Context, of *kudo.Instance, name string, options ...client.GetOption) (*kudo.OperatorVersion, error) {
	version, key := &kudo.OperatorVersion{}, types.NamespacedName{Namespace: of.Namespace, Name: name}
	err := e.client.Get(ctx, key, version, options...)
	if apierrors.IsNotFound(err) && of.Status.Execution != nil && name != "" {
		err = e.live.Get(ctx, key, version)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %q: %w", name, err)
	}
	if !e.signer.IsSigned(version) {
		return nil, nil
	}
	return version, nil
}

// versionsOf returns the names of the mirrored OperatorVersions whose permissions an Instance has: the running one, and the one before it.
func versionsOf(instance *kudo.Instance) []string {
	last := instance.Status.Execution
	if last == nil {
		return []string{instance.Spec.OperatorVersion.Name}
	}
	names := []string{mirror.VersionName(last.OperatorVersion)}
	if whole := instance.Status.Whole; whole != nil && whole.OperatorVersion != (corev1.ObjectReference{}) {
		if before := mirror.VersionName(whole.OperatorVersion); before != names[0] {
			names = append(names, before)
		}
	}
	return names
}
