package pack_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

const examples = "../../../examples/packages"

func TestExamplesVerifyWithoutAWarning(t *testing.T) {
	forEachExample(t, func(t *testing.T, p *pack.Package) {
		for _, f := range append(p.Verify(), p.VerifyValues()...) {
			t.Error(f)
		}
	})
}

func TestExamplesRenderWithTheirDefaults(t *testing.T) {
	forEachExample(t, func(t *testing.T, p *pack.Package) {
		for _, task := range p.Version.Tasks {
			if tree.MakesChild(task) {
				continue
			}
			c := render.Context{Version: &p.Version, Instance: "sample", Namespace: "ns", Plan: "deploy", Phase: "a", Step: "b",
				Parameters: requiredValues(p)}
			objects, err := render.Objects(c, task.Spec.Resources...)
			if err != nil {
				t.Errorf("task %s: %v", task.Name, err)
			}
			if len(objects) == 0 {
				t.Errorf("task %s renders nothing", task.Name)
			}
			for _, obj := range objects {
				if obj.GetNamespace() != "ns" {
					t.Errorf("task %s: %s %s stands in namespace %q", task.Name, obj.GetKind(), obj.GetName(), obj.GetNamespace())
				}
			}
		}
	})
}

// requiredValues returns a value for each parameter that must be set.
func requiredValues(p *pack.Package) map[string]string {
	values := map[string]string{}
	for _, parameter := range p.Version.Parameters {
		if *parameter.Required && parameter.Default == nil {
			values[parameter.Name] = "sample"
		}
	}
	return values
}

// forEachExample visits every package in the folder of examples, including nested ones.
func forEachExample(t *testing.T, test func(*testing.T, *pack.Package)) {
	t.Helper()
	var found int
	err := fs.WalkDir(os.DirFS(examples), ".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && path.Base(file) == "operator.yaml" {
			found++
			t.Run(path.Dir(file), func(t *testing.T) {
				p, _ := pack.Load(os.DirFS(path.Join(examples, path.Dir(file))))
				test(t, p)
			})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("there are no examples")
	}
}

// FuzzExamples checks that no value of any parameter of the examples changes the structure of what they render: a value that is accepted
// renders objects with the same fields as a harmless one.
func FuzzExamples(f *testing.F) {
	packages := map[string]*pack.Package{}
	for _, name := range []string{"kafka", "zookeeper", "spark", "streaming", "spark/packages/history-server", "streaming/packages/schema-registry"} {
		packages[name], _ = pack.Load(os.DirFS(path.Join(examples, name)))
	}
	names := slices.Sorted(maps.Keys(packages))
	for i := range 64 {
		f.Add(uint8(i), uint8(i/8), "x\n---\nkind: Secret")
		f.Add(uint8(i), uint8(i/8), `", "x`)
	}
	f.Fuzz(func(t *testing.T, which, parameter uint8, value string) {
		p := packages[names[int(which)%len(names)]]
		definition := p.Version.Parameters[int(parameter)%len(p.Version.Parameters)]
		if len(definition.Enum) > 0 || strings.TrimSpace(value) == "" {
			return
		}
		for _, form := range forms(definition.Type) {
			want, harmless := fields(p, definition.Name, form("x"))
			if got, accepted := fields(p, definition.Name, form(value)); harmless && accepted && got != want {
				t.Errorf("%s with %q\n%s\ninstead of\n%s", definition.Name, form(value), got, want)
			}
		}
	})
}

// forms returns the ways in which a text becomes a value of a type.
func forms(of kudo.ParameterType) []func(string) string {
	quoted := func(text string) string { encoded, _ := json.Marshal(text); return string(encoded) }
	switch of {
	case kudo.ArrayType:
		return []func(string) string{func(text string) string { return "[" + quoted(text) + "]" }}
	case kudo.MapType:
		return []func(string) string{
			func(text string) string { return `{"a":` + quoted(text) + "}" },
			func(text string) string { return "{" + quoted(text) + `: "a"}` },
		}
	default:
		return []func(string) string{func(text string) string { return text }}
	}
}

// fields returns the fields of everything that a package renders with a value, and whether it renders.
func fields(p *pack.Package, parameter, value string) (string, bool) {
	c := render.Context{Version: &p.Version, Instance: "sample", Namespace: "ns", Plan: "deploy", Phase: "a", Step: "b", Parameters: requiredValues(p)}
	c.Parameters[parameter] = value
	var all []any
	for _, task := range p.Version.Tasks {
		objects, err := render.Objects(c, task.Spec.Resources...)
		if err != nil {
			return "", false
		}
		for _, o := range objects {
			all = append(all, o.Object)
		}
		if task.Spec.ParameterFile == "" {
			continue
		}
		file, _, err := render.File(c, task.Spec.ParameterFile)
		if err != nil {
			return "", false
		}
		all = append(all, slices.Sorted(maps.Keys(file)))
	}
	var out strings.Builder
	writeFields(&out, all)
	return out.String(), true
}

func writeFields(out *strings.Builder, value any) {
	switch v := value.(type) {
	case map[string]any:
		out.WriteString("{")
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.WriteString(key + ":")
			writeFields(out, v[key])
		}
		out.WriteString("}")
	case []any:
		out.WriteString("[")
		for _, item := range v {
			writeFields(out, item)
			out.WriteString(",")
		}
		out.WriteString("]")
	case []string:
		out.WriteString(strings.Join(v, ","))
	}
}
