package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestIndependent(t *testing.T) {
	owned := func(kind string) func(*kudo.Instance) {
		return func(i *kudo.Instance) {
			owner := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka", UID: "owner"}}
			version := kudo.GroupVersion
			if kind == "ManagedClusterAddOn" {
				version = addonv1alpha1.GroupVersion
			}
			i.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, version.WithKind(kind))}
		}
	}
	for sentence, test := range map[string]struct {
		change func(*kudo.Instance)
		want   bool
	}{
		"an Instance that a user created":       {func(*kudo.Instance) {}, true},
		"an add-on's":                           {owned("ManagedClusterAddOn"), false},
		"a child":                               {owned("Instance"), false},
		"owned by an object of another kind":    {owned("Application"), true},
		"a mirror on a hub that manages itself": {func(i *kudo.Instance) { i.Annotations = map[string]string{kudo.AnnotationHubUID: "1"} }, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka.zookeeper"}}
			test.change(instance)
			if got := Independent(instance); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
