package engine

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/controller"
)

// version returns a ConfigMap at a resource version.
func version(resourceVersion string) *unstructured.Unstructured {
	return nested("ConfigMap", resourceVersion, "metadata", "resourceVersion")
}

func TestWhatWasSeenIsOfOneObject(t *testing.T) {
	k := controller.NewExpectations(placeOf, mostKnown)
	k.NoteNewest(version("10"))
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
