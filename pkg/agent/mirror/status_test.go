package mirror

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestNotesBelongToOneInstance(t *testing.T) {
	n := NewStatuses()
	one := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka", UID: "one"}}
	next := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: "kafka", UID: "next"}}
	n.SetProblem(one, "refused")
	n.SetRemoved(one)
	n.SetRemoved(one)
	if got, want := n.Get(one), (Status{uid: "one", Removed: true, Problem: "refused"}); got != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
	if got := len(n.Changed); got != 2 {
		t.Errorf("want one event for each change, got %d", got)
	}
	if got, want := n.Get(next), (Status{uid: "next"}); got != want {
		t.Errorf("want nothing of the next of that name, got %+v", got)
	}
	n.SetProblem(next, "")
	if n.Forget("kafka"); len(n.byName) != 0 {
		t.Errorf("it is remembered for ever: %+v", n.byName)
	}
}
