package health

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// broker returns a custom resource with a status.
func broker(status map[string]any) *unstructured.Unstructured {
	object := map[string]any{"apiVersion": "x.example.com/v1", "kind": "Broker", "metadata": map[string]any{
		"namespace": "ns", "name": "b", "generation": int64(2),
	}}
	if status != nil {
		object["status"] = status
	}
	return &unstructured.Unstructured{Object: object}
}

func TestByRule(t *testing.T) {
	deleted := broker(map[string]any{"phase": "Ready"})
	deleted.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	rule := kudo.HealthRule{Group: "x.example.com", Kind: "Broker",
		Healthy: "self.status.phase == 'Ready'", Failed: "self.status.phase == 'Broken'", Message: "self.status.why"}
	only := func(healthy, failed, message string) *kudo.HealthRule {
		return &kudo.HealthRule{Group: rule.Group, Kind: rule.Kind, Healthy: healthy, Failed: failed, Message: message}
	}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		rule   *kudo.HealthRule
		want   Result
	}{
		"healthy":                    {broker(map[string]any{"phase": "Ready", "why": "x"}), &rule, Result{Healthy, "is healthy", false}},
		"neither":                    {broker(map[string]any{"phase": "Starting", "why": "pulls\nimages"}), &rule, Result{Progressing, "is not healthy yet: pulls images", false}},
		"neither, without a message": {broker(map[string]any{"phase": "Starting"}), &rule, Result{Progressing, "is not healthy yet", false}},
		"no status yet":              {broker(nil), &rule, Result{Progressing, `is not healthy yet: there is no field "status"`, false}},
		"a field that is missing, with a message": {broker(map[string]any{"why": "starts"}), &rule, Result{Progressing, "is not healthy yet: starts", false}},
		"failed":                    {broker(map[string]any{"phase": "Broken", "why": "no quorum"}), &rule, Result{Failed, "no quorum", false}},
		"failed, without a message": {broker(map[string]any{"phase": "Broken"}), &rule, Result{Failed, "has failed", false}},
		"both: failed comes first":  {broker(nil), only("true", "true", "'both'"), Result{Failed, "both", false}},
		"a condition that contradicts the rule": {
			broker(map[string]any{"phase": "Ready", "conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}), &rule,
			Result{Healthy, "is healthy", false},
		},
		"an older generation that had failed": {broker(map[string]any{"phase": "Broken", "observedGeneration": int64(1)}), &rule,
			Result{Progressing, "generation 2 has not been observed yet", false}},
		"being deleted": {deleted, &rule, Result{Progressing, "is being deleted", false}},
		"a message that is long": {broker(nil), only("false", "", "'"+strings.Repeat("a", 1500)+"'"),
			Result{Progressing, "is not healthy yet: " + truncate(strings.Repeat("a", 1500)), false}},
		"an expression that is not valid": {broker(nil), only("self.", "", ""),
			Result{Unknown, `its health is not known: health of "Broker.x.example.com" in the package: healthy: line 1, column 6: Syntax error`, true}},
		"an expression that fails": {broker(map[string]any{"phase": int64(1)}), only("self.status.phase > 'a'", "", ""),
			Result{Unknown, `its health is not known: health of "Broker.x.example.com" in the package: healthy: no such overload`, true}},
		"failed that fails": {broker(map[string]any{"phase": int64(1)}), only("true", "self.status.phase > 'a'", ""),
			Result{Unknown, `its health is not known: health of "Broker.x.example.com" in the package: failed: no such overload`, true}},
		"no bool": {broker(map[string]any{"phase": "a"}), only("self.status.phase", "", ""),
			Result{Unknown, `its health is not known: health of "Broker.x.example.com" in the package: healthy: the result is not bool`, true}},
		"too expensive": {broker(nil), only("[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, "+
			"[0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, a >= 0 && b >= 0 && c >= 0 && d >= 0 && e >= 0)))))", "", ""),
			Result{Unknown, `its health is not known: health of "Broker.x.example.com" in the package: healthy: its cost for this object exceeds`, true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ByRule(tc.object, tc.rule)
			got.Message = strings.TrimPrefix(got.Message, "Broker ns/b: ")
			if tc.want.Blocked && strings.HasPrefix(got.Message, tc.want.Message) && strings.HasSuffix(got.Message, "; push a corrected version of the package") {
				got.Message = tc.want.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A rule for a Secret that admission has not refused shows nothing of its data.
func TestSecretsAreNotJudgedByRules(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "s", "namespace": "ns"}, "data": map[string]any{"password": "aHVudGVyMg=="}}}
	rules := []kudo.HealthRule{{Kind: "Secret", Healthy: "false", Message: "self.data.password"}}
	got := ByRule(secret, RuleOf(rules, secret))
	if strings.Contains(got.Message, "aHVudGVyMg") || got.Status != Unknown || !got.Blocked {
		t.Errorf("got %+v", got)
	}
}

func TestCheckRule(t *testing.T) {
	for name, tc := range map[string]struct {
		rule kudo.HealthRule
		want []RuleProblem
	}{
		"a valid rule":  {kudo.HealthRule{Group: "a.example.com", Kind: "A", Healthy: "self.x", Failed: "has(self.y)", Message: "'text'"}, nil},
		"no expression": {kudo.HealthRule{Group: "a.example.com", Kind: "A"}, []RuleProblem{{"healthy", "the expression is missing"}}},
		"no kind":       {kudo.HealthRule{Group: "a.example.com", Healthy: "true"}, []RuleProblem{{"kind", "the kind is missing"}}},
		"a Secret":      {kudo.HealthRule{Kind: "Secret", Healthy: "true"}, []RuleProblem{{"kind", "Secrets cannot be judged by expressions"}}},
		"a Deployment":  {kudo.HealthRule{Group: "apps", Kind: "Deployment", Healthy: "true"}, []RuleProblem{{"kind", "the kind is one of Kubernetes' own"}}},
		"an Instance":   {kudo.HealthRule{Group: "kudo.dev", Kind: "Instance", Healthy: "true"}, []RuleProblem{{"kind", "the kind has a rule of its own"}}},
		"a definition":  {kudo.HealthRule{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Healthy: "true"}, []RuleProblem{{"kind", "the kind is one of Kubernetes' own"}}},
		"an Ingress":    {kudo.HealthRule{Group: "networking.k8s.io", Kind: "Ingress", Healthy: "true"}, []RuleProblem{{"kind", "the kind is one of Kubernetes' own"}}},
		"a Gateway":     {kudo.HealthRule{Group: "gateway.networking.k8s.io", Kind: "Gateway", Healthy: "true"}, nil},
		"all wrong": {kudo.HealthRule{Group: "a.example.com", Kind: "A", Healthy: "'x'", Failed: "other.x", Message: "1"}, []RuleProblem{
			{"healthy", "the expression returns string and not bool"},
			{"failed", "line 1, column 1: undeclared reference to 'other'; the only variable is self"},
			{"message", "the expression returns int and not string"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := CheckRule(&tc.rule)
			for i := range got {
				if i < len(tc.want) && got[i].Field == tc.want[i].Field && strings.HasPrefix(got[i].Message, tc.want[i].Message) {
					got[i].Message = tc.want[i].Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
