package hubclient

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAdviceAboutPermissions(t *testing.T) {
	resource := schema.GroupResource{Group: "kudo.dev", Resource: "instances"}
	rbac := apierrors.NewForbidden(resource, "kafka", errors.New(`User "jane" cannot get resource "instances" in API group "kudo.dev"`))
	rbac.ErrStatus.Message = `instances.kudo.dev "kafka" is forbidden: User "jane" cannot get resource "instances" in API group "kudo.dev"`
	admission := apierrors.NewForbidden(resource, "kafka", errors.New("the add-on is protected"))
	for sentence, test := range map[string]struct {
		err  error
		want string
	}{
		"of the user":       {fmt.Errorf("reading: %w", rbac), "reading: " + rbac.Error() + ": 'kubectl addon check' lists what your user may do"},
		"refused otherwise": {admission, admission.Error()},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := Advise(test.err, "cluster1").Error(); got != test.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestStartedWaitsForTheKindsOfAHub(t *testing.T) {
	lacking, other := &meta.NoKindMatchError{}, errors.New("other")
	for sentence, test := range map[string]struct {
		reads []error
		// ready is the read from which on the hub is ready.
		ready int
		want  error
		count int
	}{
		"none lacks":                        {reads: []error{nil}, count: 1},
		"another problem is returned":       {reads: []error{other}, want: other, count: 1},
		"the hub is starting":               {reads: []error{lacking, lacking, lacking, lacking, lacking, lacking, nil}, ready: 6, count: 7},
		"the hub serves them a little late": {reads: []error{lacking, lacking, nil}, count: 3},
		"it is no hub":                      {reads: []error{lacking, lacking, lacking, lacking, lacking}, want: lacking, count: 4},
	} {
		t.Run(sentence, func(t *testing.T) {
			count := 0
			err := retryUntilStarted(t.Context(), 3*time.Microsecond, time.Microsecond, func() bool { return count > test.ready }, func() error {
				count++
				return test.reads[count-1]
			})
			if !errors.Is(err, test.want) || count != test.count {
				t.Errorf("got %v after %d reads", err, count)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := retryUntilStarted(ctx, time.Hour, time.Microsecond, func() bool { return false }, func() error { cancel(); return lacking })
	if !errors.Is(err, lacking) {
		t.Errorf("got %v after an interruption", err)
	}
}
