package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// version returns a ConfigMap at a resource version.
func version(resourceVersion string) *unstructured.Unstructured {
	return newObject("ConfigMap", resourceVersion, "metadata", "resourceVersion")
}

func TestWhatWasSeenIsOfOneObject(t *testing.T) {
	k := controller.NewExpectations(placeOf, maxRemembered)
	k.NoteIfNewer(version("10"))
	other := version("9")
	other.SetName("other")
	secret := version("9")
	secret.SetKind("Secret")
	for _, o := range []*unstructured.Unstructured{other, secret} {
		if upToDate, seen := k.UpToDate(o); !upToDate || seen {
			t.Errorf("%s %q: up to date %v, seen %v", o.GetKind(), o.GetName(), upToDate, seen)
		}
	}
}

func TestADeletedObjectInTheCache(t *testing.T) {
	cached := newObject("ConfigMap", "x", "metadata", "uid")
	for sentence, test := range map[string]struct {
		last            deletion
		exists, deleted bool
	}{
		"exists before its deletion":                {deletion{}, true, false},
		"is being deleted right after that":         {deletion{uid: "x", at: time.Now()}, true, true},
		"is gone once this was confirmed":           {deletion{uid: "x", at: time.Now().Add(-2 * missedDeletionDelay), gone: true}, false, false},
		"exists if another one of its name is gone": {deletion{uid: "y", at: time.Now(), gone: true}, true, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := (&objects{}).checkDeletion(t.Context(), cached, test.last)
			if err != nil || (got != nil) != test.exists || got != nil && (got.GetDeletionTimestamp() != nil) != test.deleted {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
