package pack_test

import (
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/tandem-addons/tandem/pkg/pack"
	"github.com/tandem-addons/tandem/pkg/render"
	"github.com/tandem-addons/tandem/pkg/tree"
)

const examples = "../../examples/packages"

func TestExamplesVerifyWithoutAWarning(t *testing.T) {
	forEachExample(t, func(t *testing.T, p *pack.Package) {
		for _, f := range p.Verify() {
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
				Parameters: required(p)}
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

// required returns a value for each parameter that must be set.
func required(p *pack.Package) map[string]string {
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
