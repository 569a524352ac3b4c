package audit

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// applyBy returns the write of an object of an Instance by a plan and a version, that many seconds after the first request.
func applyBy(t *testing.T, second int, object, instance, version, plan string) Entry {
	var o metav1.PartialObjectMetadata
	o.Labels = map[string]string{kudo.LabelInstance: instance, kudo.LabelOperator: instance}
	o.Annotations = map[string]string{kudo.AnnotationOperatorVersion: version, kudo.AnnotationPlan: plan}
	return newWrite(t, second, "patch", "configmaps", object, o)
}

func TestEarlyRemovals(t *testing.T) {
	first := newWrite(t, 0, "", "", "", nil)
	begin := first.RequestTime()
	removed := func(second int, object string) Entry { return newWrite(t, second, "delete", "configmaps", object, nil) }
	installed := []Entry{
		applyBy(t, 1, "zk", "zookeeper", "1", "deploy"), applyBy(t, 2, "kafka-a", "kafka", "1", "deploy"), applyBy(t, 3, "kafka-b", "kafka", "1", "deploy"),
	}
	inOrder := []Entry{removed(11, "kafka-a"), removed(12, "kafka-b"), removed(13, "zk")}
	both := map[string]int{"kafka": 10, "zookeeper": 10}
	chain := func(dependent, other string) bool { return dependent == "kafka" && other == "zookeeper" }
	none := func(string, string) bool { return false }
	for name, tc := range map[string]struct {
		then     []Entry
		deleted  map[string]int
		requires func(dependent, other string) bool
		early    bool
	}{
		"the dependent first":          {inOrder, both, chain, false},
		"the dependency first":         {[]Entry{removed(11, "zk"), removed(12, "kafka-a"), removed(13, "kafka-b")}, both, chain, true},
		"before the dependent is gone": {[]Entry{removed(11, "kafka-a"), removed(12, "zk"), removed(13, "kafka-b")}, both, chain, true},
		"plan cleanup before it is gone": {
			append([]Entry{applyBy(t, 11, "bye", "zookeeper", "1", "cleanup")}, inOrder...), both, chain, true,
		},
		"an update before it is gone": {
			append([]Entry{removed(10, "zk"), applyBy(t, 11, "zk", "zookeeper", "2", "deploy")}, inOrder...), both, chain, false,
		},
		"one that keeps an object, and whose mirror is gone": {
			[]Entry{removed(11, "kafka-a"), newWrite(t, 12, "delete", "instances", "kafka", nil), removed(13, "zk")}, both, chain, false,
		},
		"what does not depend on each other": {[]Entry{removed(11, "zk"), removed(12, "kafka-a")}, both, none, false},
		"a cycle":                            {[]Entry{removed(11, "zk"), removed(12, "kafka-a")}, both, func(string, string) bool { return true }, false},
		"a cycle over a third one": {
			[]Entry{removed(11, "zk"), removed(12, "kafka-a")}, map[string]int{"kafka": 10, "zookeeper": 10, "disk": 10},
			func(dependent, other string) bool {
				return chain(dependent, other) || dependent == "zookeeper" && other == "disk" || dependent == "disk" && other == "kafka"
			}, false,
		},
		"a dependent that stays":         {[]Entry{removed(14, "zk")}, map[string]int{"zookeeper": 10}, chain, false},
		"one that is deleted much later": {[]Entry{removed(14, "zk"), removed(16, "kafka-a")}, map[string]int{"zookeeper": 10, "kafka": 15}, chain, false},
		"one that is deleted soon after": {[]Entry{removed(14, "zk"), removed(16, "kafka-a")}, map[string]int{"zookeeper": 10, "kafka": 11}, chain, true},
		"a removal that has not started": {nil, both, chain, false},
	} {
		t.Run(name, func(t *testing.T) {
			deleted := map[string]time.Time{}
			for name, second := range tc.deleted {
				deleted[name] = begin.Add(time.Duration(second)*time.Second - 500*time.Millisecond)
			}
			got := EarlyRemovals(append(installed[:3:3], tc.then...), deleted, func(dependent, other string, _ time.Time) bool { return tc.requires(dependent, other) })
			if early := len(got) == 1 && strings.Contains(got[0], "the removal of zookeeper begins while kafka"); early != tc.early || len(got) > 1 {
				t.Errorf("got %q", got)
			}
		})
	}
}
