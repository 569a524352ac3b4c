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

// annotationDescription holds, on a policy, the rule that it enforces (one of Kubernetes' own annotations).
const annotationDescription = "kubernetes.io/description"

// The kinds of policies; each has bindings of its name and "Binding".
const (
	kindMutatingPolicy   = "MutatingAdmissionPolicy"
	kindValidatingPolicy = "ValidatingAdmissionPolicy"
)

// enforcement looks, once at the start of every replica, which of Tandem's rules the API server enforces itself, and says which it
// does not. Tandem works all the same: its own writers keep the rules, and mend what others do against them.
type enforcement struct {
	live   client.Reader // not from the cache: nothing is watched
	mapper meta.RESTMapper
	logger logr.Logger
}

func (e *enforcement) SetUp(mgr manager.Manager) error { return mgr.Add(e) }

// NeedLeaderElection is false: whoever stands by has the same to say.
func (*enforcement) NeedLeaderElection() bool { return false }

// Start looks and says; nothing that it cannot read keeps the controllers from running.
func (e *enforcement) Start(ctx context.Context) error {
	unenforced, err := e.unenforced(ctx)
	if err != nil {
		e.logger.Error(err, "finding out which rules the API server enforces")
	}
	for _, u := range unenforced {
		e.logger.Info("a rule is not enforced by the API server: writes against it are stored, and mended only by what Tandem itself writes",
			"rule", u.rule, "because", u.cause)
	}
	return nil
}

// unenforcedRule is a rule of Tandem's that the API server does not enforce.
type unenforcedRule struct{ rule, cause string }

// unenforced lists the rules that the API server does not enforce, in the order of the manifests.
func (e *enforcement) unenforced(ctx context.Context) ([]unenforcedRule, error) {
	objects, err := manifests.Admission()
	if err != nil {
		return nil, err
	}
	var found []unenforcedRule
	for _, policy := range objects {
		if kind := policy.GetKind(); kind != kindMutatingPolicy && kind != kindValidatingPolicy {
			continue
		}
		cause, err := e.obstacle(ctx, policy)
		if err != nil {
			return found, err
		}
		if cause != "" {
			found = append(found, unenforcedRule{policy.GetAnnotations()[annotationDescription], cause})
		}
	}
	return found, nil
}

// obstacle says why the API server does not enforce a policy; it is empty where the policy and the binding of its name stand.
func (e *enforcement) obstacle(ctx context.Context, policy *unstructured.Unstructured) (string, error) {
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

// exists reports whether there is a cluster-scoped object of that kind and name; the error is a NoMatchError where there is no such kind.
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
