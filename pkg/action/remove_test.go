package action

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestDescendants(t *testing.T) {
	instance := func(name, parent string) kudo.Instance {
		i := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}}
		if parent != "" {
			i.OwnerReferences = []metav1.OwnerReference{{Kind: "Instance", Name: parent, UID: types.UID("uid-of-" + parent), Controller: ptr.To(true)}}
		}
		return i
	}
	instances := []kudo.Instance{
		instance("aa.bb.ee", "aa.bb"), instance("aa", ""), instance("zz", ""), instance("aa.bb", "aa"), instance("zz.yy", "zz"), instance("aa.cc", "aa"),
	}
	var names []string
	for _, i := range Descendants(&instances[1], instances) {
		names = append(names, i.Name)
	}
	if diff := cmp.Diff([]string{"aa.bb", "aa.bb.ee", "aa.cc"}, names); diff != "" {
		t.Error(diff)
	}

	cycle := []kudo.Instance{instance("one", "two"), instance("two", "one")}
	if found := Descendants(&cycle[0], cycle); len(found) != 1 || found[0].Name != "two" {
		t.Errorf("owner references that form a cycle: found %d Instances below the first", len(found))
	}
}
