package hub

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestLastWritesAreAwaited(t *testing.T) {
	at := func(version string) *addonv1alpha1.ManagedClusterAddOn {
		return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "a", ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		written string // the version that a write led to
		cached  string
		after   time.Duration
		want    time.Duration
	}{
		"nothing was written":                                    {cached: "9"},
		"the cache is behind the write":                          {written: "10", cached: "9", want: patience},
		"the cache is behind the write for some time":            {written: "10", cached: "9", after: patience - time.Second, want: time.Second},
		"the cache has the write":                                {written: "10", cached: "10"},
		"the cache is ahead of the write":                        {written: "10", cached: "11"},
		"the write changed nothing":                              {written: "9", cached: "9"},
		"the write never comes, as after a restore of the hub":   {written: "10", cached: "9", after: patience},
		"a version that cannot be compared is not waited for":    {written: "x", cached: "9"},
		"versions are numbers, of which the longer is the later": {written: "100", cached: "99", want: patience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newLastWrites()
				if tc.written != "" {
					w.note(at(tc.written))
				}
				<-time.After(tc.after) // in the time of synctest
				if got := w.awaits(at(tc.cached)); got != tc.want {
					t.Errorf("awaits it for %v, want %v", got, tc.want)
				}
				if tc.want == 0 && len(w.versions) > 0 {
					t.Errorf("what is not awaited is remembered: %v", w.versions)
				}
				w.forget(client.ObjectKeyFromObject(at(tc.cached)))
				if len(w.versions) > 0 {
					t.Errorf("what is gone is remembered: %v", w.versions)
				}
			})
		})
	}
}
