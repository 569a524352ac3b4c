package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// TestActionsArePinned requires each action to be named by a commit, which cannot be moved, and by its version in a comment, from which renovate
// updates both.
func TestActionsArePinned(t *testing.T) {
	workflows, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	uses, pinned := regexp.MustCompile(`(?m)^.*\buses:.*$`), regexp.MustCompile(`uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	found := 0
	for _, workflow := range workflows {
		content, err := os.ReadFile(workflow)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range uses.FindAllString(string(content), -1) {
			if found++; !pinned.MatchString(line) {
				t.Errorf("%s: not pinned as NAME@COMMIT # vMAJOR.MINOR.PATCH: %s", filepath.Base(workflow), line)
			}
		}
	}
	if found == 0 {
		t.Error("no workflow uses an action")
	}
}
