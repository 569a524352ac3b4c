package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tandem-addons/tandem/pkg/core/install"
)

// ownUser is this process's user name on the API server, once it is known.
type ownUser struct{ name atomic.Pointer[string] }

func (o *ownUser) get(ctx context.Context, c client.Client) (string, error) {
	if name := o.name.Load(); name != nil {
		return *name, nil
	}
	var review authenticationv1.SelfSubjectReview
	if err := c.Create(ctx, &review); err != nil {
		return "", fmt.Errorf("getting the user of addon-manager from the API server: %w", err)
	}
	o.name.Store(&review.Status.UserInfo.Username)
	return review.Status.UserInfo.Username, nil
}

// isForced reports whether a deletion has grace period 0. Nothing else depends on the grace period of objects that are not pods, and unlike an annotation,
// it is part of the request: it cannot be left behind by a deletion that fails.
func isForced(request admission.Request) bool {
	var options metav1.DeleteOptions
	return request.Operation == admissionv1.Delete && len(request.Options.Raw) > 0 && json.Unmarshal(request.Options.Raw, &options) == nil &&
		ptr.Deref(options.GracePeriodSeconds, -1) == 0
}

// isReplacement reports whether an update sends the whole object, and not a patch.
func isReplacement(request admission.Request) bool {
	var options metav1.TypeMeta
	return request.Operation == admissionv1.Update && len(request.Options.Raw) > 0 && json.Unmarshal(request.Options.Raw, &options) == nil &&
		options.Kind == "UpdateOptions"
}

// The controllers that delete add-ons because of other changes, and would try again forever: those of Kubernetes by user, those of OCM by their namespace
// or, on hubs that host OCM elsewhere, by the name of their service account: their namespace then has the name of the ClusterManager. The namespace of add-ons'
// agents begins like those of OCM, but has other service accounts.
var (
	kubernetesControllers = []string{
		"system:kube-controller-manager",
		"system:serviceaccount:kube-system:generic-garbage-collector",
		"system:serviceaccount:kube-system:namespace-controller",
	}
	ocmNamespace = "open-cluster-management"
	ocmAccounts  = []string{"addon-manager-controller-sa", "registration-controller-sa"}
)

// isController reports whether the user is a controller of Kubernetes or OCM.
func isController(user string) bool {
	account, is := strings.CutPrefix(user, "system:serviceaccount:")
	namespace, name, _ := strings.Cut(account, ":")
	return slices.Contains(kubernetesControllers, user) || is && (isOCMNamespace(namespace) || slices.Contains(ocmAccounts, name))
}

func isOCMNamespace(name string) bool {
	return name == ocmNamespace || strings.HasPrefix(name, ocmNamespace+"-") && name != install.DefaultInstallNamespace
}
