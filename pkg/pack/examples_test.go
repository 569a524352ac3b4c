package pack_test

import (
	"os"
	"testing"

	"github.com/tandem-addons/tandem/pkg/pack"
	"github.com/tandem-addons/tandem/pkg/render"
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
			c := render.Context{Version: &p.Version, Instance: "sample", Namespace: "ns", Plan: "deploy", Phase: "a", Step: "b"}
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

func forEachExample(t *testing.T, test func(*testing.T, *pack.Package)) {
	t.Helper()
	folders, err := os.ReadDir(examples)
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		t.Fatal("there are no examples")
	}
	for _, folder := range folders {
		t.Run(folder.Name(), func(t *testing.T) {
			p, _ := pack.Load(os.DirFS(examples + "/" + folder.Name()))
			test(t, p)
		})
	}
}
