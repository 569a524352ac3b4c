package audit

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExclusions(t *testing.T) {
	// wrote is a write of an object of an Instance by a version; one without a version applies no object.
	wrote := func(verb, object, instance, version string) Entry {
		e := Entry{Verb: verb, RequestURI: "/" + object}
		e.ResponseStatus.Code = 200
		e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name = "configmaps", "ns", object
		if version != "" {
			e.RequestObject = json.RawMessage(fmt.Sprintf(`{"metadata":{"labels":{"kudo.dev/instance":%q,"kudo.dev/operator":%[1]q},`+
				`"annotations":{"kudo.dev/operator-version":%q}}}`, instance, version))
		}
		return e
	}
	failed := wrote("patch", "d", "zookeeper", "2")
	failed.ResponseStatus.Code = 409
	ofStatus := wrote("patch", "d", "zookeeper", "2")
	ofStatus.ObjectRef.Subresource = "status"
	patched := wrote("patch", "x", "", "")
	patched.RequestObject = json.RawMessage(`[{"op":"remove","path":"/metadata/finalizers/0"}]`)
	first := []Entry{wrote("patch", "x", "kafka", "1"), wrote("patch", "y", "kafka", "1"), wrote("patch", "d", "zookeeper", "1")}
	begins := "patch /d by : 200: zookeeper 2 begins to run while kafka 1 runs"
	for name, test := range map[string]struct {
		then []Entry
		want []string
	}{
		"what runs together":                          {nil, nil},
		"a version that is excluded":                  {[]Entry{wrote("patch", "d", "zookeeper", "2")}, []string{begins}},
		"one that is excluded by what is changing":    {[]Entry{wrote("patch", "x", "kafka", "2"), wrote("patch", "d", "zookeeper", "2")}, []string{begins}},
		"one after what excluded it is replaced":      {[]Entry{wrote("patch", "x", "kafka", "2"), wrote("patch", "y", "kafka", "2"), wrote("patch", "d", "zookeeper", "2")}, nil},
		"one after what excluded it is deleted":       {[]Entry{wrote("delete", "x", "", ""), wrote("delete", "y", "", ""), wrote("patch", "d", "zookeeper", "2")}, nil},
		"one that is excluded by what is deleted yet": {[]Entry{wrote("delete", "x", "", ""), wrote("patch", "d", "zookeeper", "2")}, []string{begins}},
		"a dependent that excludes what runs": {
			[]Entry{wrote("delete", "x", "", ""), wrote("delete", "y", "", ""), wrote("patch", "d", "zookeeper", "2"), wrote("patch", "x", "kafka", "1")},
			[]string{"patch /x by : 200: kafka 1 begins to run while zookeeper 2 runs"},
		},
		"what was not written":   {[]Entry{failed, ofStatus}, nil},
		"a patch that is a list": {[]Entry{patched, wrote("patch", "d", "zookeeper", "2")}, []string{begins}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Exclusions(append(first[:len(first):len(first)], test.then...), func(dependent, other Running) bool {
				return dependent == Running{"kafka", "kafka", "1"} && other.Instance == "zookeeper" && other.Version == "2"
			})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
