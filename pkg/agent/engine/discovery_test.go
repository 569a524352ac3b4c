package engine

import (
	"maps"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestInstancesShareTheNextSearch(t *testing.T) {
	s := newSweeper(nil, nil)
	kafka, first := s.ask(instanceAt("kafka", "1"), "kafka", []schema.GroupKind{{Kind: "A"}})
	if !first {
		t.Error("no Instance starts the search that the first one waits for")
	}
	if redis, first := s.ask(instanceAt("redis", "1"), "redis", []schema.GroupKind{{Kind: "B"}}); redis != kafka || first {
		t.Error("the second Instance does not share the search that has not begun")
	}
	s.begin()
	want := map[schema.GroupKind]bool{{Kind: "A"}: true, {Kind: "B"}: true}
	if !maps.Equal(kafka.owners, map[string]bool{"kafka": true, "redis": true}) || !maps.Equal(kafka.kinds, want) || kafka.all {
		t.Errorf("it searches for %v in %v, all: %v", kafka.owners, kafka.kinds, kafka.all)
	}
	late, first := s.ask(instanceAt("nats", "1"), "nats", nil)
	if late == kafka || !first {
		t.Error("a search that has begun may have passed the objects of an Instance that asks later")
	}
	s.ask(instanceAt("etcd", "1"), "etcd", []schema.GroupKind{{Kind: "B"}})
	if !late.all {
		t.Error("an Instance that needs all kinds shares a search through some")
	}
}

func TestAnInstanceWaitsForTheSearchOfItsCurrentState(t *testing.T) {
	s := newSweeper(nil, nil)
	asked, _ := s.ask(instanceAt("kafka", "1"), "kafka", nil)
	s.begin()
	if again, first := s.ask(instanceAt("kafka", "1"), "kafka", nil); again != asked || first {
		t.Error("it asks again while it waits")
	}
	changed, first := s.ask(instanceAt("kafka", "2"), "kafka", nil)
	if changed == asked || !first {
		t.Error("it uses a search for an earlier state")
	}
	s.begin()
	s.forget(instanceAt("kafka", "2"))
	if next, first := s.ask(instanceAt("kafka", "2"), "kafka", nil); next == changed || !first {
		t.Error("it uses a search again that may be outdated")
	}
}

// instanceAt returns an Instance in a version.
func instanceAt(name, version string) *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: version}}
}

func TestAVersionThatIsNoLongerServedDoesNotHoldUpASearch(t *testing.T) {
	gadgets := schema.GroupVersion{Group: "example.com", Version: "v1alpha1"}
	for sentence, test := range map[string]struct {
		err  error
		want []string
	}{
		"it is no longer served":         {apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true), nil},
		"its API server does not answer": {apierrors.NewServiceUnavailable("dead"), []string{"example.com"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := slices.Collect(maps.Keys(undiscovered(map[schema.GroupVersion]error{gadgets: test.err})))
			if !slices.Equal(got, test.want) {
				t.Errorf("the search lacks groups %q, want %q", got, test.want)
			}
		})
	}
}
