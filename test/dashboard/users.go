package dashboard

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reading are the rules of users who may read what the dashboard shows of a cluster.
var Reading = []rbacv1.PolicyRule{
	{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons", "clustermanagementaddons"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"kudo.dev"}, Resources: []string{"instances", "operatorversions"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"cluster.open-cluster-management.io"}, Resources: []string{"managedclusters"}, Verbs: []string{"get", "list"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list"}},
}

// Operating are the rules of users who may also change add-ons and Instances.
var Operating = append([]rbacv1.PolicyRule{
	{APIGroups: []string{"addon.open-cluster-management.io"}, Resources: []string{"managedclusteraddons", "addondeploymentconfigs"}, Verbs: []string{"*"}},
	{APIGroups: []string{"kudo.dev"}, Resources: []string{"instances"}, Verbs: []string{"*"}},
}, Reading...)

// Account is a user of the hub.
type Account struct {
	// Token authenticates the user.
	Token string
	// Objects are the user and its permissions: binding, role and ServiceAccount, in the order of their removal.
	Objects []client.Object
}

// NewAccount creates a user with rules in one namespace, or in all if it is empty.
func NewAccount(ctx context.Context, c client.Client, name, namespace string, rules []rbacv1.PolicyRule) (Account, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects, RoleRef: ref}
	if namespace != "" {
		binding = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects, RoleRef: ref}
	}
	for _, object := range []client.Object{account, role, binding} {
		if err := c.Create(ctx, object); err != nil {
			return Account{}, fmt.Errorf("creating user %q: %w", name, err)
		}
	}
	token, err := Token(ctx, c, account)
	return Account{Token: token, Objects: []client.Object{binding, role, account}}, err
}

// Remove removes a user.
func (a Account) Remove(ctx context.Context, c client.Client) error {
	for _, object := range a.Objects {
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			return fmt.Errorf("removing a user: %w", err)
		}
	}
	return nil
}

// Token returns a token of a ServiceAccount.
func Token(ctx context.Context, c client.Client, account *corev1.ServiceAccount) (string, error) {
	request := &authenticationv1.TokenRequest{}
	if err := c.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %q: %w", account.Name, err)
	}
	return request.Status.Token, nil
}
