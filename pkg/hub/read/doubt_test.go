package read

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

func TestDoubts(t *testing.T) {
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	of := func(name string) install.Reference {
		return install.Reference{Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs, NamespacedName: key("hub", name)}
	}
	in := func(configs ...string) []install.Doubt {
		doubt := install.Doubt{Variable: "BROKRS"}
		for _, config := range configs {
			doubt.Configs = append(doubt.Configs, of(config))
		}
		return []install.Doubt{doubt}
	}
	using := func(name, config string) client.Object {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: name}}
		addOn.Spec.Configs = []upstream.AddOnConfig{{
			ConfigGroupResource: upstream.ConfigGroupResource{Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs},
			ConfigReferent:      upstream.ConfigReferent{Namespace: "hub", Name: config},
		}}
		return addOn
	}
	names := func(requests []reconcile.Request, err error) []string {
		var found []string
		for _, request := range requests {
			found = append(found, request.String())
		}
		slices.Sort(found)
		if err != nil {
			t.Error(err)
		}
		return found
	}
	check := func(what string, want []string, requests []reconcile.Request, err error) {
		t.Helper()
		if diff := cmp.Diff(want, names(requests, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	d := NewDoubts()
	requests, err := d.All(context.Background(), nil)
	check("none", nil, requests, err)
	d.learn(key("cluster1", "kafka"), in("a", "b"))
	d.learn(key("cluster2", "kafka"), in("b"))
	d.learn(key("cluster1", "shop"), nil)
	requests, err = d.All(context.Background(), nil)
	check("all", []string{"cluster1/kafka", "cluster2/kafka"}, requests, err)
	requests, err = d.SharersOf(context.Background(), using("shop", "a"))
	check("one shares it", []string{"cluster1/kafka"}, requests, err)
	requests, err = d.SharersOf(context.Background(), using("shop", "c"))
	check("none shares it", nil, requests, err)
	requests, err = d.SharersOf(context.Background(), using("kafka", "a"))
	check("an add-on of the same name", nil, requests, err)

	d.learn(key("cluster1", "kafka"), nil)
	d.Forget(key("cluster2", "kafka"))
	d.Forget(key("cluster3", "kafka"))
	requests, err = d.All(context.Background(), nil)
	check("none again", nil, requests, err)

	var none *Doubts
	none.learn(key("cluster1", "kafka"), in("a"))
}
