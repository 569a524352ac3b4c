package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render/structure"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
)

// contextWithInsertions returns a context with parameters whose defaults and values are YAML, in a template that repeats line for each of
// them.
func contextWithInsertions(count int, line, byDefault, value, rest string) Context {
	var text strings.Builder
	text.WriteString(config + "data:\n")
	c := newContext()
	c.Parameters = map[string]string{}
	for i := range count {
		name, own := fmt.Sprintf("P%d", i), strings.NewReplacer("@", fmt.Sprint(i))
		text.WriteString(strings.ReplaceAll(own.Replace(line), "<>", "{{ .Params."+name+" }}") + "\n")
		c.Version.Parameters = append(c.Version.Parameters, kudo.Parameter{Name: name, Default: new(own.Replace(byDefault))})
		c.Parameters[name] = own.Replace(value)
	}
	c.Version.Templates = map[string]string{"t": text.String() + rest}
	return c
}

// TestParametersThatInsertYAMLCostLittle renders templates with 100 parameters whose defaults change the structure. One check of all of them
// costs as much as a few decodings of the text; one for each would cost hundreds.
func TestParametersThatInsertYAMLCostLittle(t *testing.T) {
	const decodings = 16
	rest := strings.Repeat("- {a: b, c: [d, e]}\n", 400)
	for name, test := range map[string]struct{ line, byDefault, value string }{
		"maps":               {"  k@: <>", "{a: b}", "{c: d, e: f}"},
		"lists":              {"  k@: <>", "[a]", "[b, c]"},
		"maps in lines":      {"  k@:\n    <>", "a: b\n    c: d", "e: f"},
		"items":              {"  k@: [<>]", "a, b", "c, d, e"},
		"items in lines":     {"  k@:\n  <>", "- a\n  - b", "- c"},
		"entries":            {"  <>", "k@: a", "k@: b\n  l@: c"},
		"entries of a map":   {"  k@:\n    a: b\n    <>", "c: d\n    e: f", "g: h"},
		"entries in braces":  {"  k@: { <> }", "a: b", "c: d, e: f"},
		"a list for a text":  {"  k@: a\n  <>", "l@: [a]", "l@: b"},
		"a map with a blank": {"  k@: <>", " {a: b} ", "{c: d}"},
	} {
		t.Run(name, func(t *testing.T) {
			c := contextWithInsertions(100, test.line, test.byDefault, test.value, "rest:\n"+rest)
			c.Budget = newBudget(maxSteps)
			d := &decoder{budget: newBudget(maxSteps)}
			r, err := newRenderer(c, "t")
			if err != nil {
				t.Fatal(err)
			}
			out, err := r.execute("t")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.decodeAll(out.Text); err != nil {
				t.Fatal(err)
			}
			if _, err := Objects(c, "t"); err != nil {
				t.Fatal(err)
			}
			if one, all := maxSteps-d.budget.left, maxSteps-c.Budget.left; all > decodings*one {
				t.Errorf("%d steps, more than %d times the %d steps of one decoding", all, decodings, one)
			}
		})
	}
}

// TestTheWorkOfARenderingIsBounded renders what takes more work than its budget.
func TestTheWorkOfARenderingIsBounded(t *testing.T) {
	const steps = 100_000
	heavy := "{{ range until 50000 }}{{ end }}"
	for name, c := range map[string]Context{
		"parameters that nothing distinguishes": contextWithInsertions(100, "  k@: <>", "a # b", "c # d e", "rest:\n"+strings.Repeat("- a\n", 200)),
		"one template":                          newContext("t", "{{ range until 90000 }}{{ end }}"),
		"several templates":                     newContext("a", heavy, "t", heavy),
		"a large text":                          newContext("t", config+"data:\n{{ range until 4000 }}  k{{ . }}: [a, b, c, d, e, f, g, h, i, j, k, l, m, n]\n{{ end }}"),
		"aliases":                               newContext("t", config+"x: &x [a, b, c, d, e, f, g]\ny: [{{ repeat 9000 \"*x,\" }}]"),
	} {
		t.Run(name, func(t *testing.T) {
			c.Budget = newBudget(steps)
			_, err := Objects(c, slices.Sorted(maps.Keys(c.Version.Templates))...)
			var problem *template.Error
			want := fmt.Sprintf("rendering takes more than %d steps, including the checks of values", steps)
			if !errors.As(err, &problem) || problem.Template != "t" || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error of template t: %s", err, want)
			}
			if errors.As(err, new(*StructureError)) {
				t.Errorf("the error blames a value: %v", err)
			}
			if _, err := Objects(c, "t"); err == nil || !strings.Contains(err.Error(), `template "t"`) {
				t.Errorf("the next rendering with this budget: got %v", err)
			}
		})
	}
}

func TestEachRenderingHasABudget(t *testing.T) {
	c := contextWithInsertions(100, "  k@: {{ range until 3000 }}{{ end }}<>", "a # b", "c # d e", "")
	if r, err := newRenderer(c, "t"); err != nil || r.Budget.limit != maxSteps {
		t.Errorf("the budget of a task is %+v, %v", r.Budget, err)
	}
	_, _, err := File(c, "t")
	if want := fmt.Sprintf(`template "t": rendering takes more than %d steps`, maxFileSteps); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if c.Budget = NewFileBudget(); c.Budget.limit != maxFileSteps {
		t.Errorf("the budget of parameter files is %+v", c.Budget)
	}
}

// TestManyValuesInOneLine renders a line with 80,000 values, blank ones or others. Checking each of them against the whole line would take minutes.
func TestManyValuesInOneLine(t *testing.T) {
	for _, value := range []string{"x", " ", "x, y"} {
		c := guardedContext("data:\n  a: \"{{ range until 80000 }}{{ $.Params.A }}                      {{ end }}\"\n", map[string]string{"A": value})
		if _, err := Objects(c, "t"); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// TestDefaultsThatInsertYAMLAreDecidedTogetherAsAlone uses each construct as a default at each place, beside another one.
func TestDefaultsThatInsertYAMLAreDecidedTogetherAsAlone(t *testing.T) {
	found := 0
	for i := range everyPlace {
		for _, construct := range everyConstruct {
			for _, beside := range []string{"x", "{x: y}", "x, y", "- x"} {
				found += insertedOf(t, i, construct.text, beside)
			}
		}
	}
	if found < 500 {
		t.Errorf("found only %d", found)
	}
}

// FuzzDefaults is TestDefaultsThatInsertYAMLAreDecidedTogetherAsAlone with any defaults.
func FuzzDefaults(f *testing.F) {
	for i, construct := range everyConstruct {
		f.Add(uint8(i), construct.text, "{x: y}")
		f.Add(uint8(i+len(everyPlace)/2), "x, y", construct.text)
	}
	f.Fuzz(func(t *testing.T, place uint8, a, b string) {
		insertedOf(t, int(place)%len(everyPlace), a, b)
	})
}

// insertedOf renders a place with a default, beside another one, and returns the number of parameters that insert YAML there. Each of them must also
// change the structure alone.
func insertedOf(t *testing.T, place int, a, b string) int {
	t.Helper()
	c := guardedContext(strings.ReplaceAll(everyPlace[place].text, "<>", "{{ .Params.A }}")+"z: [{{ .Params.B }}]\n", nil)
	for i := range c.Version.Parameters {
		switch p := &c.Version.Parameters[i]; p.Name {
		case "A":
			p.Default = &a
		case "B":
			p.Default = &b
		}
	}
	r, err := newRenderer(c, "t")
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.execute("t")
	if err != nil {
		return 0
	}
	rules := structure.Rules{Read: (&decoder{budget: r.Budget}).decodeAll, AnyType: true}
	inserted := rules.InsertedParameters(out, map[string]bool{"A": true, "B": true})
	for p := range inserted {
		if !rules.Changes(out, func(a *template.Action) bool { return slices.Equal(a.Parameters, []string{p}) }) {
			t.Errorf("%s: default %q beside %q: parameter %s changes nothing alone", everyPlace[place].name, a, b, p)
		}
	}
	return len(inserted)
}
