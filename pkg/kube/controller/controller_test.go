package controller

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetriesAreSoonAgainAfterALongOutageOfAWholeFleet(t *testing.T) {
	const addOns, attempts = 2000, 30
	limiter := NewRateLimiter()
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

func TestRetryConflict(t *testing.T) {
	resource := schema.GroupResource{Resource: "instances"}
	conflict := fmt.Errorf("updating: %w", apierrors.NewConflict(resource, "a", nil))
	gone := apierrors.NewNotFound(resource, "a")
	forbidden := apierrors.NewForbidden(resource, "b", nil)
	postponed := fmt.Errorf("writing: %w", &PostponedError{For: time.Second})
	again := reconcile.Result{RequeueAfter: ConflictDelay}
	for sentence, test := range map[string]struct {
		err    error
		want   reconcile.Result
		failed bool
	}{
		"no error needs no retry":                                     {},
		"a conflict is retried soon":                                  {err: conflict, want: again},
		"an object that no longer exists is ignored":                  {err: gone},
		"another error is returned":                                   {err: forbidden, failed: true},
		"a conflict does not hide another error":                      {err: errors.Join(conflict, forbidden), failed: true},
		"an object that no longer exists does not hide another error": {err: errors.Join(gone, forbidden), failed: true},
		"a wrapped join is separated as well":                         {err: fmt.Errorf("children: %w", errors.Join(gone, forbidden)), failed: true},
		"an object that no longer exists does not hide a conflict":    {err: errors.Join(gone, conflict), want: again},
		"a postponed write is retried when it is due":                 {err: postponed, want: reconcile.Result{RequeueAfter: time.Second}},
		"a postponed write does not delay a retry":                    {err: errors.Join(postponed, conflict), want: again},
		"in any order": {err: errors.Join(conflict, postponed), want: again},
		"a postponed write does not hide another error": {err: errors.Join(postponed, forbidden), failed: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := RetryConflict(test.err)
			if got != test.want || (err != nil) != test.failed {
				t.Errorf("got %+v and error %v, want %+v", got, err, test.want)
			}
		})
	}
}
