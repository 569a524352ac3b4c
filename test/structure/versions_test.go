package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestKindRunsTheSameKubernetes checks that the node images of kind are built from the Kubernetes that sandboxes run: their control plane is
// the one of hack/controlplane.
func TestKindRunsTheSameKubernetes(t *testing.T) {
	required := regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes (v\S+)`)
	versions := map[string]string{}
	for _, module := range []string{"hack/controlplane/programs", "hack/kind"} {
		content, err := os.ReadFile(filepath.Join(root, module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		found := required.FindSubmatch(content)
		if found == nil {
			t.Fatalf("%s does not require k8s.io/kubernetes", module)
		}
		versions[string(found[1])] = module
	}
	if len(versions) != 1 {
		t.Errorf("the modules require different versions: %v", versions)
	}
}
