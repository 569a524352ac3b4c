package environment

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Tenant returns a client of a user to whom admin grants all permissions in a namespace, including its labels and every status, and none
// elsewhere. The permissions take effect with a delay.
func Tenant(ctx context.Context, config *rest.Config, admin client.Client, namespace string) (client.Client, error) {
	user := "tenant-of-" + namespace
	for _, object := range []client.Object{
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		if err := admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("granting permissions in namespace %s: %w", namespace, err)
		}
	}
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}} // which may discover the API
	return client.New(own, client.Options{Scheme: admin.Scheme()})
}
