package mirror

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestAnInstanceIsReadLiveIfTheCacheMayBeStale(t *testing.T) {
	for what, test := range map[string]struct {
		edit func(s *situation)
		want bool
	}{
		"the mirror of this generation":        {func(*situation) {}, false},
		"the mirror of an earlier generation":  {func(s *situation) { s.Wanted.Generation = 8 }, false},
		"the mirror of a later generation":     {func(s *situation) { s.Wanted.Generation = 6 }, true},
		"of another Instance of that name":     {func(s *situation) { s.Wanted.Generation, s.Wanted.UID = 6, "later" }, false},
		"a request to cancel that is mirrored": {func(s *situation) { s.Mirror.Spec.PlanExecution = kudo.PlanExecution{UID: "c", Cancel: true} }, true},
		"a request to cancel that both have": {func(s *situation) {
			s.Mirror.Spec.PlanExecution = kudo.PlanExecution{UID: "c", Cancel: true}
			s.Wanted.Spec.PlanExecution = s.Mirror.Spec.PlanExecution
		}, false},
		"a request to cancel, and the next generation": {func(s *situation) {
			s.Mirror.Spec.PlanExecution, s.Wanted.Generation = kudo.PlanExecution{UID: "c", Cancel: true}, 8
		}, false},
		"another request": {func(s *situation) { s.Mirror.Spec.PlanExecution = kudo.PlanExecution{UID: "c", PlanName: "backup"} }, false},
		"no mirror of an Instance that has executed": {absent, true},
		"no mirror of a new Instance":                {edits(absent, func(s *situation) { s.Wanted.Status.Execution = nil }), false},
		"no Instance":                                {func(s *situation) { s.Wanted = nil }, false},
		"an orphan":                                  {func(s *situation) { s.Mirror.Annotations[kudo.AnnotationOrphaned] = "true" }, true},
		"an orphan of another Instance": {func(s *situation) {
			s.Mirror.Annotations[kudo.AnnotationOrphaned], s.Wanted.UID = "true", "later"
		}, false},
		"an orphan that was released by force": {edits(deleted, func(s *situation) {
			s.Mirror.Annotations[kudo.AnnotationOrphaned] = "true"
			s.Wanted.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
		}), false},
		"a removal of an Instance that is not deleted": {removing, true},
		"a removal": {edits(removing, deleted), false},
	} {
		s := &situation{Observation: Observation{Wanted: started(), Mirror: copied()}}
		test.edit(s)
		if got := NeedsLive(s.Wanted, s.Mirror); got != test.want {
			t.Errorf("%s: want %t, got %t", what, test.want, got)
		}
	}
}

func TestAMirrorIsHandedOver(t *testing.T) {
	for what, test := range map[string]struct {
		edit func(i *kudo.Instance)
		want bool
	}{
		"once it is copied":  {func(*kudo.Instance) {}, true},
		"not before":         {func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationHubGeneration) }, false},
		"not as an orphan":   {func(i *kudo.Instance) { i.Annotations[kudo.AnnotationOrphaned] = "" }, false},
		"for its removal":    {func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubDeleted] = "" }, true},
		"for a removal only": {func(i *kudo.Instance) { i.Annotations = map[string]string{kudo.AnnotationHubDeleted: ""} }, true},
		"not as the orphan of a partial removal": {func(i *kudo.Instance) {
			i.Annotations[kudo.AnnotationHubDeleted], i.Annotations[kudo.AnnotationOrphaned] = "", ""
		}, false},
	} {
		i := copied()
		if test.edit(i); HandedOver(i) != test.want {
			t.Errorf("%s: want %t", what, test.want)
		}
	}
}

func TestAProblemIsReportedUnlessItIsTemporary(t *testing.T) {
	resource := kudo.GroupVersion.WithResource("instances").GroupResource()
	terminating := apierrors.NewForbidden(resource, "kafka", errors.New("no"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for what, test := range map[string]struct {
		err  error
		want string
	}{
		"none":                     {nil, ""},
		"another one":              {errors.New("refused"), "refused"},
		"no connection":            {fmt.Errorf("reading: %w", &url.Error{Err: errors.New("refused")}), ""},
		"the end of the agent":     {context.Canceled, ""},
		"a deadline":               {fmt.Errorf("reading: %w", context.DeadlineExceeded), ""},
		"a timeout":                {apierrors.NewTimeoutError("slow", 1), ""},
		"a timeout of the server":  {apierrors.NewServerTimeout(resource, "get", 1), ""},
		"too many requests":        {apierrors.NewTooManyRequests("slow", 1), ""},
		"an error of the server":   {apierrors.NewInternalError(errors.New("no")), ""},
		"a server that is away":    {apierrors.NewServiceUnavailable("no"), ""},
		"a refusal":                {apierrors.NewForbidden(resource, "kafka", errors.New("no")), `instances.kudo.dev "kafka" is forbidden: no`},
		"a namespace that goes":    {fmt.Errorf("creating: %w", terminating), terminatingText("apps") + "; the plans run once it is gone"},
		"a namespace that is gone": {&NamespaceError{Name: "apps"}, (&NamespaceError{Name: "apps"}).Error()},
	} {
		if got := ProblemOf(started(), test.err); got != test.want {
			t.Errorf("%s: want %q, got %q", what, test.want, got)
		}
	}
}
