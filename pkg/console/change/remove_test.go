package change

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestRemoval(t *testing.T) {
	owner := func(kind string, uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: "kafka", UID: uid, Controller: ptr.To(true)}}
	}
	instance := func(change ...func(*kudo.Instance)) []kudo.Instance {
		i := *sample.Instance()
		for _, c := range change {
			c(&i)
		}
		return []kudo.Instance{i}
	}
	of := func(kind string, uid types.UID) func(*kudo.Instance) {
		return func(i *kudo.Instance) { i.OwnerReferences = owner(kind, uid) }
	}
	shop := func() sample.Cluster { return sample.NewCluster("shop: kafka", "kafka:").With("shop") }
	const addOn, alone = "managedclusteraddon.addon.open-cluster-management.io/kafka", "instance.kudo.dev/kafka"
	for sentence, test := range map[string]struct {
		view      sample.Cluster
		instances []kudo.Instance
		// object is deleted; instance reports whether an Instance is deleted too, and warnings the dependents.
		object   string
		instance bool
		warnings []string
		err      string
	}{
		"an add-on without an Instance":         {view: sample.NewCluster("kafka:").With("kafka"), object: addOn},
		"an add-on with its Instance":           {view: sample.NewCluster("kafka:").With("kafka"), instances: instance(of("ManagedClusterAddOn", "")), object: addOn, instance: true},
		"an add-on beside a user's Instance":    {view: sample.NewCluster("kafka:").With("kafka"), instances: instance(), object: addOn},
		"an add-on that another one requires":   {view: shop().With("kafka"), object: addOn, warnings: []string{"without kafka, add-on shop becomes unavailable"}},
		"an Instance that belongs to no add-on": {view: sample.NewCluster(), instances: instance(), object: alone, instance: true},
		"an add-on that OCM enables": {view: sample.NewCluster("kafka:").With("kafka").PlacedBy("kafka", "all"),
			err: `OCM enables add-on "kafka" only on clusters that these Placements select: default/all; change them so that they no longer select ` +
				`cluster cluster1, or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
		"an add-on that OCM enables, and that is being removed": {view: sample.NewCluster("kafka:").With("kafka").PlacedBy("kafka", "all").WithDeletion("kafka"), object: addOn},
		"a child": {view: sample.NewCluster(), instances: instance(of("Instance", "parent")),
			err: `"kafka" is a child of Instance "kafka", which would re-create it; uninstall the parent, or change its parameters`},
		"neither": {view: sample.NewCluster("kafka:"), err: ErrAbsent.Error()},
	} {
		t.Run(sentence, func(t *testing.T) {
			s := State{fleet: map[string]fleet.Cluster{"cluster1": test.view.Cluster}, instances: map[string][]kudo.Instance{"cluster1": test.instances}}
			removal, err := s.Removal(client.ObjectKey{Namespace: "cluster1", Name: "kafka"})
			if diff := cmp.Diff(test.err, errorText(err)); diff != "" || err != nil {
				if diff != "" {
					t.Error(diff)
				}
				return
			}
			change, err := s.Remove(t.Context(), removal)
			if err != nil {
				t.Fatal(err)
			}
			data := change.Data()
			if diff := cmp.Diff([]string{test.object}, data.Writes); diff != "" || data.Write != preview.Removed {
				t.Error(data.Write, diff)
			}
			if diff := cmp.Diff(test.warnings, data.Warnings); diff != "" || (data.Instance != "") != test.instance {
				t.Errorf("Instance %q: %s", data.Instance, diff)
			}
			if problem := data.Err(); problem != nil {
				t.Error(problem)
			}
		})
	}
}

// The losses of a removal include those of all descendants, and count the objects of all Instances of the cluster.
func TestLosses(t *testing.T) {
	space := kudo.InventoryEntry{Kind: "Namespace", Name: "space", Task: "deploy"}
	inside := kudo.InventoryEntry{Kind: "ConfigMap", Namespace: "space", Name: "a", Task: "deploy", Keep: true}
	instance := func(name string, parent *kudo.Instance, inventory ...kudo.InventoryEntry) kudo.Instance {
		i := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: kudo.InstanceStatus{Inventory: inventory}}
		if parent != nil {
			i.OwnerReferences = []metav1.OwnerReference{{Kind: "Instance", Name: parent.Name, UID: parent.UID, Controller: ptr.To(true)}}
		}
		return i
	}
	root := instance("app", nil, inside)
	sets := func(names ...string) (all []kudo.InventoryEntry) {
		for _, name := range names {
			all = append(all, kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: "data", Name: name, Task: "deploy"})
		}
		return append(all, kudo.InventoryEntry{Group: "apps", Kind: "StatefulSet", Namespace: "data", Name: "pending", Task: "deploy", Pending: true})
	}
	instances := []kudo.Instance{
		root, instance("app.child", &root, space), instance("app.db", &root, sets("db", "log")...), instance("other", nil, append(sets("other"), inside)...),
	}
	var got []string
	for _, loss := range (Removal{ObjectKey: client.ObjectKey{Name: "app"}, Instance: &root}).Losses(instances) {
		got = append(got, loss.String())
	}
	want := []string{"Namespace space is deleted with everything in it, including objects that users have created, which the hub does not know; Instances have 2 objects in it",
		"volume claims of StatefulSets db, log are deleted with their data, unless the package keeps them"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if losses := (Removal{ObjectKey: client.ObjectKey{Name: "app"}}).Losses(instances); len(losses) > 0 {
		t.Errorf("an add-on without an Instance has %v", losses)
	}
}
