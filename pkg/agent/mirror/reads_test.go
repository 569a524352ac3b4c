package mirror

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestReadsAreSharedByInstancesThatWereSeenBefore(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := newSightings(func() time.Time { return now })
	seen := func(name, version string) *kudo.Instance {
		i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
		s.record().Create(event.CreateEvent{Object: i})
		return i
	}
	one, two := seen("one", "1"), seen("two", "2")
	now = now.Add(time.Second)
	r := newReads[string, string]()
	r.note("key", now, "value")
	now = now.Add(time.Second)
	unseen := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "two", ResourceVersion: "3"}}
	for name, tc := range map[string]struct {
		key      string
		instance *kudo.Instance
		want     bool
	}{
		"seen before the read":                             {"key", one, true},
		"another one seen before the read":                 {"key", two, true},
		"seen after the read":                              {"key", seen("three", "4"), false},
		"in the cache, in a version that was not reported": {"key", unseen, false},
		"another key":                                      {"other", one, false},
	} {
		if value, known := r.after(tc.key, s.of(tc.instance)); known != tc.want || known && value != "value" {
			t.Errorf("%s: %q, known %t, want %t", name, value, known, tc.want)
		}
	}
	if seen("two", "3"); s.of(unseen) != now {
		t.Errorf("seen at %s, want the last time: %s", s.of(unseen), now)
	}
	s.forget("one")
	s.forget("two")
	if s.forget("three"); len(s.byName) != 0 {
		t.Errorf("Instances are remembered for ever: %v", s.byName)
	}
}
