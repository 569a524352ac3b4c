package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFindAssets(t *testing.T) {
	all, others, partial := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range controlPlanePrograms() {
		for _, folder := range []string{all, others} {
			addProgram(t, folder, name)
		}
	}
	addProgram(t, partial, "etcd")
	cache, latest := fillCache(t)
	for name, test := range map[string]struct {
		given     string
		variables map[string]string
		want      string
		problem   string
	}{
		"a given folder comes first": {
			given: all, variables: map[string]string{"TANDEM_ASSETS": others}, want: all,
		},
		"TANDEM_ASSETS comes before KUBEBUILDER's": {
			variables: map[string]string{"TANDEM_ASSETS": all, "KUBEBUILDER_ASSETS": others}, want: all,
		},
		"KUBEBUILDER_ASSETS serves if it holds all": {variables: map[string]string{"KUBEBUILDER_ASSETS": all}, want: all},
		"missing programs of KUBEBUILDER_ASSETS are named": {
			variables: map[string]string{"KUBEBUILDER_ASSETS": partial}, problem: "kube-scheduler, kwok",
		},
		"the cache is used if KUBEBUILDER_ASSETS is incomplete": {
			variables: map[string]string{"KUBEBUILDER_ASSETS": partial, "TANDEM_CACHE": cache}, want: latest,
		},
		"the latest complete folder of the cache serves": {
			variables: map[string]string{"TANDEM_CACHE": cache}, want: latest,
		},
		"the cache may be the desktop's": {
			variables: map[string]string{"XDG_CACHE_HOME": filepath.Dir(cache), "HOME": partial}, want: latest,
		},
		"the cache may be the user's": {
			variables: map[string]string{"HOME": filepath.Dir(filepath.Dir(cache))}, want: latest,
		},
		"a folder that was named comes before the cache": {
			given: all, variables: map[string]string{"TANDEM_CACHE": cache}, want: all,
		},
		"an incomplete given folder has no fallback": {
			given: partial, variables: map[string]string{"TANDEM_ASSETS": all}, problem: "make controlplane",
		},
		"an incomplete TANDEM_ASSETS has no fallback": {
			variables: map[string]string{"TANDEM_ASSETS": partial, "TANDEM_CACHE": cache}, problem: "TANDEM_ASSETS",
		},
		"without any, the error names the cache": {variables: map[string]string{"TANDEM_CACHE": partial}, problem: partial},
		"without any, the error says what to do": {problem: "make controlplane"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findAssets(test.given, func(name string) string { return test.variables[name] })
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("the error is %v, want one with %q", err, test.problem)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// fillCache creates a cache with an old folder, a newer one, and a still newer one that lacks programs. It returns the second one as
// latest.
func fillCache(t *testing.T) (cache, latest string) {
	t.Helper()
	cache = filepath.Join(t.TempDir(), ".cache", "tandem")
	now := time.Now()
	for i, name := range []string{"controlplane-c-old", "controlplane-b-newer", "controlplane-a-broken-off"} {
		folder := filepath.Join(cache, name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		programs := controlPlanePrograms()
		if name == "controlplane-a-broken-off" {
			programs = programs[:1]
		}
		for _, program := range programs {
			addProgram(t, folder, program)
		}
		at := now.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(folder, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return cache, filepath.Join(cache, "controlplane-b-newer")
}

func addProgram(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), nil, 0o700); err != nil {
		t.Fatal(err)
	}
}
