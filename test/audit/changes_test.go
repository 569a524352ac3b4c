package audit

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func TestWritesThatChangeNothingAreNoChanges(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	// wrote is a request of user after that many seconds to an object that was then stored with that version.
	wrote := func(second int, user, verb, resource, version string) Entry {
		e := Entry{Verb: verb, RequestReceivedTimestamp: metav1.NewMicroTime(start.Add(time.Duration(second) * time.Second))}
		e.User.Username, e.ResponseStatus.Code = user, 200
		e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name = resource, "ns", "x"
		e.ResponseObject = json.RawMessage(fmt.Sprintf(`{"metadata":{"resourceVersion":%q}}`, version))
		return e
	}
	of := func(e Entry, change func(*Entry)) Entry { change(&e); return e }
	leases := Author{User: "a", Kind: schema.GroupResource{Resource: "leases"}, Object: types.NamespacedName{Namespace: "ns", Name: "x"}}
	for name, test := range map[string]struct {
		entries []Entry
		want    map[Author]Count
	}{
		"a write is a change": {
			[]Entry{wrote(11, "a", "update", "leases", "7")}, map[Author]Count{leases: {1, 1}},
		},
		"one that leaves the object as it is stored is none": {
			[]Entry{wrote(11, "a", "update", "leases", "7"), wrote(12, "a", "patch", "leases", "7")}, map[Author]Count{leases: {2, 1}},
		},
		"one after another writer's is one": {
			[]Entry{wrote(1, "a", "update", "leases", "7"), wrote(2, "b", "update", "leases", "8"), wrote(11, "a", "update", "leases", "9")},
			map[Author]Count{leases: {1, 1}},
		},
		"what was stored before the time counts": {
			[]Entry{wrote(1, "b", "update", "leases", "7"), wrote(11, "a", "update", "leases", "7")}, map[Author]Count{leases: {1, 0}},
		},
		"a status is the object's": {
			[]Entry{
				wrote(1, "b", "update", "leases", "7"),
				of(wrote(11, "a", "patch", "leases", "8"), func(e *Entry) { e.ObjectRef.Subresource = "status" }),
				wrote(12, "a", "patch", "leases", "8"),
			},
			map[Author]Count{leases: {2, 1}},
		},
		"a deletion is a change": {
			[]Entry{wrote(11, "a", "delete", "leases", "")}, map[Author]Count{leases: {1, 1}},
		},
		"what stores nothing is none": {
			[]Entry{of(wrote(11, "a", "create", "leases", ""), func(e *Entry) { e.ResponseObject = nil })}, map[Author]Count{leases: {1, 0}},
		},
		"events are counted together": {
			[]Entry{
				of(wrote(11, "a", "create", "events", "7"), func(e *Entry) { e.ObjectRef.APIGroup = "events.k8s.io" }),
				of(wrote(12, "a", "patch", "events", "8"), func(e *Entry) { e.ObjectRef.Name = "y" }),
			},
			map[Author]Count{{User: "a", Kind: schema.GroupResource{Resource: "events"}, Object: types.NamespacedName{Namespace: "ns"}}: {2, 2}},
		},
		"what is refused or only read is nothing": {
			[]Entry{wrote(11, "a", "get", "leases", "7"), of(wrote(11, "a", "update", "leases", ""), func(e *Entry) { e.ResponseStatus.Code = 409 })},
			map[Author]Count{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ChangesIn(test.entries, start.Add(10*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
