package parameter_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

func TestParseReference(t *testing.T) {
	for text, want := range map[string]kudo.SecretKeyRef{
		"secret:db/password":      {Name: "db", Key: "password"},
		"secret:a.b-c/tls.KEY_1":  {Name: "a.b-c", Key: "tls.KEY_1"},
		"hunter2":                 {},
		"secret:":                 {},
		"secret:hunter2":          {},
		"secret:/hunter2":         {},
		"secret:Hunter2/password": {},
		"secret:db/hunter2/x":     {},
		"secret:db/hunter2 ":      {},
		"Secret:db/hunter2":       {},
		" secret:db/hunter2":      {},
		"secret:../hunter2":       {},
	} {
		t.Run(text, func(t *testing.T) {
			got, err := parameter.ParseReference(text)
			if got != want || (err == nil) != (want != kudo.SecretKeyRef{}) {
				t.Errorf("got %v, %v", got, err)
			}
			if err != nil && strings.Contains(err.Error(), "unter2") {
				t.Error(err)
			}
			if err == nil && parameter.ReferenceText(got) != text {
				t.Errorf("is %s again", parameter.ReferenceText(got))
			}
		})
	}
}

func TestSensitiveParametersAreGivenByReference(t *testing.T) {
	version := &kudo.OperatorVersionSpec{Parameters: []kudo.Parameter{
		{Name: "S", Sensitive: new(true), Required: new(true)}, {Name: "O", Sensitive: new(true)}, {Name: "P", Default: ptr.To("x")},
	}}
	ref := func(names ...string) (from []kudo.ParameterFrom) {
		for _, name := range names {
			from = append(from, kudo.ParameterFrom{Name: name, SecretKeyRef: kudo.SecretKeyRef{Name: "s", Key: "k"}})
		}
		return from
	}
	for name, test := range map[string]struct {
		given map[string]string
		from  []kudo.ParameterFrom
		want  string
	}{
		"a reference":              {nil, ref("S"), ""},
		"all references":           {map[string]string{"P": "p"}, ref("S", "O"), ""},
		"nothing":                  {nil, nil, `parameter "S": required and sensitive: refer to a Secret on the managed cluster (spec.parametersFrom, or -p S=secret:NAME/KEY)`},
		"a plain value":            {map[string]string{"S": "hunter2"}, nil, `parameter "S": sensitive: a value in spec.parameters is rejected: remove it, and refer to a Secret on the managed cluster (spec.parametersFrom, or -p S=secret:NAME/KEY)`},
		"a plain value, too":       {map[string]string{"O": "hunter2"}, ref("S", "O"), `parameter "O": sensitive: a value in spec.parameters is rejected: remove it, and refer to a Secret on the managed cluster (spec.parametersFrom, or -p O=secret:NAME/KEY)`},
		"one that is plain":        {nil, ref("S", "P"), `parameter "P": not sensitive: only a sensitive parameter can refer to a Secret (spec.parametersFrom): set a value in spec.parameters`},
		"one that is misspelt":     {nil, ref("S", "s"), `parameter "s": not defined: did you mean S?`},
		"one that is listed twice": {nil, ref("S", "S"), `parameter "S": spec.parametersFrom lists it twice: remove one`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := parameter.Validate(version, test.given, test.from); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReferences(t *testing.T) {
	definitions := []kudo.Parameter{{Name: "S", Sensitive: new(true)}, {Name: "A", Sensitive: new(true)}, {Name: "P"}}
	plain, from, problems := parameter.References(definitions, map[string]string{"S": "secret:s/k", "A": "hunter2", "P": "secret:p/k", "X": "x"})
	if diff := cmp.Diff(map[string]string{"P": "secret:p/k", "X": "x"}, plain); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]kudo.ParameterFrom{{Name: "S", SecretKeyRef: kudo.SecretKeyRef{Name: "s", Key: "k"}}}, from); diff != "" {
		t.Error(diff)
	}
	if len(problems) != 1 || problems[0].Parameter != "A" || strings.Contains(problems[0].String(), "hunter2") {
		t.Errorf("got %v", problems)
	}
}
