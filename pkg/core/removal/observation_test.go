package removal

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestOnlyAnInstanceThatNeverHadObjectsIsUntouched(t *testing.T) {
	for sentence, test := range map[string]struct {
		change func(*kudo.Instance)
		want   bool
	}{
		"nothing was recorded":                  {func(*kudo.Instance) {}, true},
		"an execution was recorded":             {func(i *kudo.Instance) { i.Status.Execution = &kudo.Execution{} }, false},
		"objects remain of a cancelled removal": {func(i *kudo.Instance) { i.Status.Inventory = make([]kudo.InventoryEntry, 1) }, false},
		"the inventory was restored": {func(i *kudo.Instance) {
			i.Annotations = map[string]string{kudo.AnnotationInventoryRestored: "true"}
		}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			instance := &kudo.Instance{}
			test.change(instance)
			if got := IsUntouched(instance); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
