package manifests

import (
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// The files named Kustomization enable deploy/ to include complete folders. They are not embedded, and kubectl apply -f ignores them.
func TestKustomizationsListEveryFile(t *testing.T) {
	for _, folder := range []string{"crds", "hub", "admission", "agent", "deployment", "ocm"} {
		content, err := os.ReadFile(path.Join(folder, "Kustomization"))
		if err != nil {
			t.Fatal(err)
		}
		var kustomization struct{ Resources []string }
		if err := yaml.Unmarshal(content, &kustomization); err != nil {
			t.Fatalf("%s: %v", folder, err)
		}
		files, err := fs.Glob(FS, folder+"/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			files[i] = path.Base(files[i])
		}
		if diff := cmp.Diff(files, kustomization.Resources); diff != "" {
			t.Errorf("%s/Kustomization (-want +got):\n%s", folder, diff)
		}
	}
}
