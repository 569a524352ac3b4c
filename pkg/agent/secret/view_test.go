package secret

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

func newKey(t *testing.T, seed string) sensitive.Key {
	t.Helper()
	key, err := sensitive.NewKey([]byte(strings.Repeat(seed, sensitive.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// from returns the reference of a parameter to key "k" of a Secret.
func from(name, secret string) kudo.ParameterFrom {
	return kudo.ParameterFrom{Name: name, SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}
}

func instanceWith(references ...kudo.ParameterFrom) *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kafka"}, Spec: kudo.InstanceSpec{ParametersFrom: references}}
}

func secretWith(kind corev1.SecretType, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Type: kind, Data: map[string][]byte{key: []byte(value)}}
}

func TestTheValueOfAReference(t *testing.T) {
	refused := errors.New("no permission")
	for sentence, test := range map[string]struct {
		reference reference
		value     string
		problem   string
		isRefused bool
	}{
		"is that of its key": {reference{stored: secretWith(corev1.SecretTypeOpaque, "k", "hunter2")}, "hunter2", "", false},
		"is missing without its key": {
			reference{stored: secretWith(corev1.SecretTypeOpaque, "other", "hunter2")}, "", `Secret ns/s has no key "k": add it`, false,
		},
		"is not one that cannot be masked": {
			reference{stored: secretWith(corev1.SecretTypeOpaque, "k", "abc")}, "abc", `Secret ns/s, key "k": its value is shorter than 4 bytes`, false,
		},
		"is not that of a credential": {
			reference{stored: secretWith(corev1.SecretTypeServiceAccountToken, "k", "hunter2")}, "", "has type kubernetes.io/service-account-token", true,
		},
		"stays the one of the last execution if the Secret becomes a credential": {
			reference{stored: secretWith(corev1.SecretTypeBootstrapToken, "k", "hunter2"), kept: []byte("before")}, "before", "", true,
		},
		"stays the one of the last execution if the permission is lost": {reference{refused: refused, kept: []byte("before")}, "before", "", true},
		"is not read without permission":                                {reference{refused: refused}, "", "no permission", true},
		"is not the one of the last execution if the Secret is missing": {
			reference{problem: "Secret ns/s does not exist", kept: []byte("before")}, "", "Secret ns/s does not exist", false,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.reference.ParameterFrom, test.reference.secret = from("a", "s"), types.NamespacedName{Namespace: "ns", Name: "s"}
			value, problem, refused := test.reference.value()
			if string(value) != test.value || !strings.Contains(problem, test.problem) || (problem == "") != (test.problem == "") ||
				(refused != nil) != test.isRefused {
				t.Errorf("value %q, problem %q, refused: %v", value, problem, refused)
			}
		})
	}
}

func TestAViewHasTheCurrentValues(t *testing.T) {
	key := newKey(t, "a")
	i := instanceWith(from("a", "s"), from("b", "s"), from("c", "s"))
	copied := sensitive.Values{"id": "of a former execution"}
	v := newView(i, key, []reference{
		{ParameterFrom: i.Spec.ParametersFrom[0], stored: secretWith("", "k", "value of a")},
		{ParameterFrom: i.Spec.ParametersFrom[1], problem: "Secret ns/s does not exist"},
		{ParameterFrom: i.Spec.ParametersFrom[2], refused: errors.New("no permission"), kept: []byte("value of c")},
	}, copied)
	want := []kudo.StartedParameterFrom{
		key.Identify("ns", "kafka", i.Spec.ParametersFrom[0], "value of a"),
		{ParameterFrom: i.Spec.ParametersFrom[1]},
		key.Identify("ns", "kafka", i.Spec.ParametersFrom[2], "value of c"),
	}
	if diff := cmp.Diff(want, v.From); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
	values := sensitive.Values{"id": copied["id"], sensitive.ID(want[0]): "value of a", sensitive.ID(want[2]): "value of c"}
	if diff := cmp.Diff(values, v.Values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if v.Unresolved != `parameter "b": Secret ns/s does not exist` || v.Refused != `parameter "c": no permission` {
		t.Errorf("unresolved %q, refused %q", v.Unresolved, v.Refused)
	}
}

func TestAViewIsReadAgain(t *testing.T) {
	refused := errors.New("the API server does not respond")
	for sentence, test := range map[string]struct {
		references []reference
		want       time.Duration
	}{
		"never, if all values are known":                      {[]reference{{stored: secretWith("", "k", "hunter2")}}, 0},
		"never, if only a change of the Secret can help":      {[]reference{{problem: "it does not exist"}}, 0},
		"never, if only a change of the permissions can help": {[]reference{{refused: refused}}, 0},
		"soon, if nothing starts until then":                  {[]reference{{refused: refused, passing: true}}, retryInterval},
		"soon, if the Secret cannot be read":                  {[]reference{{problem: "timeout", passing: true}, {stored: secretWith("", "k", "hunter2")}}, retryInterval},
		"later, if the value of the last execution is in use": {[]reference{{refused: refused, passing: true, kept: []byte("before")}}, refusedInterval},
		"soon, if another value is missing beside a kept one": {[]reference{{refused: refused, passing: true, kept: []byte("before")}, {problem: "gone"}}, retryInterval},
	} {
		t.Run(sentence, func(t *testing.T) {
			i := instanceWith()
			for at := range test.references {
				test.references[at].ParameterFrom = from(string(rune('a'+at)), "s")
				i.Spec.ParametersFrom = append(i.Spec.ParametersFrom, test.references[at].ParameterFrom)
			}
			if v := newView(i, newKey(t, "a"), test.references, nil); v.After != test.want {
				t.Errorf("after %v, want %v", v.After, test.want)
			}
		})
	}
}

func TestAllValuesTogetherAreLimited(t *testing.T) {
	i := instanceWith(from("a", "s"), from("b", "s"), from("c", "s"))
	var references []reference
	for _, f := range i.Spec.ParametersFrom {
		references = append(references, reference{ParameterFrom: f, stored: secretWith("", "k", strings.Repeat("x", sensitive.MaxBytes/2))})
	}
	v := newView(i, newKey(t, "a"), references, nil)
	if !strings.HasPrefix(v.Unresolved, `parameter "c": all sensitive values together have more than `) || v.From[1].Digest == "" || v.From[2].Digest != "" {
		t.Errorf("unresolved %q, references %v", v.Unresolved, v.From)
	}
}

func TestAViewComparesWithTheLastExecution(t *testing.T) {
	key, former := newKey(t, "a"), newKey(t, "b")
	here, moved := from("a", "s"), from("a", "elsewhere")
	execution := func(key sensitive.Key, value string) kudo.StartedParameterFrom {
		return key.Identify("ns", "kafka", here, value)
	}
	kept := func(started kudo.StartedParameterFrom, value string) sensitive.Values {
		return sensitive.Values{sensitive.ID(started): value}
	}
	for sentence, test := range map[string]struct {
		spec    kudo.ParameterFrom
		current string // the value in the Secret; empty if it does not exist
		started kudo.StartedParameterFrom
		copied  sensitive.Values
		rebased []kudo.StartedParameterFrom
		lost    bool
	}{
		"nothing changes with the same value": {here, "hunter2", execution(key, "hunter2"), nil, nil, false},
		"a changed value is another execution's": {
			here, "changed", execution(key, "hunter2"), kept(execution(key, "hunter2"), "hunter2"), nil, false,
		},
		"the same value in another place is no change": {
			moved, "hunter2", execution(key, "hunter2"), kept(execution(key, "hunter2"), "hunter2"),
			[]kudo.StartedParameterFrom{key.Identify("ns", "kafka", moved, "hunter2")}, false,
		},
		"the same value with another key is no change": {
			here, "", execution(former, "hunter2"), kept(execution(former, "hunter2"), "hunter2"),
			[]kudo.StartedParameterFrom{execution(key, "hunter2")}, false,
		},
		"the current value replaces a lost one": {
			here, "hunter2", execution(former, "hunter2"), nil, []kudo.StartedParameterFrom{execution(key, "hunter2")}, false,
		},
		"a value that is nowhere is lost": {here, "", execution(key, "hunter2"), nil, nil, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			i := instanceWith(test.spec)
			i.Status.Execution = &kudo.Execution{Plan: "deploy", ParametersFrom: []kudo.StartedParameterFrom{test.started}}
			r := reference{ParameterFrom: test.spec, problem: "it does not exist"}
			if test.current != "" {
				r.problem, r.stored = "", secretWith("", "k", test.current)
			}
			v := newView(i, key, []reference{r}, test.copied)
			if diff := cmp.Diff(test.rebased, v.Rebased); diff != "" {
				t.Errorf("rebased (-want +got):\n%s", diff)
			}
			if (v.Lost != "") != test.lost || test.lost && !strings.Contains(v.Lost, `parameters a are lost`) {
				t.Errorf("lost: %q", v.Lost)
			}
		})
	}
}

func TestOnlyTheValueFromTheSamePlaceIsKept(t *testing.T) {
	key, here := newKey(t, "a"), from("a", "s")
	started := key.Identify("ns", "kafka", here, "hunter2")
	copied := sensitive.Values{sensitive.ID(started): "hunter2"}
	otherKey := here
	otherKey.SecretKeyRef.Key = "other"
	for sentence, test := range map[string]struct {
		started []kudo.StartedParameterFrom
		from    kudo.ParameterFrom
		copied  sensitive.Values
		want    string
	}{
		"of the last execution":       {[]kudo.StartedParameterFrom{key.Identify("ns", "kafka", from("b", "s"), "other"), started}, here, copied, "hunter2"},
		"not of another Secret":       {[]kudo.StartedParameterFrom{started}, from("a", "elsewhere"), copied, ""},
		"not of another key":          {[]kudo.StartedParameterFrom{started}, otherKey, copied, ""},
		"not of another name":         {[]kudo.StartedParameterFrom{started}, from("b", "s"), copied, ""},
		"not a lost one":              {[]kudo.StartedParameterFrom{started}, here, nil, ""},
		"not one that was not in use": {nil, here, copied, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			i := instanceWith(test.from)
			i.Status.Execution = &kudo.Execution{ParametersFrom: test.started}
			if got := keptValue(i, test.from, test.copied); string(got) != test.want || (got == nil) != (test.want == "") {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if i.Status.Execution = nil; keptValue(i, test.from, test.copied) != nil {
				t.Error("a value is kept without an execution")
			}
		})
	}
}

func TestTheCopyHasTheValuesInUse(t *testing.T) {
	key := newKey(t, "a")
	now, before := key.Identify("ns", "kafka", from("a", "s"), "now"), key.Identify("ns", "kafka", from("a", "s"), "before")
	values := sensitive.Values{sensitive.ID(now): "now", sensitive.ID(before): "before", "next": "not started yet"}
	copied := sensitive.Values{sensitive.ID(before): "before"}
	for status, want := range map[kudo.ExecutionStatus]sensitive.Values{
		kudo.InProgress: {sensitive.ID(now): "now", sensitive.ID(before): "before"}, // objects still hold it
		kudo.Complete:   {sensitive.ID(now): "now"},
	} {
		i := instanceWith()
		i.Status.Execution = &kudo.Execution{Plan: "update", ParametersFrom: []kudo.StartedParameterFrom{now}}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{"update": {Status: status}, "deploy": {Status: kudo.Complete}}
		if diff := cmp.Diff(want, usedValues(i, values, copied)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
		i.Status.Former = &kudo.FormerVersion{ParametersFrom: []kudo.StartedParameterFrom{before}}
		both := sensitive.Values{sensitive.ID(now): "now", sensitive.ID(before): "before"}
		if diff := cmp.Diff(both, usedValues(i, values, copied)); diff != "" {
			t.Errorf("%s, with a former version (-want +got):\n%s", status, diff)
		}
	}
}
