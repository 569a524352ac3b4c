package pack_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

func TestScaffoldIsAPackageOfThatName(t *testing.T) {
	for _, name := range []string{"web", "my-operator", "a.b", "1", "true"} {
		files, err := pack.Scaffold(name)
		if err != nil {
			t.Fatal(err)
		}
		fsys := fstest.MapFS{}
		for file, text := range files {
			fsys[file] = &fstest.MapFile{Data: []byte(text)}
		}
		p, _ := pack.Load(fsys)
		for _, problem := range p.Verify() {
			t.Errorf("%s: %s", name, problem)
		}
		if p.Name != name {
			t.Errorf("the operator is called %q, want %q", p.Name, name)
		}
		for _, task := range p.Version.Tasks {
			objects, err := render.Objects(render.Context{Version: &p.Version, Instance: "sample", Namespace: "ns"}, task.Spec.Resources...)
			if err != nil || len(objects) == 0 {
				t.Errorf("%s: task %s renders %d objects, %v", name, task.Name, len(objects), err)
			}
		}
	}
}

func TestScaffoldRefusesNames(t *testing.T) {
	for _, name := range []string{"", "Web", "a b", "-web", "../web", strings.Repeat("x", 64)} {
		if files, err := pack.Scaffold(name); err == nil {
			t.Errorf("%q: got %d files", name, len(files))
		}
	}
}
