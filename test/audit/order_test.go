package audit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// TestOrderViolations plants violations in the logs of a hub and a cluster.
func TestOrderViolations(t *testing.T) {
	stored := func(second int, resource string, object metav1.Object) Entry {
		e := newWrite(t, second, "update", resource, object.GetName(), nil)
		var err error
		if e.ResponseObject, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
		return e
	}
	declares := func(needs ...addonv1alpha1.AddonDependency) Entry {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
		definition.Spec.Dependencies = needs
		return stored(0, "clustermanagementaddons", definition)
	}
	labelled := func(second int, value string) Entry {
		return stored(second, "managedclusters", &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"gpu": value}}})
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
	together := []Entry{disabled(10, "zookeeper"), disabled(10, "kafka")}
	both := func(more ...Entry) []Entry { return slices.Concat(together, more) }
	unconstrained := []Entry{
		mirrored("zookeeper", "1.0.0", "3.4.0"), mirrored("zookeeper", "1.1.0", "3.9.0"), mirrored("kafka", "1.0.0", ""),
		applyBy(t, 1, "zk", "zookeeper", "1.0.0", "deploy"), applyBy(t, 2, "kafka", "kafka", "1.0.0", "deploy"), applyBy(t, 3, "zk", "zookeeper", "1.1.0", "deploy"),
	}
	plain := addonv1alpha1.AddonDependency{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeRequired}
	optional, alternative, substitute, constrained, selected := plain, plain, plain, plain, plain
	optional.Type, alternative.Alternatives, constrained.Version = addonv1alpha1.DependencyTypeOptional, []string{"etcd"}, "<3.8"
	substitute.Name, substitute.Alternatives = "etcd", []string{"zookeeper"}
	selected.Clusters = &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "yes"}}}
	const excluded, early = "zookeeper 1.1.0 begins to run while kafka 1.0.0 runs", "the removal of zookeeper begins while kafka"
	for name, tc := range map[string]struct {
		hub, managed []Entry
		want         string
	}{
		"nothing":                                     {[]Entry{declares(plain)}, ran, ""},
		"a version that the package excludes":         {[]Entry{declares(plain)}, upgraded, excluded},
		"one on which the add-on does not depend":     {[]Entry{declares()}, upgraded, ""},
		"one on which it depends optionally":          {[]Entry{declares(optional)}, upgraded, ""},
		"one on which it does not depend any more":    {[]Entry{declares(plain), declares()}, upgraded, ""},
		"one with an alternative":                     {[]Entry{declares(alternative), created(1, "etcd")}, upgraded, ""},
		"one with an alternative that is not enabled": {[]Entry{declares(alternative)}, upgraded, excluded},
		"an alternative of one that is not enabled":   {[]Entry{declares(substitute)}, upgraded, excluded},
		"a version that the definition excludes":      {[]Entry{declares(constrained)}, unconstrained, excluded},
		"one that it accepts":                         {[]Entry{declares(plain)}, unconstrained, ""},
		"one that it excludes at times":               {[]Entry{declares(constrained), declares(plain)}, unconstrained, ""},
		"one on a cluster that is selected":           {[]Entry{declares(selected), labelled(0, "yes")}, upgraded, excluded},
		"one on a cluster that is not selected":       {[]Entry{declares(selected), labelled(0, "no")}, upgraded, ""},
		"one on a cluster that is selected at times":  {[]Entry{declares(selected), labelled(0, "yes"), labelled(1, "no")}, upgraded, ""},
		"one on a cluster that is not known":          {[]Entry{declares(selected)}, upgraded, ""},

		"a dependency that is removed first":            {both(declares(plain)), removed, early},
		"an optional one that is removed first":         {both(declares(optional)), removed, early},
		"one with a constraint that is removed first":   {both(declares(constrained)), removed, early},
		"one whose dependent's definition was deleted":  {both(declares(plain), newWrite(t, 5, "delete", "clustermanagementaddons", "kafka", nil)), removed, ""},
		"one whose dependent's definition goes with it": {both(declares(plain), newWrite(t, 10, "delete", "clustermanagementaddons", "kafka", nil)), removed, ""},
		"one whose dependent was enabled again":         {both(declares(plain), created(11, "kafka")), removed, ""},
		"one with an alternative that stays":            {both(declares(alternative), created(1, "etcd")), removed, ""},
		"one with an alternative that was disabled":     {both(declares(alternative), created(1, "etcd"), disabled(9, "etcd")), removed, early},
		"one with an alternative that is disabled next": {both(declares(alternative), created(1, "etcd"), disabled(11, "etcd")), removed, ""},
		"an alternative that is removed first":          {both(declares(substitute)), removed, early},
		"one on a selected cluster":                     {both(declares(selected), labelled(0, "yes")), removed, early},
		"one on a cluster without the label":            {both(declares(selected), labelled(0, "no")), removed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(OrderViolations(tc.hub, tc.managed, "ns"), "\n")
			if got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
