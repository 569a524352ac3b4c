package audit

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// TestOrderViolations plants violations in the logs of a hub and a cluster.
func TestOrderViolations(t *testing.T) {
	declares := func(needs ...addonv1alpha1.AddonDependency) Entry {
		e := newWrite(t, 0, "create", "clustermanagementaddons", "kafka", nil)
		definition := addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
		definition.Spec.Dependencies = needs
		var err error
		if e.ResponseObject, err = json.Marshal(definition); err != nil {
			t.Fatal(err)
		}
		return e
	}
	mirrored := func(operator, version, appVersion string, needs ...kudo.DependencyConstraint) Entry {
		v := kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{Version: version, AppVersion: appVersion, Dependencies: needs}}
		v.Spec.Operator.Name = operator
		return newWrite(t, 0, "create", "operatorversions", operator, v)
	}
	created := func(second int, name string) Entry {
		e := newWrite(t, second, "create", "managedclusteraddons", name, nil)
		e.ResponseStatus.Code = 201
		return e
	}
	disabled := func(second int, name string) Entry {
		return newWrite(t, second, "delete", "managedclusteraddons", name, nil)
	}
	ran := []Entry{
		mirrored("zookeeper", "1.0.0", "3.4.0"), mirrored("zookeeper", "1.1.0", "3.9.0"),
		mirrored("kafka", "1.0.0", "", kudo.DependencyConstraint{Name: "zookeeper", Version: "<3.8"}),
		applyBy(t, 1, "zk", "zookeeper", "1.0.0", "deploy"), applyBy(t, 2, "kafka", "kafka", "1.0.0", "deploy"),
	}
	upgraded := append(ran[:len(ran):len(ran)], applyBy(t, 3, "zk", "zookeeper", "1.1.0", "deploy"))
	removed := append(ran[:len(ran):len(ran)], newWrite(t, 11, "delete", "configmaps", "zk", nil), newWrite(t, 12, "delete", "configmaps", "kafka", nil))
	both := []Entry{disabled(10, "zookeeper"), disabled(10, "kafka")}
	plain := addonv1alpha1.AddonDependency{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeRequired}
	optional, alternative := plain, plain
	optional.Type, alternative.Alternatives = addonv1alpha1.DependencyTypeOptional, []string{"etcd"}
	for name, tc := range map[string]struct {
		hub, managed []Entry
		want         string
	}{
		"nothing":                                      {[]Entry{declares(plain)}, ran, ""},
		"a version that the package excludes":          {[]Entry{declares(plain)}, upgraded, "zookeeper 1.1.0 begins to run while kafka 1.0.0 runs"},
		"one on which the add-on does not depend":      {[]Entry{declares()}, upgraded, ""},
		"one on which it depends optionally":           {[]Entry{declares(optional)}, upgraded, ""},
		"one with an alternative":                      {[]Entry{declares(alternative)}, upgraded, ""},
		"a dependency that is removed first":           {append(both[:2:2], declares(plain)), removed, "the removal of zookeeper begins while kafka"},
		"an optional one that is removed first":        {append(both[:2:2], declares(optional)), removed, "the removal of zookeeper begins while kafka"},
		"one whose dependent's definition was deleted": {append(both[:2:2], declares(plain), newWrite(t, 5, "delete", "clustermanagementaddons", "kafka", nil)), removed, ""},
		"one whose dependent was enabled again":        {append(both[:2:2], declares(plain), created(11, "kafka")), removed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(OrderViolations(tc.hub, tc.managed, "ns"), "\n")
			if got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
