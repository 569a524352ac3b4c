package outcome

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

func newObject(version, kind, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}}
}

// lacks returns the error of an object whose kind the cluster does not have.
func lacks(group, kind, version string) error {
	return fmt.Errorf("%s x: %w", kind, &meta.NoKindMatchError{
		GroupKind: schema.GroupKind{Group: group, Kind: kind}, SearchedVersions: []string{version},
	})
}

func TestOutcomesOfErrors(t *testing.T) {
	for what, test := range map[string]struct {
		err   error
		final bool
		want  kudo.ExecutionStatus
		ends  string
	}{
		"a request that may succeed later":                   {errors.New("timeout"), false, kudo.Error, "timeout"},
		"a request that is always rejected":                  {errors.New("invalid"), true, kudo.FatalError, "invalid"},
		"an object of another owner":                         {fmt.Errorf("x: %w", &plan.ForeignError{Live: newObject("v1", "ConfigMap", "c")}), false, kudo.FatalError, ""},
		"permissions that the policy refuses":                {fmt.Errorf("x: %w", &rights.Refused{}), false, kudo.FatalError, ""},
		"a kind that may be defined later":                   {lacks("example.com", "Widget", "v1"), false, kudo.Error, ": waiting for its CustomResourceDefinition"},
		"such a kind, whatever the request":                  {lacks("example.com", "Widget", "v1"), true, kudo.Error, ": waiting for its CustomResourceDefinition"},
		"a kind that Kubernetes itself would have":           {lacks("apps", "Widget", "v1"), false, kudo.FatalError, `version "apps/v1"`},
		"a version of a kind that Kubernetes has removed":    {lacks("policy", "PodSecurityPolicy", "v1beta1"), false, kudo.FatalError, "remove it"},
		"a resource that may be defined later":               {&meta.NoResourceMatchError{PartialResource: schema.GroupVersionResource{Resource: "widgets"}}, false, kudo.Error, awaitsDefinition},
		"an error that only mentions that there is no match": {errors.New("no matches for kind"), false, kudo.Error, "no matches for kind"},
	} {
		t.Run(what, func(t *testing.T) {
			got := OfError(test.err, test.final)
			if got.Status != test.want || !strings.HasSuffix(got.Message, test.ends) || got.Message == "" {
				t.Errorf("got %s: %s", got.Status, got.Message)
			}
		})
	}
}

func TestKindsThatTheClusterLacksMustBeDefinedByThePackage(t *testing.T) {
	widget, gadget := newObject("example.com/v1", "Widget", "w"), newObject("example.com/v1", "Gadget", "g")
	defines := func(kind schema.GroupKind) bool { return kind.Kind == "Widget" }
	instead := func(*unstructured.Unstructured) string { return "; the cluster serves it in version v2" }
	if err := CheckDefined([]*unstructured.Unstructured{widget}, defines, instead); err != nil {
		t.Errorf("it is defined: %v", err)
	}
	err := CheckDefined([]*unstructured.Unstructured{widget, gadget}, defines, instead)
	if want := "Gadget g: no matches for kind \"Gadget\" in version \"example.com/v1\"; the cluster serves it in version v2"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if !meta.IsNoMatchError(err) {
		t.Error("it is no missing kind")
	}
	want := plan.Outcome{Status: kudo.Error, Message: "Widget w: waiting for its CustomResourceDefinition; instead"}
	if diff := cmp.Diff(want, OfUndefined(widget, "; instead")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATaskWaitsUntilItsJobsHaveTheirTimeToLive(t *testing.T) {
	want := newObject("batch/v1", "Job", "j")
	want.Object["spec"] = map[string]any{"ttlSecondsAfterFinished": int64(0)}
	waits := plan.Outcome{Status: kudo.InProgress, Message: "Job j: has succeeded, which is being recorded"}
	if diff := cmp.Diff(waits, OfProvisional([]plan.Object{{Want: want, Live: want}, {Want: want, Live: plan.Provisional(want)}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(plan.Outcome{Status: kudo.Complete}, OfProvisional([]plan.Object{{Want: want, Live: want}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATaskWaitsUntilItsObjectsAreListed(t *testing.T) {
	wants := []*unstructured.Unstructured{newObject("example.com/v1", "Widget", "w")}
	for what, test := range map[string]struct {
		tracked []kudo.InventoryEntry
		again   []*unstructured.Unstructured
		err     error
		want    plan.Outcome
	}{
		"it waits": {again: wants, want: plan.Outcome{Status: kudo.Pending}},
		"unless the inventory is full": {
			tracked: make([]kudo.InventoryEntry, plan.MaxObjects+1), again: wants,
			want: Fatal(plan.CheckSize(make([]kudo.InventoryEntry, plan.MaxObjects+1), nil))},
		"unless it cannot be rendered again": {
			err: errors.New("broken"), want: plan.Outcome{Status: kudo.FatalError, Message: "broken"}},
		"unless its names change": {
			again: []*unstructured.Unstructured{newObject("example.com/v1", "Widget", "other"), newObject("v1", "ConfigMap", "w")},
			want:  plan.Outcome{Status: kudo.FatalError, Message: "Widget w: its name changes with every rendering"}},
	} {
		t.Run(what, func(t *testing.T) {
			again := func() ([]*unstructured.Unstructured, error) { return test.again, test.err }
			if diff := cmp.Diff(test.want, OfUnlisted(test.tracked, nil, wants, again)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOutcomesOfPods(t *testing.T) {
	for stage, want := range map[pipe.Stage]struct {
		step    PodStep
		outcome plan.Outcome
	}{
		pipe.Ready:    {ReadFiles, plan.Outcome{}},
		pipe.Working:  {AwaitPod, plan.Outcome{Status: kudo.InProgress, Message: "m"}},
		pipe.Retrying: {AwaitPod, plan.Outcome{Status: kudo.Error, Message: "m"}},
		pipe.Lost:     {ReplacePod, plan.Outcome{Status: kudo.Error, Message: "m; starting a new Pod"}},
		pipe.Failed:   {AwaitPod, plan.Outcome{Status: kudo.FatalError, Message: "m"}},
	} {
		step, outcome := OfPod(stage, "m")
		if diff := cmp.Diff(want.outcome, outcome); step != want.step || diff != "" {
			t.Errorf("%s: step %q (-want +got):\n%s", stage, step, diff)
		}
	}
}

func TestConversionFailures(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Message: "conversion webhook for example.com/v1, Kind=Widget failed:\nno endpoints"}}
	corrupt := apierrors.NewInternalError(errors.New("StorageError: corrupt object, Code: 7, Key: /example.com/widgets/a/b, ResourceVersion: 0, " +
		"AdditionalErrorMsg: object not decodable revision=1: " + refusal.ErrStatus.Message))
	denial := &apierrors.StatusError{ErrStatus: metav1.Status{Message: `admission webhook "a" denied the request: ` + refusal.ErrStatus.Message}}
	for what, test := range map[string]struct {
		err  error
		want string
	}{
		"no error":               {nil, ""},
		"a denial that quotes":   {denial, ""},
		"Kubernetes 1.37":        {corrupt, "conversion webhook for example.com/v1, Kind=Widget failed: no endpoints"},
		"another error":          {errors.New("conversion webhook for x failed"), ""},
		"another refusal":        {apierrors.NewBadRequest("bad"), ""},
		"a webhook without pods": {fmt.Errorf("reading: %w", refusal), "conversion webhook for example.com/v1, Kind=Widget failed: no endpoints"},
	} {
		if got := ConversionFailure(test.err); got != test.want {
			t.Errorf("%s: got %q", what, got)
		}
	}
}
