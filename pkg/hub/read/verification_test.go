package read

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// empty returns an OperatorVersion that lacks everything.
func empty(uid types.UID) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{UID: uid}}
}

func TestVerificationsAreRememberedByUID(t *testing.T) {
	v := NewVerifications()
	first := v.Of(empty("a"))
	if len(first) == 0 {
		t.Fatal("an empty OperatorVersion has no problems")
	}
	// A second check would report the other operator: only the uid is compared.
	known := empty("a")
	known.Spec.Operator.Name = "kafka"
	if again := v.Of(known); len(again) != len(first) {
		t.Errorf("got %d problems, %d at first: it was checked again", len(again), len(first))
	}
	other := known.DeepCopy()
	other.UID = "b"
	if replaced := v.Of(other); len(replaced) != len(first)-1 {
		t.Errorf("got %d problems of another OperatorVersion, want %d", len(replaced), len(first)-1)
	}
}

func TestVerificationsForgetWhatIsGone(t *testing.T) {
	v := NewVerifications()
	v.Of(empty("a"))
	v.Forget("a")
	v.Forget("never known")
	if left := v.problems.Len(); left != 0 {
		t.Errorf("%d are remembered", left)
	}
	if problems := v.Of(nil); problems != nil || v.problems.Len() != 0 {
		t.Errorf("an OperatorVersion that does not exist has problems: %v", problems)
	}
}

func TestVerificationsAreBounded(t *testing.T) {
	v := NewVerifications()
	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			for i := range verificationLimit {
				v.Of(empty(types.UID(fmt.Sprint(worker, i))))
			}
		})
	}
	workers.Wait()
	if n := v.problems.Len(); n != verificationLimit {
		t.Errorf("%d are remembered, want %d", n, verificationLimit)
	}
}
