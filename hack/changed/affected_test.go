package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAffected(t *testing.T) {
	t.Parallel()
	listings := []listing{
		{ImportPath: "m/pkg/plan"},
		{ImportPath: "m/pkg/plan [m/pkg/plan.test]", ForTest: "m/pkg/plan", Dir: "plan", TestGoFiles: []string{"plan_test.go"}},
		{ImportPath: "m/pkg/plan.test", Deps: []string{"fmt", "m/pkg/plan [m/pkg/plan.test]"}},
		{ImportPath: "m/pkg/agent", Deps: []string{"m/pkg/plan", "m/manifests"}},
		{ImportPath: "m/manifests"},
		{ImportPath: "m/test/integration/agent", Dir: "agent", XTestGoFiles: []string{"suite_test.go"}},
		{ImportPath: "m/test/integration/agent.test", Deps: []string{"m/pkg/agent", "m/pkg/plan", "m/manifests", "other/m/pkg/hub"}},
		{ImportPath: "m/test/structure", Dir: "structure", TestGoFiles: []string{"links_test.go"}},
		{ImportPath: "m/test/structure.test", Deps: []string{"go/ast"}},
	}
	text := map[string]string{
		"plan/plan_test.go":       `os.ReadDir("../../examples/packages")`,
		"agent/suite_test.go":     `"github.com/x"`,
		"structure/links_test.go": `filepath.Join(root, "docs"), "README.md"`,
	}
	packages, err := packagesOf("m", listings, func(file string) (string, error) { return text[file], nil })
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		files, want []string
	}{
		"nothing changed: nothing to test": {},
		"a package affects itself and what imports it": {
			files: []string{"pkg/plan/next.go"}, want: []string{"./pkg/plan", "./test/integration/agent"},
		},
		"a package without tests is not tested, but what imports it is": {
			files: []string{"pkg/agent/agent.go"}, want: []string{"./test/integration/agent"},
		},
		"a test affects its own package only": {
			files: []string{"test/integration/agent/new_test.go"}, want: []string{"./test/integration/agent"},
		},
		"an embedded file belongs to the package above it": {
			files: []string{"manifests/crds/kudo.yaml"}, want: []string{"./test/integration/agent"},
		},
		"a file of testdata belongs to the package above it": {
			files: []string{"pkg/plan/testdata/fuzz/a"}, want: []string{"./pkg/plan", "./test/integration/agent"},
		},
		"a file outside all packages affects the tests that name its folder": {
			files: []string{"examples/packages/kafka/operator.yaml"}, want: []string{"./pkg/plan"},
		},
		"a page affects the tests of pages": {files: []string{"docs/cli.md"}, want: []string{"./test/structure"}},
		"so does the README":                {files: []string{"README.md"}, want: []string{"./test/structure"}},
		"a file that no test names affects nothing": {
			files: []string{"LICENSE", "deploy/x.yaml"},
		},
		"other versions of dependencies affect everything": {
			files: []string{"go.mod"}, want: []string{"./pkg/plan", "./test/integration/agent", "./test/structure"},
		},
		"a package of another module with a similar path does not count": {files: []string{"pkg/hub/hub.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, affected(tc.files, packages)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
