package controller

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

func TestWritesAreAwaited(t *testing.T) {
	at := func(version string) *addonv1alpha1.ManagedClusterAddOn {
		return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c", Name: "a", ResourceVersion: version}}
	}
	for name, tc := range map[string]struct {
		written string // the version after a write
		cached  string
		after   time.Duration
		want    time.Duration
	}{
		"nothing was written":                                    {cached: "9"},
		"the cache lacks the write":                              {written: "10", cached: "9", want: staleTimeout},
		"the cache lacks the write for some time":                {written: "10", cached: "9", after: staleTimeout - time.Second, want: time.Second},
		"the cache has the write":                                {written: "10", cached: "10"},
		"the cache is ahead of the write":                        {written: "10", cached: "11"},
		"the write changed nothing":                              {written: "9", cached: "9"},
		"the write never comes, as after a restore of the hub":   {written: "10", cached: "9", after: staleTimeout},
		"a version that cannot be compared is not waited for":    {written: "x", cached: "9"},
		"versions are numbers, of which the longer is the later": {written: "100", cached: "99", want: staleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWrites()
				if tc.written != "" {
					w.Note(at(tc.written))
				}
				<-time.After(tc.after) // in the time of synctest
				if got := w.WaitTime(at(tc.cached)); got != tc.want {
					t.Errorf("awaits it for %v, want %v", got, tc.want)
				}
				if tc.want == 0 && w.versions.Len() > 0 {
					t.Errorf("what is not awaited is remembered: %d", w.versions.Len())
				}
				w.Forget(client.ObjectKeyFromObject(at(tc.cached)))
				if w.versions.Len() > 0 {
					t.Errorf("what is gone is remembered: %d", w.versions.Len())
				}
			})
		})
	}
}

// configMap returns a ConfigMap at a resource version.
func configMap(resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", ResourceVersion: resourceVersion}}
}

func TestCacheIsStaleUntilItHasTheRecordedVersion(t *testing.T) {
	for name, c := range map[string]struct {
		seen           []string
		cached         string
		upToDate, news bool
	}{
		"nothing was seen":                     {nil, "9", true, true},
		"what was seen":                        {[]string{"10"}, "10", true, false},
		"something older":                      {[]string{"10"}, "9", false, true},
		"something newer":                      {[]string{"10"}, "11", true, true},
		"what was seen first":                  {[]string{"10", "11"}, "10", false, true},
		"what was seen last":                   {[]string{"10", "11"}, "11", true, false},
		"the latest, which was not seen last":  {[]string{"11", "10"}, "11", true, false},
		"what was seen last and is not latest": {[]string{"11", "10"}, "10", false, true},
		"another one, and they have no order":  {[]string{"a"}, "b", false, true},
		"the same one, and they have no order": {[]string{"a", "b"}, "b", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := NewExpectations(client.ObjectKeyFromObject, 2)
			for _, v := range c.seen {
				k.NoteIfNewer(configMap(v))
			}
			if upToDate, known := k.UpToDate(configMap(c.cached)); upToDate != c.upToDate || known != (len(c.seen) > 0) {
				t.Errorf("up to date: want %v, got %v; known: %v", c.upToDate, upToDate, known)
			}
			created := event.TypedCreateEvent[client.Object]{Object: configMap(c.cached)}
			updated := event.TypedUpdateEvent[client.Object]{ObjectOld: configMap("1"), ObjectNew: configMap(c.cached)}
			if news := k.News(); news.Create(created) != c.news || news.Update(updated) != c.news {
				t.Errorf("news: want %v, got %v and %v", c.news, news.Create(created), news.Update(updated))
			}
			if !k.News().Delete(event.TypedDeleteEvent[client.Object]{Object: configMap(c.cached)}) {
				t.Error("a deletion is no news")
			}
		})
	}
}
