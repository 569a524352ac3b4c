package rights

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// CheckSecret returns a *Refused if no Instance reads the Secret by reference, with any identity: it is in a reserved namespace.
func (p Policy) CheckSecret(secret types.NamespacedName) error {
	if !p.reserves(secret.Namespace) {
		return nil
	}
	return &Refused{fmt.Sprintf("Secret %s is not read, because namespace %q is reserved: use a Secret in another namespace "+
		"(the agent's flag to allow it is --allow-namespaces)", secret, secret.Namespace)}
}

// CheckSecretType returns a *Refused if a Secret is not read by reference because of its type: it is a credential for the API server, with which
// the author of a parameter would get the permissions of its owner.
func CheckSecretType(secret *corev1.Secret) error {
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken:
		return &Refused{fmt.Sprintf("Secret %s/%s has type %s, which is not read: use a Secret of another type", secret.Namespace, secret.Name, secret.Type)}
	default:
		return nil
	}
}

// MayGet reports whether the identity may get a Secret, which is in the Instance's namespace. known is false if only the API server knows.
func (a Actor) MayGet(secret types.NamespacedName) (may, known bool) {
	switch {
	case a.User == "": // the agent
		return true, true
	case a.Permissions != nil:
		return MayGet(a.Permissions, secret), true
	default:
		return false, false
	}
}

// MayGet reports whether declared permissions let the plans of an Instance get a Secret in its namespace.
func MayGet(declared *kudo.Permissions, secret types.NamespacedName) bool {
	get := getSecret
	get.name = secret.Name
	return slices.ContainsFunc(Grants(declared, secret.Namespace), func(g Grant) bool {
		return (g.Namespace == "" || g.Namespace == secret.Namespace) && isIncluded(g.Rules, get)
	})
}

// CannotGet returns the *Refused about an identity that may not get a Secret. It does not depend on whether the Secret exists.
func (a Actor) CannotGet(secret types.NamespacedName) error {
	fix := fmt.Sprintf("grant it with a Role in namespace %q", secret.Namespace)
	if a.Permissions != nil {
		fix = fmt.Sprintf(`declare it under permissions.rules in operator.yaml (apiGroups: [""], resources: [secrets], resourceNames: [%s], verbs: [get])`,
			secret.Name)
	}
	return &Refused{fmt.Sprintf("user %q has no permission to get Secret %s: %s, or use a Secret that the user may get", a.User, secret, fix)}
}
