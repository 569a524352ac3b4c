package sensitive_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

func key(t *testing.T, of byte) sensitive.Key {
	t.Helper()
	key, err := sensitive.NewKey(bytes.Repeat([]byte{of}, sensitive.KeyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func from(name, secret string) kudo.ParameterFrom {
	return kudo.ParameterFrom{Name: name, SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}
}

func TestDigestsIdentifyValues(t *testing.T) {
	a, b := key(t, 1), key(t, 2)
	of := a.Identify("ns", "app", from("P", "s"), "value")
	if of != a.Identify("ns", "app", from("P", "s"), "value") {
		t.Error("equal values have different digests")
	}
	if a.ID == b.ID {
		t.Error("different keys have one ID")
	}
	for name, other := range map[string]kudo.StartedParameterFrom{
		"another value":     a.Identify("ns", "app", from("P", "s"), "valuE"),
		"another parameter": a.Identify("ns", "app", from("Q", "s"), "value"),
		"another Instance":  a.Identify("ns", "ap", from("P", "s"), "pvalue"),
		"another namespace": a.Identify("n", "sapp", from("P", "s"), "value"),
		"another key":       b.Identify("ns", "app", from("P", "s"), "value"),
	} {
		if other.Digest == of.Digest {
			t.Errorf("%s has the same digest", name)
		}
	}
	if a.Identify("ns", "app", from("P", "elsewhere"), "value").Digest != of.Digest {
		t.Error("the place of a value changes its digest")
	}
	if _, err := sensitive.NewKey(make([]byte, sensitive.KeyBytes-1)); err == nil {
		t.Error("a short key is accepted")
	}
}

func TestRebase(t *testing.T) {
	old, current := key(t, 1), key(t, 2)
	identify := func(from kudo.ParameterFrom, value string) kudo.StartedParameterFrom {
		return current.Identify("ns", "app", from, value)
	}
	formerly := func(secret, value string) kudo.StartedParameterFrom {
		return old.Identify("ns", "app", from("P", secret), value)
	}
	now := func(secret, value string) kudo.StartedParameterFrom { return identify(from("P", secret), value) }
	for name, test := range map[string]struct {
		started, desired kudo.StartedParameterFrom
		known            map[kudo.StartedParameterFrom]string
		want             *kudo.StartedParameterFrom
	}{
		"nothing changes": {
			started: now("s", "value"), desired: now("s", "value"), known: map[kudo.StartedParameterFrom]string{now("s", "value"): "value"},
		},
		"another value is left to a plan": {
			started: now("s", "value"), desired: now("s", "other"),
			known: map[kudo.StartedParameterFrom]string{now("s", "value"): "value", now("s", "other"): "other"},
		},
		"a missing Secret changes nothing": {
			started: now("s", "value"), desired: kudo.StartedParameterFrom{ParameterFrom: from("P", "s")},
			known: map[kudo.StartedParameterFrom]string{now("s", "value"): "value"},
		},
		"an unchanged value at another place": {
			started: now("s", "value"), desired: now("t", "value"),
			known: map[kudo.StartedParameterFrom]string{now("s", "value"): "value"}, want: new(now("t", "value")),
		},
		"another key": {
			started: formerly("s", "value"), desired: now("s", "value"),
			known: map[kudo.StartedParameterFrom]string{formerly("s", "value"): "value"}, want: new(now("s", "value")),
		},
		"another key and another value: the old value, so that a plan follows": {
			started: formerly("s", "value"), desired: now("s", "other"),
			known: map[kudo.StartedParameterFrom]string{formerly("s", "value"): "value"}, want: new(now("s", "value")),
		},
		"another key and a lost copy": {
			started: formerly("s", "value"), desired: now("s", "other"), want: new(now("s", "other")),
		},
		"another key, a lost copy and a missing Secret": {
			started: formerly("s", "value"), desired: kudo.StartedParameterFrom{ParameterFrom: from("P", "s")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values := sensitive.Values{}
			for of, value := range test.known {
				values[sensitive.ID(of)] = value
			}
			var want []kudo.StartedParameterFrom
			if test.want != nil {
				want = []kudo.StartedParameterFrom{*test.want}
			}
			got := sensitive.Rebase([]kudo.StartedParameterFrom{test.started}, []kudo.StartedParameterFrom{test.desired}, values, current.ID, identify)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblem(t *testing.T) {
	for value, problem := range map[string]bool{
		"": true, "abc": true, " abc\n": true, "abcd": false, "\xff\xfe\xfd\xfc": true, string(make([]byte, sensitive.MaxBytes+1)): true,
	} {
		if got := sensitive.Problem([]byte(value)); (got != "") != problem {
			t.Errorf("%.10q: %q", value, got)
		}
	}
}
