package manifests

import (
	"cmp"
	"slices"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// builtIn lists the priority levels of Kubernetes that FlowSchemas of Tandem use.
var builtIn = []string{"leader-election", "workload-low"}

func TestPriorities(t *testing.T) {
	for _, folder := range []string{"hub", "agent"} {
		objects, err := Objects(FS, folder+"/*.yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		names := func(kind string) []string {
			var found []string
			for _, o := range objects {
				if o.GetKind() == kind {
					found = append(found, o.GetName())
				}
			}
			return found
		}
		schemas := flowSchemas(t, objects)
		if len(schemas) == 0 {
			t.Fatalf("%s: no FlowSchema", folder)
		}
		for _, s := range schemas {
			level := s.Spec.PriorityLevelConfiguration.Name
			if !slices.Contains(append(names("PriorityLevelConfiguration"), builtIn...), level) {
				t.Errorf("%s: FlowSchema %s refers to level %s, which does not exist", folder, s.Name, level)
			}
			for _, account := range accountsOf(s) {
				if account.Namespace != "tandem-system" || !slices.Contains(names("ServiceAccount"), account.Name) {
					t.Errorf("%s: FlowSchema %s refers to service account %s/%s, which does not exist", folder, s.Name, account.Namespace, account.Name)
				}
			}
		}
		if first := schemas[0]; !slices.Contains(first.Spec.Rules[0].ResourceRules[0].Resources, "leases") {
			t.Errorf("%s: FlowSchema %s precedes the leases", folder, first.Name)
		}
	}
}

// flowSchemas returns the FlowSchemas in the order in which the API server matches them.
func flowSchemas(t *testing.T, objects []*unstructured.Unstructured) []flowcontrolv1.FlowSchema {
	t.Helper()
	var found []flowcontrolv1.FlowSchema
	for _, o := range objects {
		if o.GetKind() != "FlowSchema" {
			continue
		}
		var s flowcontrolv1.FlowSchema
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &s, true); err != nil {
			t.Fatalf("FlowSchema %s: %v", o.GetName(), err)
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b flowcontrolv1.FlowSchema) int {
		return cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence)
	})
	return found
}

// accountsOf returns the service accounts to which a FlowSchema applies.
func accountsOf(s flowcontrolv1.FlowSchema) []flowcontrolv1.ServiceAccountSubject {
	var found []flowcontrolv1.ServiceAccountSubject
	for _, rule := range s.Spec.Rules {
		for _, subject := range rule.Subjects {
			if subject.ServiceAccount != nil {
				found = append(found, *subject.ServiceAccount)
			}
		}
	}
	return found
}
