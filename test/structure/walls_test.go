package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The linter checks what packages import; this test checks what they reach, also through libraries.
func TestPurePackagesAndAPIReachNoClient(t *testing.T) {
	isPure := pure(t)
	walls := []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", module + "/pkg/kube/apply", module + "/pkg/kube/controller"}
	for _, p := range packages(t) {
		if !isPure(p.path()) && !within("pkg/api")(p.path()) {
			continue
		}
		for _, wall := range walls {
			if reached := slices.IndexFunc(p.Deps, within(wall)); reached >= 0 {
				t.Errorf("%s reaches %s: what decides must not be able to reach a cluster (`go list -deps ./%s` shows all)",
					p.path(), p.Deps[reached], p.path())
			}
		}
	}
}

// pure returns a function that reports whether packages in a folder make decisions: their inputs are plain data, without a cluster or a clock.
// The linter's configuration lists these folders twice: for what they may import, and for what they may call.
func pure(t *testing.T) func(folder string) bool {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct{ Files []string }
				}
			}
			Exclusions struct {
				Rules []struct {
					Text       string
					PathExcept string `yaml:"path-except"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	calls := ""
	for _, rule := range config.Linters.Exclusions.Rules {
		if rule.Text == "pure packages" && rule.PathExcept != "" {
			calls = rule.PathExcept
		}
	}
	var folders []func(string) bool
	for _, pattern := range config.Linters.Settings.Depguard.Rules["pure"].Files {
		folder, found := strings.CutPrefix(strings.TrimSuffix(pattern, "/**"), "${base-path}/")
		if !found {
			continue
		}
		folders = append(folders, within(folder))
		if _, err := os.Stat(filepath.Join(root, folder)); err != nil {
			t.Errorf(".golangci.yml: a pure package that does not exist: %v", err)
		}
		if !regexp.MustCompile(calls).MatchString(folder + "/") {
			t.Errorf(".golangci.yml: the packages in %s are pure for depguard, but not for forbidigo", folder)
		}
	}
	if len(folders) == 0 || calls == "" {
		t.Fatal(".golangci.yml lists no pure packages")
	}
	return func(folder string) bool {
		return slices.ContainsFunc(folders, func(isIn func(string) bool) bool { return isIn(folder) })
	}
}

// within returns a function that reports whether a path is the folder or inside it.
func within(folder string) func(string) bool {
	return func(name string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
}
