package sweep

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestInstancesThatMayContinueAreNeeded(t *testing.T) {
	instance := func(uid types.UID, annotations ...string) kudo.Instance {
		i := kudo.Instance{ObjectMeta: metav1.ObjectMeta{UID: uid, Annotations: map[string]string{}}}
		for at := 0; at < len(annotations); at += 2 {
			i.Annotations[annotations[at]] = annotations[at+1]
		}
		return i
	}
	got := neededUIDs([]kudo.Instance{instance("both"), instance("not yet mirrored")}, []kudo.Instance{
		instance("m1", kudo.AnnotationHubUID, "both"),
		instance("m2", kudo.AnnotationHubUID, "lost by the hub"),
		instance("m3", kudo.AnnotationHubUID, "being removed", kudo.AnnotationHubDeleted, "true"),
		instance("m4", kudo.AnnotationHubUID, "orphaned", kudo.AnnotationOrphaned, "true"),
		instance("m5", kudo.AnnotationHubUID, "released", kudo.AnnotationHubDeleted, "true", kudo.AnnotationOrphaned, "true"),
		instance("without a hub"),
	})
	want := []types.UID{"being removed", "both", "lost by the hub", "not yet mirrored", "orphaned", "without a hub"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("needed (-want +got):\n%s", diff)
	}
}
