package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestPlainTexts(t *testing.T) {
	for _, plain := range []string{
		"", "a", "web-1.2.3", "registry.example.com:5000/team/web@sha256", "https://example.com/a#b=c&d=e", "a b c", "5", "1e3", "yes", "null", "~", "2024-01-01",
		"user@example.com", "50%", "a#b", "key=value", "a|b>c", "Grüße", "日本", "a:b", "x*", "$(POD_NAME)", "(a)", "/path/to/x", "^start$", "..", "a<<b", "+5",
	} {
		if !isPlain(plain) {
			t.Errorf("%q is not plain", plain)
		}
	}
	for _, special := range []string{
		"a\nb", "a\r", "a\tb", "\x00", "a\u0085b", "a\u2028b", "\uFEFFa", "a\u00a0b", "\xff", "- a", "-", "--flag", "---", "...", "? a", ": a", "a:", "a: b", "a #b", "#a",
		"[a]", "a]", "{a}", "a}", "a,b", "&a", "*a", "*/5 * * * *", "!a", "|", ">-", "'a'", "a'b", `"a"`, `a"b`, `a\b`, "%a", "@a", "`a`", "a`b", " a", "a ", "<<", "=", "a?b",
	} {
		if isPlain(special) {
			t.Errorf("%q is plain", special)
		}
	}
}

func FuzzPlainTextsAreScalars(f *testing.F) {
	for _, seed := range []string{"a", "a:", "<<", "- a", "a b", "~"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return // no other text has its length
		}
		if !isPlain(s) {
			s = newTokens().of(s)
			if !isPlain(s) {
				t.Fatalf("the token %q is not plain", s)
			}
		}
		for _, template := range []string{"a: %s\nb: c\n", "a:\n  %s: b\n", "- %s\n- b\n", "a: {b: %s, c: d}\n", "a: [%s, b]\n", "a: x%sy\n", "a: x %s y\n", "a: %s # b\n", "a: \"%s\"\n", "a: |\n  %s\n"} {
			got, want := kindsOf(template, s), kindsOf(template, "plain")
			refused := got == unread && strings.Contains(template, "%s:") // a key that is null
			if got != want && !refused {
				t.Errorf("%q in %q is read as %s, and a plain word as %s", s, template, got, want)
			}
		}
	})
}

const unread = "invalid YAML"

// kindsOf returns the structure of a document with the text in it.
func kindsOf(template, text string) string {
	var value any
	if err := yaml.Unmarshal(fmt.Appendf(nil, template, text), &value); err != nil {
		return unread
	}
	return structureOf(value)
}

func structureOf(value any) string {
	var parts []string
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			parts = append(parts, structureOf(item))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, " ") + "}"
	case []any:
		for _, item := range v {
			parts = append(parts, structureOf(item))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return "."
}

func TestTokens(t *testing.T) {
	tokens, seen := newTokens(), map[string]string{}
	for i := range 2000 {
		text := fmt.Sprintf("%d: x", i)
		token := tokens.of(text)
		if other, used := seen[token]; used || len(token) != len(text) || !isPlain(token) {
			t.Fatalf("%q has token %q, like %q", text, token, other)
		}
		if tokens.of(text) != token || tokens.restore(token) != text || tokens.restore("x-"+token+"-y") != "x-"+text+"-y" {
			t.Fatalf("token %q of %q changes, or is not restored", token, text)
		}
		seen[token] = text
	}
	if tokens.of("plain") != "plain" || tokens.of("") != "" {
		t.Error("a plain text has a token")
	}
	for _, one := range "-?:,[]{}#&*!|>'\"%@`=\\" {
		if token := tokens.of(string(one)); len(token) != 1 || !isPlain(token) {
			t.Errorf("%q has token %q", one, token)
		}
	}
}

// objects returns a rendering with objects from templates that insert a value.
func objects(t *testing.T, value string, templates ...string) Rendering {
	t.Helper()
	var r Rendering
	for _, template := range templates {
		for document := range strings.SplitSeq(strings.ReplaceAll(template, "VALUE", value), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				t.Fatal(err)
			}
			r.Objects = append(r.Objects, Object{Source: "web/templates/a.yaml", Object: o})
		}
	}
	return r
}

const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  "

func TestGuard(t *testing.T) {
	const raw, quoted = pod + "hostname: VALUE\n", pod + "hostname: \"VALUE\"\n"
	for sentence, test := range map[string]struct {
		template, value, want string
		renderings            int
	}{
		"a plain value is not rendered again": {raw, "web", "", 0},
		"a URL":                               {raw, "https://example.com:80/a", "", 0},
		"a schedule in quotes":                {quoted, "*/5 * * * *", "", 1},
		"JSON in a block":                     {pod + "hostname: |\n    VALUE\n", `{"a": ["b"]}`, "", 1},
		"a list in quotes":                    {quoted, "[a, b]", "", 1},
		"a value that becomes another scalar": {raw, "5 #x", "", 1},
		"a list":                              {raw, "[a, b]", "Pod: spec.hostname is a list instead of a scalar", 2},
		"a map":                               {raw, "{a: b}", "Pod: spec.hostname is a map instead of a scalar", 2},
		"another field":                       {raw, "a\n  hostNetwork: true", "Pod: spec has 2 keys instead of 1", 2},
		"a field that ends quotes":            {quoted, "a\"\n  hostNetwork: \"true", "Pod: spec has 2 keys instead of 1", 2},
		"a key instead of another":            {pod + "VALUE: a\n", "\"hostNetwork\"", "Pod: spec has other keys", 2},
		"another object":                      {raw, "a\n---\napiVersion: v1\nkind: Secret", "2 objects instead of 1", 2},
		"a field that is omitted":             {pod + "hostname: a VALUE\n  hostIPC: false\n", "\n#", "", 1},
		"another kind":                        {"apiVersion: v1\nkind: VALUE\n", "Secret #", "another object in place of the bbbbbbbb", 2},
		"another item":                        {pod + "args:\n  - VALUE\n", "a\n  - b", "Pod: spec.args has 2 items instead of 1", 2},
		"a field of an item":                  {pod + "args:\n  - name: VALUE\n", "a\n    value: b", "Pod: spec.args[0] has 2 keys instead of 1", 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			given := map[string]string{"HOST": test.value, "OTHER": "*", "N": "5"}
			guard, err := NewGuard([]kudo.Parameter{{Name: "OTHER"}, {Name: "HOST"}, {Name: "N", Type: kudo.IntegerType}, {Name: "UNSET"}}, given)
			if err != nil {
				t.Fatal(err)
			}
			renderings := 0
			err = guard.Check(objects(t, test.value, test.template), func(values map[string]string) (Rendering, error) {
				if len(values["HOST"]) != len(test.value) || values["N"] != "5" || given["HOST"] != test.value {
					t.Errorf("the values are %v", values)
				}
				if values["HOST"] != test.value || renderings == 0 {
					renderings++
				}
				return objects(t, values["HOST"], test.template), nil
			})
			var guarded *GuardError
			if test.want == "" && err != nil || test.want != "" && !errors.As(err, &guarded) {
				t.Fatalf("got error %v, want %q", err, test.want)
			}
			if guarded != nil && (!cmp.Equal(guarded.Parameters, []string{"HOST"}) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

func TestGuardOfListsAndMaps(t *testing.T) {
	defs := []kudo.Parameter{{Name: "LABELS", Type: kudo.MapType}, {Name: "ARGS", Type: kudo.ArrayType}}
	given := map[string]string{"LABELS": `{"a/b": "x: y", "c: d": 1, "plain": null}`, "ARGS": "[--flag, 0123, 1e400, [a, {b: '*'}], plain]"}
	guard, err := NewGuard(defs, given)
	if err != nil {
		t.Fatal(err)
	}
	// rendered inserts both as YAML, with the keys in another text.
	rendered := func(values map[string]string) (Rendering, error) {
		labels := map[string]any{}
		if err := yaml.Unmarshal([]byte(values["LABELS"]), &labels); err != nil {
			t.Fatal(err)
		}
		named := map[string]any{}
		for key, value := range labels {
			named["example.com/"+key] = value
		}
		var args []any
		if err := yaml.Unmarshal([]byte(values["ARGS"]), &args); err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{Object: map[string]any{"labels": named, "args": args}}
		return Rendering{Hooks: []Hook{{Object: Object{Object: o}}}, Definitions: []Object{{Object: o}}}, nil
	}
	var with string
	first, _ := rendered(given)
	if err := guard.Check(first, func(values map[string]string) (Rendering, error) {
		with = values["LABELS"] + values["ARGS"]
		return rendered(values)
	}); err != nil {
		t.Error(err)
	}
	if want := `{"a/b":"bbbb","plain":null,"bbbc":1}["bbbbbd","0123",1e400,["a",{"b":"b"}],"plain"]`; len(with) != len(want) || strings.Contains(with, ": ") || !strings.Contains(with, `"0123",1e400,["a",{"b":"`) {
		t.Errorf("rendered with %s, want something like %s", with, want)
	}
	first.Hooks[0].Object.Object.Object["labels"].(map[string]any)["more"] = "x"
	if err := guard.Check(first, rendered); err == nil || !strings.Contains(err.Error(), `parameters "LABELS", "ARGS"`) && !strings.Contains(err.Error(), `parameter "LABELS"`) {
		t.Errorf("got error %v", err)
	}
	for _, invalid := range []kudo.Parameter{{Name: "LABELS", Type: kudo.MapType}} {
		if _, err := NewGuard([]kudo.Parameter{invalid}, map[string]string{"LABELS": "[a]"}); err == nil {
			t.Error("a list is accepted as a map")
		}
	}
}

func TestTemplatesInValues(t *testing.T) {
	yes, def := true, "{{ .Release.Name }}"
	for sentence, test := range map[string]struct {
		def   kudo.Parameter
		value string
		want  bool
	}{
		"an action":                {kudo.Parameter{}, "a {{ .Values }}", true},
		"an action in a list":      {kudo.Parameter{Type: kudo.ArrayType}, "['{{ env }}']", true},
		"an action in a key":       {kudo.Parameter{Type: kudo.MapType}, "{'{{ env }}': a}", true},
		"half of its beginning":    {kudo.Parameter{}, "a {", true},
		"its end":                  {kudo.Parameter{}, "a }}", false},
		"one that is meant":        {kudo.Parameter{Structure: &yes}, "{{ .Values }}", false},
		"one of the package":       {kudo.Parameter{Default: &def}, def, false},
		"one that it lists":        {kudo.Parameter{Enum: []string{def}}, def, false},
		"another than the default": {kudo.Parameter{Default: &def}, def + " ", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.def.Name = "P"
			_, err := NewGuard([]kudo.Parameter{test.def}, map[string]string{"P": test.value})
			var guarded *GuardError
			if errors.As(err, &guarded) != test.want {
				t.Errorf("got error %v", err)
			}
			if test.want && !strings.HasPrefix(err.Error(), `the value of parameter "P" contains {{`) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestChartsThatRefusePlainValues(t *testing.T) {
	guard, err := NewGuard([]kudo.Parameter{{Name: "P"}, {Name: "Q"}}, map[string]string{"P": "a: b", "Q": "{}"})
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("P must be a map")
	err = guard.Check(Rendering{}, func(map[string]string) (Rendering, error) { return Rendering{}, refused })
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), `values of "P", "Q"`) || !strings.Contains(err.Error(), "structure: true") {
		t.Errorf("got error %v", err)
	}
}

func TestTemplatesThatTheValuesFileDecodes(t *testing.T) {
	defs := []kudo.Parameter{{Name: "P"}, {Name: "OWN", Default: ptr.To("{{ .Release.Name }}")}, {Name: "FREE", Structure: ptr.To(true)}, {Name: "N", Type: kudo.IntegerType}}
	// file renders a values file that decodes the escapes of values, as double quotes do, and has a template of its own.
	file := func(values map[string]string) (string, error) {
		if values["P"] == "fail" {
			return "", errors.New("refused")
		}
		decoded := strings.NewReplacer(`\u007b`, "{", `\x7b`, "{").Replace(values["P"])
		encoded, err := json.Marshal(map[string]any{
			"host": "{{ .Release.Name }}." + decoded, "free": values["FREE"], "own": values["OWN"], "list": []any{map[string]any{decoded: 1}},
		})
		return string(encoded), err
	}
	for name, test := range map[string]struct {
		given   map[string]string
		refused string
	}{
		"plain":                        {given: map[string]string{"P": "example.com"}},
		"base64":                       {given: map[string]string{"P": "e3s="}},
		"an escape of something else":  {given: map[string]string{"P": `a\u0041`}},
		"an escaped template":          {given: map[string]string{"P": `\u007b\u007b lookup "v1" }}`}, refused: `"P"`},
		"another escape":               {given: map[string]string{"P": `\x7b\x7b end`}, refused: `"P"`},
		"a final brace":                {given: map[string]string{"P": `a\x7b`}, refused: `"P"`},
		"the package's own default":    {given: map[string]string{"P": "a", "OWN": "{{ .Release.Name }}"}},
		"a parameter with structure":   {given: map[string]string{"P": "a", "FREE": "{{ x }}"}},
		"a number beside":              {given: map[string]string{"P": `\u007b\u007b`, "N": "3"}, refused: `"P", "N"`},
		"none are given":               {},
		"a file that accepts no token": {given: map[string]string{"P": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			guard, err := NewGuard(defs, test.given)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := file(test.given)
			if err != nil {
				t.Fatal(err)
			}
			err = guard.CheckValues(rendered, file)
			var refused *GuardError
			if errors.As(err, &refused) != (test.refused != "") || err != nil && refused == nil {
				t.Fatalf("got %v", err)
			}
			if test.refused != "" && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAValuesFileThatAcceptsNoTokens(t *testing.T) {
	guard, err := NewGuard([]kudo.Parameter{{Name: "P"}}, map[string]string{"P": "e3s="})
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(map[string]string) (string, error) { return "", errors.New("illegal base64 data") }
	if err := guard.CheckValues(`{"a":"plain"}`, refuse); err != nil {
		t.Errorf("values without a template: %v", err)
	}
	if err := guard.CheckValues(`{"a":"{{"}`, refuse); err == nil {
		t.Error("a decoded template passed")
	}
}
