package secret

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

func named(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func TestSecretsOfTheAgentAreReadForNoInstance(t *testing.T) {
	a := newAccess("tandem-system", named("elsewhere", "hub-kubeconfig"), rights.Policy{Reserved: []string{"kube-system"}}, nil)
	for secret, forbidden := range map[types.NamespacedName]bool{
		named("tandem-system", "tandem-digest-key"): true,
		named("elsewhere", "hub-kubeconfig"):        true,
		named("kube-system", "token"):               true,
		named("elsewhere", "other"):                 false,
		named("kafka", "hub-kubeconfig"):            false,
	} {
		if err := a.forbids(secret); (err != nil) != forbidden {
			t.Errorf("%s: %v", secret, err)
		}
	}
}

func TestTheIdentityOfPlansNeedsThePermission(t *testing.T) {
	secret := named("kafka", "s")
	permissions := func(name string) *kudo.Permissions {
		return &kudo.Permissions{Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"},
		}}}
	}
	_, refused := rights.Policy{Declared: true}.Actor(rights.Subject{})
	for sentence, test := range map[string]struct {
		reader           Reader
		refused, passing bool
	}{
		"the agent itself has it":                      {Reader{}, false, false},
		"a package that declares it":                   {Reader{Actor: rights.Actor{User: "u", Permissions: permissions("s")}}, false, false},
		"not one that declares another":                {Reader{Actor: rights.Actor{User: "u", Permissions: permissions("other")}}, true, false},
		"not an identity that is refused":              {Reader{Problem: refused}, true, false},
		"an identity that is not known yet is retried": {Reader{Problem: errors.New("timeout")}, true, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			err, passing := access{}.refuses(t.Context(), test.reader, secret)
			if (err != nil) != test.refused || passing != test.passing {
				t.Errorf("refused: %v, passing: %v", err, passing)
			}
		})
	}
}

func TestAKeyThatIsTooShortIsNone(t *testing.T) {
	for length, valid := range map[int]bool{0: false, 31: false, 32: true, 64: true} {
		key, got := keyIn(secretWith("", keyField, strings.Repeat("x", length)), 32)
		if got != valid || len(key.Bytes) != length {
			t.Errorf("%d bytes: %v, %d bytes", length, got, len(key.Bytes))
		}
	}
	if _, valid := keyIn(secretWith("", "other", strings.Repeat("x", 32)), 32); valid {
		t.Error("the bytes of another field are the key")
	}
}

func TestOnlyInstancesWithValuesHaveACopy(t *testing.T) {
	s := &Store{copies: map[types.UID]sensitive.Values{"a": {"id": "hunter2"}, "never had any": {}}}
	got, err := s.UIDs(t.Context())
	if diff := cmp.Diff([]types.UID{"a"}, got); err != nil || diff != "" {
		t.Errorf("%v, copies (-want +got):\n%s", err, diff)
	}
}

func TestInstancesWithSensitiveValuesConcernTheStore(t *testing.T) {
	started := func(f ...kudo.StartedParameterFrom) *kudo.Instance {
		i := instanceWith()
		i.Status.Execution = &kudo.Execution{ParametersFrom: f}
		return i
	}
	mirror, other := instanceWith(), instanceWith()
	mirror.UID, mirror.Annotations = "mirror", map[string]string{kudo.AnnotationHubUID: "hub"}
	other.UID = "other"
	s := &Store{copies: map[types.UID]sensitive.Values{"hub": {"id": "hunter2"}, "other": {}}}
	for sentence, test := range map[string]struct {
		instance *kudo.Instance
		want     bool
	}{
		"with a reference":                   {instanceWith(from("a", "s")), true},
		"with one of the last execution":     {started(kudo.StartedParameterFrom{}), true},
		"with a copy, by its uid on the hub": {mirror, true},
		"not with a copy of nothing":         {other, false},
		"not with an execution without any":  {started(), false},
	} {
		if got := s.Concerns(test.instance); got != test.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}

func TestASecretIsWatchedWhileAnInstanceUsesIt(t *testing.T) {
	stopped := map[string]int{}
	s := &Store{
		users:   map[types.NamespacedName]map[types.NamespacedName]bool{},
		watches: map[types.NamespacedName]*watching{},
		records: map[types.NamespacedName]*Record{},
	}
	for _, secret := range []string{"a", "b", "c"} {
		s.watches[named("ns", secret)] = &watching{stop: func() { stopped[secret]++ }}
	}
	use := func(secrets ...string) map[types.NamespacedName]bool {
		used := map[types.NamespacedName]bool{}
		for _, secret := range secrets {
			used[named("ns", secret)] = true
		}
		return used
	}
	one, two := named("ns", "one"), named("ns", "two")
	for _, step := range []struct {
		sentence string
		change   func()
		stopped  map[string]int
	}{
		{"one uses a and b", func() { s.follow(one, use("a", "b")) }, map[string]int{}},
		{"two uses b and c", func() { s.follow(two, use("b", "c")) }, map[string]int{}},
		{"one uses neither", func() { s.follow(one, use()) }, map[string]int{"a": 1}},
		{"two stays the same", func() { s.follow(two, use("b", "c")) }, map[string]int{"a": 1}},
		{"two no longer uses b", func() { s.follow(two, use("c")) }, map[string]int{"a": 1, "b": 1}},
		{"two is gone", func() { s.records[two] = newRecord(); s.Release(two) }, map[string]int{"a": 1, "b": 1, "c": 1}},
	} {
		step.change()
		if diff := cmp.Diff(step.stopped, stopped); diff != "" {
			t.Errorf("%s: stopped watches (-want +got):\n%s", step.sentence, diff)
		}
	}
	if len(s.watches)+len(s.users)+len(s.records) != 0 {
		t.Errorf("%d watches, %d users and %d records remain", len(s.watches), len(s.users), len(s.records))
	}
}

func TestAllCopiedValuesAreRead(t *testing.T) {
	stored := &corev1.Secret{Data: map[string][]byte{"a.1": []byte("x"), "b.2": []byte("y")}}
	if diff := cmp.Diff(sensitive.Values{"a.1": "x", "b.2": "y"}, valuesIn(stored)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
