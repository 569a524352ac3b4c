package controller

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetriesAreSoonAgainAfterALongOutageOfAWholeFleet(t *testing.T) {
	const addOns, attempts = 2000, 30
	limiter := Retries()
	for attempt := range attempts {
		var pause time.Duration
		for i := range addOns {
			addOn := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: fmt.Sprint("cluster", i), Name: "a"}}
			last := limiter.When(addOn)
			if i > 0 && last != pause {
				t.Fatalf("attempt %d: add-on %d waits for %v, those before it for %v", attempt, i, last, pause)
			}
			pause = last
		}
		switch {
		case attempt == 0 && pause > 100*time.Millisecond:
			t.Errorf("the first retry comes after %v", pause)
		case attempt == attempts-1 && pause != time.Minute:
			t.Errorf("in the end, retries are %v apart", pause)
		}
	}
}
