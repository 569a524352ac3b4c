package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusal is the response of an API server (Kubernetes 1.36) to a change of live into want by server-side apply.
type refusal struct {
	Live, Want map[string]any
	Status     metav1.Status
}

func refusals(t *testing.T) map[string]refusal {
	t.Helper()
	data, err := os.ReadFile("testdata/refusals.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]refusal
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRefusedNamesTheFieldsThatCannotChange(t *testing.T) {
	wants := map[string][]string{
		"the template of a Job":                             {"spec.template.spec"},
		"the completions of a Job and its template":         {"spec.completions", "spec.template.spec"},
		"the completions of an indexed Job":                 {"spec.completions"},
		"the template of a Job that is invalid as well":     nil,
		"the selector of a Deployment":                      {"spec.selector.matchLabels"},
		"the volume claim templates of a StatefulSet":       {"spec.volumeClaimTemplates"},
		"two fields of a StatefulSet":                       {"spec.podManagementPolicy", "spec.serviceName"},
		"a field of a StatefulSet that is no longer wanted": {"spec"},
		"the storage class of a volume claim":               {"spec.storageClassName"},
		"the size of a volume claim that is not bound":      {"spec.resources"},
		"the address of a Service":                          {"spec.clusterIPs[0]"},
		"a port that another Service has":                   nil,
		"the data of an immutable Secret":                   {"data"},
		"the type of a Secret":                              {"type"},
		"the data of an immutable ConfigMap":                {"data.a"},
		"the role of a RoleBinding":                         {"roleRef.name"},
		"the value of a PriorityClass":                      {"value"},
		"the parameters of a StorageClass":                  {"parameters.a"},
		"the controller of an IngressClass":                 {"spec.controller"},
		"the environment of a Pod":                          {"spec.containers"},
		"a field that a CustomResourceDefinition keeps":     {"spec.kept"},
		"what a policy denies":                              nil,
		"a field that does not exist":                       nil,
		"a namespace that does not exist":                   nil,
	}
	for name, r := range refusals(t) {
		t.Run(name, func(t *testing.T) {
			want, known := wants[name]
			if !known {
				t.Fatal("nothing is said about it here")
			}
			err := fmt.Errorf("applying: %w", &apierrors.StatusError{ErrStatus: r.Status})
			got := ToImmutableError(err, object(r.Live), object(r.Want))
			var immutable *ImmutableError
			if !errors.As(got, &immutable) {
				if want != nil {
					t.Errorf("got %v, want fields %q", got, want)
				}
				return
			}
			if diff := cmp.Diff(want, immutable.Fields); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !IsFinal(fmt.Errorf("applying: %w", got)) {
				t.Error("it is not final")
			}
			if other := ToImmutableError(err, nil, object(r.Want)); !errors.Is(other, err) {
				t.Errorf("what does not exist yet has no immutable fields, got %v", other)
			}
		})
		delete(wants, name)
	}
	for name := range wants {
		t.Errorf("no API server was asked about %s", name)
	}
}

func object(content map[string]any) *unstructured.Unstructured {
	if content == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

func TestRefusedLeavesOutTheValuesOfImmutableFields(t *testing.T) {
	all := refusals(t)
	for name, want := range map[string]string{
		"the role of a RoleBinding": "roleRef.name cannot be changed while the object exists: " +
			"delete the object and run the plan again, or give it another name in the package",
		"the completions of a Job and its template": "spec.completions, spec.template.spec cannot be changed while the object exists: " +
			"delete the object and run the plan again, or give it another name in the package",
		"the template of a Job that is invalid as well": `spec.template.spec.containers[0].name: Invalid value: "App": ` +
			"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
			"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
	} {
		t.Run(name, func(t *testing.T) {
			r := all[name]
			got := ToImmutableError(&apierrors.StatusError{ErrStatus: r.Status}, object(r.Live), object(r.Want))
			if diff := cmp.Diff(want, got.Error()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !IsFinal(got) {
				t.Error("it is not final")
			}
		})
	}
}

func TestWhatCannotBeChangedAndIsOnItsWayOutIsWaitedFor(t *testing.T) {
	r := refusals(t)["the storage class of a volume claim"]
	live := object(r.Live)
	live.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	got := ToImmutableError(&apierrors.StatusError{ErrStatus: r.Status}, live, object(r.Want))
	if !errors.Is(got, errBeingDeleted) || IsFinal(got) {
		t.Errorf("got %v, final: %v", got, IsFinal(got))
	}
}

func TestFinal(t *testing.T) {
	captured := refusals(t)
	status := func(name string) error { return &apierrors.StatusError{ErrStatus: captured[name].Status} }
	resource, kind := schema.GroupResource{Resource: "pods"}, schema.GroupKind{Kind: "Pod"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"an invalid object":                       {apierrors.NewInvalid(kind, "x", nil), true},
		"an invalid object beside immutable ones": {status("the template of a Job that is invalid as well"), true},
		"what a policy denies":                    {status("what a policy denies"), false},
		"what a webhook denies as bad":            {apierrors.NewBadRequest(`admission webhook "w.example.com" denied the request: no`), false},
		"what a webhook denies as invalid": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonInvalid, Message: `admission webhook "w.example.com" denied the request: no`, Code: 422}}, false},
		"a field that does not exist":              {status("a field that does not exist"), true},
		"an object that is too large":              {apierrors.NewRequestEntityTooLargeError("3 MB"), true},
		"a request that makes no sense":            {apierrors.NewBadRequest("no name"), true},
		"a kind that cannot be changed":            {apierrors.NewMethodNotSupported(resource, "patch"), true},
		"a port that another Service has":          {status("a port that another Service has"), false},
		"a namespace that does not exist":          {status("a namespace that does not exist"), false},
		"missing permissions, or a quota":          {apierrors.NewForbidden(resource, "x", errors.New("exceeded quota")), false},
		"an object that is being changed":          {apierrors.NewConflict(resource, "x", errors.New("it was modified")), false},
		"an API server that has too much to do":    {apierrors.NewTooManyRequestsError("later"), false},
		"a webhook that does not answer":           {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"a connection that was refused":            {errors.New("dial tcp: connection refused"), false},
		"an error that only looks like the schema": {errors.New("failed to create typed patch object"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsFinal(fmt.Errorf("applying: %w", test.err)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
