package hubclient

import (
	"errors"
	"fmt"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// Advise adds advice to errors caused by a hub that is not set up.
func Advise(err error, namespace string) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w: check that the cluster is a hub with Tandem's CRDs", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: check that KUBECONFIG or --kubeconfig names the hub, and that the hub is running", err)
	case isMissingNamespace(err):
		return fmt.Errorf("%w: run 'kubectl create namespace %s', or select another one with -n", err, namespace)
	default:
		return err
	}
}

// isMissingNamespace reports whether a write failed because its namespace does not exist.
func isMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}
