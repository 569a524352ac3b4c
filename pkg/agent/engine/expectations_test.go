package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// version is a ConfigMap as it was at a resource version.
func version(resourceVersion string) *unstructured.Unstructured {
	return nested("ConfigMap", resourceVersion, "metadata", "resourceVersion")
}

func TestACacheIsBehindUntilItShowsWhatWasSeen(t *testing.T) {
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
		"the newest, which was not seen last":  {[]string{"11", "10"}, "11", true, false},
		"what was seen last and is not newest": {[]string{"11", "10"}, "10", false, true},
		"another one, and they have no order":  {[]string{"a"}, "b", false, true},
		"the same one, and they have no order": {[]string{"a", "b"}, "b", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKnown()
			for _, v := range c.seen {
				k.see(version(v))
			}
			if upToDate, seen := k.upToDate(version(c.cached)); upToDate != c.upToDate || seen != (len(c.seen) > 0) {
				t.Errorf("up to date: want %v, got %v; seen: %v", c.upToDate, upToDate, seen)
			}
			created := event.TypedCreateEvent[client.Object]{Object: version(c.cached)}
			updated := event.TypedUpdateEvent[client.Object]{ObjectOld: version("1"), ObjectNew: version(c.cached)}
			if news := k.news(); news.Create(created) != c.news || news.Update(updated) != c.news {
				t.Errorf("news: want %v, got %v and %v", c.news, news.Create(created), news.Update(updated))
			}
			if !k.news().Delete(event.TypedDeleteEvent[client.Object]{Object: version(c.cached)}) {
				t.Error("a deletion is no news")
			}
		})
	}
}

func TestWhatWasSeenIsOfOneObject(t *testing.T) {
	k := newKnown()
	k.see(version("10"))
	other := version("9")
	other.SetName("other")
	secret := version("9")
	secret.SetKind("Secret")
	for _, o := range []*unstructured.Unstructured{other, secret} {
		if upToDate, seen := k.upToDate(o); !upToDate || seen {
			t.Errorf("%s %q: up to date %v, seen %v", o.GetKind(), o.GetName(), upToDate, seen)
		}
	}
}
