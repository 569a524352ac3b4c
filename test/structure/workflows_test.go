package structure

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestWorkflowsAreValid lints the workflows of GitHub Actions with actionlint, without shellcheck and pyflakes, which are not Go programs.
func TestWorkflowsAreValid(t *testing.T) {
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	if err != nil || len(workflows) == 0 {
		t.Fatalf("there are no workflows, %v", err)
	}
	arguments := []string{"-C", root, "tool", "-modfile=hack/tools/go.mod", "actionlint", "-shellcheck=", "-pyflakes=", "-no-color"}
	for _, workflow := range workflows {
		name, err := filepath.Rel(root, workflow)
		if err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, name)
	}
	if output, err := exec.CommandContext(t.Context(), "go", arguments...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}
