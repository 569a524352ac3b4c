package change

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestEditRefuses(t *testing.T) {
	removing := sample.Instance()
	removing.DeletionTimestamp = ptr.To(metav1.Now())
	child := sample.Instance()
	child.Name = "shop.kafka"
	child.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "shop", UID: "shop", Controller: ptr.To(true),
	}}
	for sentence, test := range map[string]struct {
		view     sample.Cluster
		instance *kudo.Instance
		name     string
		want     string
	}{
		"what does not exist": {view: sample.NewCluster("kafka:"), name: "kafka", want: ErrAbsent.Error()},
		"an Instance that is being removed": {view: sample.NewCluster(), instance: removing, name: "kafka",
			want: `cluster cluster1: Instance "kafka" is being removed; see 'kubectl addon plan status kafka --cluster cluster1'`},
		"a child": {view: sample.NewCluster(), instance: child, name: "shop.kafka", want: `cluster cluster1: Instance "shop.kafka" is a child of ` +
			`Instance "shop", which determines its version and parameters; change the parent instead`},
		"an add-on without a definition": {view: sample.NewCluster("zookeeper:").With("kafka"), name: "kafka",
			want: `ClusterManagementAddOn "kafka" not found; available add-ons: zookeeper`},
		"an add-on without plans": {view: sample.NewCluster("kafka:").With("kafka"), name: "kafka",
			want: `add-on "kafka" on cluster cluster1 is not plan-based; change it in the way that its provider documents`},
		"an add-on that is being removed": {view: sample.NewCluster("kafka:").Plans("kafka").With("kafka").WithDeletion("kafka"), name: "kafka",
			want: `add-on "kafka" is being removed from cluster cluster1; 'kubectl addon enable kafka --cluster cluster1' waits until it is gone and enables it again`},
		"parameters of an add-on that supports none": {view: sample.NewCluster("kafka:").Plans("kafka").With("kafka"), name: "kafka",
			want: `add-on "kafka" does not support parameters: its ClusterManagementAddOn does not list addondeploymentconfigs in spec.supportedConfigs`},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := State{fleet: map[string]fleet.Cluster{"cluster1": test.view.Cluster}, instances: map[string][]kudo.Instance{}}
			if test.instance != nil {
				s.instances["cluster1"] = []kudo.Instance{*test.instance}
			}
			_, err := s.Edit(t.Context(), Edit{ObjectKey: client.ObjectKey{Namespace: "cluster1", Name: test.name}, Parameters: map[string]string{"SIZE": "2"}})
			if diff := cmp.Diff(test.want, errorText(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
