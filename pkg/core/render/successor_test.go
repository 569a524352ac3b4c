package render

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestSuccessor(t *testing.T) {
	for name, test := range map[string]struct{ apiVersion, kind, want string }{
		"a disruption budget":                     {"policy/v1beta1", "PodDisruptionBudget", "policy/v1"},
		"a role":                                  {"rbac.authorization.k8s.io/v1beta1", "Role", "rbac.authorization.k8s.io/v1"},
		"a cron job":                              {"batch/v1beta1", "CronJob", "batch/v1"},
		"a kind that moved to another group":      {"extensions/v1beta1", "NetworkPolicy", "networking.k8s.io/v1"},
		"a version that is still served":          {"apps/v1", "Deployment", ""},
		"a version whose schema changed":          {"networking.k8s.io/v1beta1", "Ingress", ""},
		"a version with a kind that moved on":     {"networking.k8s.io/v1beta1", "IngressClass", "networking.k8s.io/v1"},
		"an alpha binding, whose subjects differ": {"rbac.authorization.k8s.io/v1alpha1", "RoleBinding", ""},
		"a custom kind":                           {"example.com/v1beta1", "CronJob", ""},
	} {
		t.Run(name, func(t *testing.T) {
			gvk := schema.FromAPIVersionAndKind(test.apiVersion, test.kind)
			got, ok := Successor(gvk)
			want, wantOK := gvk, test.want != ""
			if wantOK {
				want = schema.FromAPIVersionAndKind(test.want, test.kind)
			}
			if got != want || ok != wantOK {
				t.Errorf("got %s %v, want %s %v", got, ok, want, wantOK)
			}
		})
	}
}

func TestRemovalAdvice(t *testing.T) {
	for name, test := range map[string]struct{ apiVersion, kind, want string }{
		"an ingress must be rewritten": {"extensions/v1beta1", "Ingress",
			"extensions/v1beta1 Ingress is no longer served as of Kubernetes 1.22: use networking.k8s.io/v1, which has different fields"},
		"a kind without a replacement": {"policy/v1beta1", "PodSecurityPolicy",
			"policy/v1beta1 PodSecurityPolicy is no longer served as of Kubernetes 1.25 and has no replacement: remove it"},
		"a kind with a successor is not named":  {"policy/v1beta1", "PodDisruptionBudget", ""},
		"a version that is still served is not": {"networking.k8s.io/v1", "Ingress", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RemovalAdvice(schema.FromAPIVersionAndKind(test.apiVersion, test.kind)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestEveryRemovalOfKubernetesIsKnown compares the tables with the removals that the API's own types declare.
func TestEveryRemovalOfKubernetesIsKnown(t *testing.T) {
	// These kinds are never stored, so no package can hold them.
	fleeting := regexp.MustCompile("List$|Options$|Review$|^Scale$|^Eviction$|^DeploymentRollback$|^APIGroupDiscovery$")
	const latestMinor = 36 // the minor release of the control plane that Tandem is tested with
	known := 0
	for gvk, kind := range scheme.Scheme.AllKnownTypes() {
		ending, ends := reflect.New(kind).Interface().(interface{ APILifecycleRemoved() (int, int) })
		if !ends || fleeting.MatchString(gvk.Kind) {
			continue
		}
		major, minor := ending.APILifecycleRemoved()
		if minor > latestMinor {
			continue
		}
		known++
		r, ok := successors[gvk]
		if !ok {
			r, ok = changed[gvk]
		}
		if want := fmt.Sprintf("%d.%d", major, minor); !ok || r.since != want {
			t.Errorf("%s is removed in %s, the tables say %q", gvk, want, r.since)
		}
	}
	if known < 30 {
		t.Errorf("only %d removals were found", known)
	}
}

func TestNoVersionHasBothASuccessorAndAReplacementByHand(t *testing.T) {
	for gvk := range successors {
		if _, ok := changed[gvk]; ok {
			t.Errorf("%s stands in both tables", gvk)
		}
		if next, _ := Successor(gvk); successors[next] != (removal{}) || changed[next] != (removal{}) {
			t.Errorf("the successor of %s, %s, is removed as well", gvk, next)
		}
	}
}

func TestSuccessorKeepsTheMeaningOfADisruptionBudget(t *testing.T) {
	for name, test := range map[string]struct{ obj, want string }{
		"an empty selector selects nothing": {
			"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1, selector: {}}}",
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {maxUnavailable: 1}}",
		},
		"a selector of empty requirements selects nothing": {
			"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: {}, matchExpressions: [], x: null}}}",
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {}}",
		},
		"a selector stays": {
			"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: {a: b}}}}",
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: {a: b}}}}",
		},
		"a malformed selector is left for the API server": {
			"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: x}}}",
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {matchLabels: x}}}",
		},
		"without a spec": {"{apiVersion: policy/v1beta1, kind: PodDisruptionBudget}", "{apiVersion: policy/v1, kind: PodDisruptionBudget}"},
		"in the current version an empty selector selects everything": {
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {}}}",
			"{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {selector: {}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			obj := object(t, test.obj)
			if err := convertToSuccessor(obj); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, test.want), obj); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
