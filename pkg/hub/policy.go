package hub

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/manifests"
)

// annotationDescription holds the rule that a policy enforces (one of Kubernetes' own annotations).
const annotationDescription = "kubernetes.io/description"

// The kinds of policies; the kind of a binding is the policy's kind followed by "Binding".
const (
	kindMutatingPolicy   = "MutatingAdmissionPolicy"
	kindValidatingPolicy = "ValidatingAdmissionPolicy"
)

// enforcement checks at the start of every replica which of Tandem's rules the API server enforces, and reports those that it does not.
// Tandem works without enforcement: its own writers follow the rules, and revert violations by others.
type enforcement struct {
	live   client.Reader // bypasses the cache: nothing is watched
	mapper meta.RESTMapper
	logger logr.Logger
}

func (e *enforcement) SetUp(mgr manager.Manager) error { return mgr.Add(e) }

// NeedLeaderElection returns false: a standby replica reports the same.
func (*enforcement) NeedLeaderElection() bool { return false }

// Start checks and reports. Read errors do not keep the controllers from running.
func (e *enforcement) Start(ctx context.Context) error {
	unenforced, err := e.findUnenforced(ctx)
	if err != nil && ctx.Err() == nil {
		e.logger.Error(err, "failed to check which rules the API server enforces")
	}
	for _, u := range unenforced {
		e.logger.Info("the API server does not enforce a rule: invalid writes are stored, and reverted only in fields that Tandem writes",
			"rule", u.rule, "because", u.cause)
	}
	return nil
}

// unenforcedRule is a rule of Tandem that the API server does not enforce.
type unenforcedRule struct{ rule, cause string }

// findUnenforced lists the rules that the API server does not enforce, in the order of the manifests.
func (e *enforcement) findUnenforced(ctx context.Context) ([]unenforcedRule, error) {
	objects, err := manifests.Admission()
	if err != nil {
		return nil, err
	}
	var found []unenforcedRule
	for _, policy := range objects {
		if kind := policy.GetKind(); kind != kindMutatingPolicy && kind != kindValidatingPolicy {
			continue
		}
		cause, err := e.problem(ctx, policy)
		if err != nil {
			return found, err
		}
		if cause != "" {
			found = append(found, unenforcedRule{policy.GetAnnotations()[annotationDescription], cause})
		}
	}
	return found, nil
}

// problem returns why the API server does not enforce a policy; empty if the policy and the binding of the same name exist.
func (e *enforcement) problem(ctx context.Context, policy *unstructured.Unstructured) (string, error) {
	gvk := policy.GroupVersionKind()
	for _, kind := range []string{gvk.Kind, gvk.Kind + "Binding"} {
		wanted := gvk.GroupVersion().WithKind(kind)
		exists, err := e.exists(ctx, wanted, policy.GetName())
		switch {
		case meta.IsNoMatchError(err):
			return fmt.Sprintf("the API server does not serve %s (%s)", kind, wanted.GroupVersion()), nil
		case err != nil:
			return "", fmt.Errorf("reading %s %q: %w", kind, policy.GetName(), err)
		case !exists:
			return fmt.Sprintf("%s %q does not exist: apply manifests/admission", kind, policy.GetName()), nil
		}
	}
	return "", nil
}

// exists reports whether a cluster-scoped object of that kind and name exists; the error is a NoMatchError if the kind does not exist.
func (e *enforcement) exists(ctx context.Context, gvk schema.GroupVersionKind, name string) (bool, error) {
	if _, err := e.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return false, err
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	err := e.live.Get(ctx, client.ObjectKey{Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
