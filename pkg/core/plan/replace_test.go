package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// parseObject parses an object from YAML; nil for empty text.
func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestReplaceableKinds(t *testing.T) {
	for name, test := range map[string]struct {
		live               string
		replaceable, spent bool
	}{
		"nothing": {"", false, true},
		"a Job of another execution that runs": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {kudo.dev/last-plan-execution-uid: other}}}", true, false,
		},
		"a Job of another execution that has finished": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {succeeded: 1, conditions: [{type: Complete, status: 'True'}]}}", true, false,
		},
		"a Job of another execution that has failed": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Failed, status: 'True'}]}}", true, true,
		},
		"a Job of another execution that is on its way out": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a, deletionTimestamp: '2024-01-01T00:00:00Z'}}", true, true,
		},
		"a Job of this execution that has failed": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {kudo.dev/last-plan-execution-uid: this}}, status: {conditions: [{type: Failed, status: 'True'}]}}",
			false, true,
		},
		"a Pod":                  {"{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Failed}}", false, true},
		"another owner's Job":    {"{apiVersion: example.com/v1, kind: Job, metadata: {name: a}}", false, false},
		"a Deployment that runs": {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := plan.Object{Live: parseObject(t, test.live)}
			if got := o.CanReplace("this"); got != test.replaceable {
				t.Errorf("replaceable: got %v", got)
			}
			if got := o.IsSpent(); got != test.spent {
				t.Errorf("spent: got %v", got)
			}
		})
	}
}

func TestReplaceOutcome(t *testing.T) {
	job := parseObject(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: ns, deletionTimestamp: '2024-01-01T00:00:00Z'}}")
	for name, test := range map[string]struct {
		objects []plan.Object
		want    plan.Outcome
	}{
		"one is on its way out": {
			[]plan.Object{{}, {Live: job}},
			plan.Outcome{Status: kudo.Pending, Message: plan.DeleteOutcome([]plan.Object{{Live: job}}).Message + ", and will be re-created"},
		},
		"all are gone": {[]plan.Object{{}}, plan.Outcome{Status: kudo.Complete}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, plan.ReplaceOutcome(test.objects)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
