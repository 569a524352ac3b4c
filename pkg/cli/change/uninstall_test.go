package change

import (
	stdcmp "cmp"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/test/sample"
)

// newDeletedInstance returns an Instance that is being deleted, with a condition Ready.
func newDeletedInstance(ready ...metav1.Condition) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kafka", Namespace: "cluster1", DeletionTimestamp: ptr.To(metav1.Now()), Finalizers: []string{kudo.Finalizer},
		},
		Status: kudo.InstanceStatus{Conditions: ready},
	}
}

// cleanedUpBy returns an Instance with a completed cleanup plan that was requested manually or, if request is empty, started by the
// removal.
func cleanedUpBy(request types.UID, ready metav1.Condition) *kudo.Instance {
	i := newDeletedInstance(ready)
	i.Status.Execution = &kudo.Execution{Plan: kudo.CleanupPlan, UID: stdcmp.Or(request, "of-the-removal"), Request: request}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.CleanupPlan: {Status: kudo.Complete}}
	return i
}

func TestUninstallPrintsWhatItWaitsFor(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: "kafka", Namespace: "cluster1", Finalizers: []string{"a.example/one", "b.example/two"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "guard", FieldsV1: &metav1.FieldsV1{
			Raw: []byte(`{"f:metadata":{"f:finalizers":{".":{},"v:\"a.example/one\"":{},"v:\"kudo.dev/removal\"":{}}}}`)}}},
	}}
	leaving := addOn.DeepCopy()
	leaving.Finalizers = []string{"a.example/one", kudo.Finalizer}
	agent := addOn.DeepCopy()
	agent.Status.Conditions = []metav1.Condition{{
		Type: addonv1alpha1.ConditionAddOnsRemaining, Status: metav1.ConditionTrue, Message: "addon-agent stays on the cluster for add-on kafka",
	}}
	forced := newDeletedInstance()
	forced.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
	for name, test := range map[string]struct {
		installed
		want string
	}{
		"an add-on without an Instance is held by its finalizers": {
			installed{AddOn: addOn}, "ManagedClusterAddOn kafka is held by finalizers: a.example/one (set by field manager guard), b.example/two: " +
				"run 'kubectl addon why kafka --cluster cluster1'"},
		"an add-on without an Instance is held by addon-manager, too": {
			installed{AddOn: leaving}, "ManagedClusterAddOn kafka is held by finalizers: a.example/one (set by field manager guard), kudo.dev/removal"},
		"the agent's add-on stays for those that only it can remove": {
			installed{AddOn: agent}, "addon-agent stays on the cluster for add-on kafka"},
		"an Instance that addon-manager has not deleted yet": {
			installed{AddOn: addOn, Instance: sample.Instance()}, "addon-manager has not deleted Instance kafka yet"},
		"an Instance whose agent is silent": {
			installed{Instance: newDeletedInstance()}, "the agent of cluster cluster1 has not started to remove Instance kafka"},
		"an Instance whose agent has reported nothing since it was healthy": {
			installed{Instance: newDeletedInstance(sample.Condition(kudo.ConditionReady, "True", kudo.ReasonHealthy, ""))},
			"the agent of cluster cluster1 has not started to remove Instance kafka"},
		"an Instance that is cleaned up and not removed yet": {
			installed{Instance: cleanedUpBy("", sample.Condition(kudo.ConditionReady, "True", kudo.ReasonHealthy, ""))},
			`plan "cleanup" of Instance kafka is complete; its applied objects are removed next`},
		"an Instance that was cleaned up manually before": {
			installed{Instance: cleanedUpBy("by-hand", sample.Condition(kudo.ConditionReady, "True", kudo.ReasonHealthy, ""))},
			"the agent of cluster cluster1 has not started to remove Instance kafka"},
		"a removal that waits for objects": {
			installed{Instance: newDeletedInstance(sample.Condition(kudo.ConditionReady, "False", kudo.ReasonRemoving, "waiting for 2 objects"))},
			"Removing: waiting for 2 objects"},
		"a removal without a message": {
			installed{Instance: newDeletedInstance(sample.Condition(kudo.ConditionReady, "False", kudo.ReasonRemoving, ""))}, "Removing"},
		"an Instance that is removed and still has a finalizer": {
			installed{Instance: newDeletedInstance(sample.Condition(kudo.ConditionReady, "False", kudo.ReasonRemoved, "nothing is left"))},
			"Instance kafka is held by finalizers: kudo.dev/removal"},
		"an Instance that is removed, and its children are not": {
			installed{
				Instance: newDeletedInstance(sample.Condition(kudo.ConditionReady, "False", kudo.ReasonRemoved, "nothing is left")),
				Below:    []kudo.Instance{*newDeletedChild("kafka.zookeeper", sample.Condition(kudo.ConditionReady, "False", kudo.ReasonRemoving, "waiting for 2 objects")), *newDeletedChild("kafka.registry")},
			},
			"Instance kafka has no objects left; its children are being removed: kafka.zookeeper (Removing: waiting for 2 objects), kafka.registry"},
		"an Instance that was force-released": {
			installed{AddOn: addOn, Instance: forced}, "addon-manager has not removed the finalizer of Instance kafka yet"},
	} {
		t.Run(name, func(t *testing.T) {
			test.ObjectKey = client.ObjectKey{Namespace: "cluster1", Name: "kafka"}
			if diff := cmp.Diff(test.want, test.waitText()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func newDeletedChild(name string, ready ...metav1.Condition) *kudo.Instance {
	i := newDeletedInstance(ready...)
	i.Name = name
	return i
}

func TestUninstallWarnsOfWhatSuffers(t *testing.T) {
	zookeeper := func(cluster string, dependents ...dependency.Dependent) installed {
		return installed{ObjectKey: client.ObjectKey{Namespace: cluster, Name: "zookeeper"}, Dependents: dependents}
	}
	kafka := dependency.Dependent{Name: "kafka", Type: addonv1alpha1.DependencyTypeRequired}
	shop := dependency.Dependent{Name: "shop", Type: addonv1alpha1.DependencyTypeOptional, Through: []string{"kafka"}}
	for name, test := range map[string]struct {
		found    []installed
		detached []string
		want     []string
		required bool
	}{
		"no dependents": {found: []installed{zookeeper("c1")}},
		"two on one cluster": {
			found: []installed{zookeeper("c1", kafka, shop)}, required: true,
			want: []string{
				"on cluster c1: without zookeeper, add-on kafka becomes unavailable",
				"on cluster c1: without zookeeper, add-on shop becomes degraded (through kafka)",
			},
		},
		"one on many, which is degraded only": {
			found: []installed{zookeeper("c1", shop), zookeeper("c2", shop), zookeeper("c3", shop), zookeeper("c4", shop), zookeeper("c5")},
			want:  []string{"on 4 clusters (c1, c2, c3, …): without zookeeper, add-on shop becomes degraded (through kafka)"},
		},
		"two detached clusters": {
			found: []installed{zookeeper("c1", kafka), zookeeper("c2"), zookeeper("c3")}, detached: []string{"c1", "c3"}, required: true,
			want: []string{
				"on 2 clusters (c1, c3): the cluster is detached, so its objects stay",
				"on cluster c1: without zookeeper, add-on kafka becomes unavailable",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			texts, required := impactTexts(test.found, sets.New(test.detached...))
			if diff := cmp.Diff(test.want, texts); diff != "" {
				t.Error(diff)
			}
			if required != test.required {
				t.Errorf("required is %v", required)
			}
		})
	}
}

func TestUninstallNamesWhatElseIsDeleted(t *testing.T) {
	definition := func(name string) kudo.InventoryEntry {
		return kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name, Task: "deploy"}
	}
	kept := func(e kudo.InventoryEntry) kudo.InventoryEntry {
		e.Keep = true
		return e
	}
	space, inside := kudo.InventoryEntry{Kind: "Namespace", Name: "space", Task: "deploy"}, kudo.InventoryEntry{Kind: "Secret", Namespace: "space", Name: "key", Task: "deploy"}
	certificate := kudo.InventoryEntry{Group: "example.com", Kind: "Certificate", Namespace: "shop", Name: "tls", Task: "deploy"}
	pending := definition("orders.example.com")
	pending.Pending = true
	on := func(cluster string, inventories ...[]kudo.InventoryEntry) []kudo.Instance {
		instances := make([]kudo.Instance, len(inventories))
		for i, inventory := range inventories {
			name := []string{"certs", "shop"}[i]
			instances[i] = kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}, Status: kudo.InstanceStatus{Inventory: inventory}}
		}
		return instances
	}
	for name, test := range map[string]struct {
		instances [][]kudo.Instance // by cluster
		want      []string
	}{
		"nothing":       {[][]kudo.Instance{on("c1", []kudo.InventoryEntry{inside, pending})}, nil},
		"nothing known": {[][]kudo.Instance{nil}, nil},
		"objects of a kind, also other Instances'": {
			[][]kudo.Instance{on("c1", []kudo.InventoryEntry{definition("certificates.example.com")}, []kudo.InventoryEntry{certificate})},
			[]string{"on cluster c1: CustomResourceDefinition certificates.example.com is deleted with every object of its kind, including objects that users have created, " +
				"which the hub does not know; Instances have 1 object of its API group"}},
		"objects of several kinds on two clusters": {
			[][]kudo.Instance{
				on("c1", []kudo.InventoryEntry{definition("certificates.example.com"), definition("issuers.example.com")}, []kudo.InventoryEntry{certificate}),
				on("c2", []kudo.InventoryEntry{definition("certificates.example.com"), definition("issuers.example.com")}, []kudo.InventoryEntry{certificate}),
			},
			[]string{"on 2 clusters (c1, c2): CustomResourceDefinitions certificates.example.com, issuers.example.com are deleted with every object of their kinds, " +
				"including objects that users have created, which the hub does not know; Instances have 2 objects of their API groups"}},
		"a Namespace, with what the package keeps in it": {
			[][]kudo.Instance{on("c1", []kudo.InventoryEntry{space, kept(inside)})},
			[]string{"on cluster c1: Namespace space is deleted with everything in it, including objects that users have created, which the hub does not know; " +
				"Instances have 1 object in it"}},
		"what the package keeps": {
			[][]kudo.Instance{on("c1", []kudo.InventoryEntry{kept(definition("certificates.example.com")), kept(space), kept(inside)})},
			[]string{"on cluster c1: the package keeps CustomResourceDefinition certificates.example.com, Namespace space, Secret space/key"}},
	} {
		t.Run(name, func(t *testing.T) {
			var found []installed
			instances := map[string][]kudo.Instance{}
			for i, there := range test.instances {
				key := client.ObjectKey{Namespace: []string{"c1", "c2"}[i], Name: "certs"}
				instances[key.Namespace] = there
				next := installed{ObjectKey: key}
				if len(there) > 0 {
					next.Instance = &there[0]
				}
				found = append(found, next)
			}
			if diff := cmp.Diff(test.want, lossTexts(found, instances)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUninstallDryRunShowsAnAddOnWithoutAnInstance(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"}}
	changes, err := uninstallChanges(t.Context(), nil, []installed{{ObjectKey: client.ObjectKeyFromObject(addOn), AddOn: addOn}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const want = "cluster cluster1: managedclusteraddon.addon.open-cluster-management.io/kafka would be removed\n  no plan runs\n"
	if diff := cmp.Diff(want, dryRunText(change.DryRunOf(changes, nil), false)); diff != "" {
		t.Error(diff)
	}
}

func TestUninstallByForceListsWhatIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		inventory []kudo.InventoryEntry
		want      string
	}{
		"objects with and without a namespace": {
			inventory: []kudo.InventoryEntry{
				{Group: "apps", Kind: "Deployment", Namespace: "kafka", Name: "broker", Task: "deploy"},
				{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "kafka"},
			},
			want: "Releasing Instance kafka. Objects that are not removed yet stay on cluster cluster1:\n" +
				"  Deployment kafka/broker\n  ClusterRole kafka\n",
		},
		"an empty inventory": {
			want: "Releasing Instance kafka: none of its objects are known to remain on cluster cluster1.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			instance := newDeletedInstance()
			instance.Status.Inventory = test.inventory
			if diff := cmp.Diff(test.want, leftText(instance)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
