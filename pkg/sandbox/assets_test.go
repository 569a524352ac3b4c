package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindAssets(t *testing.T) {
	all, others, partial := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range controlPlanePrograms() {
		for _, folder := range []string{all, others} {
			addProgram(t, folder, name)
		}
	}
	addProgram(t, partial, "etcd")
	for name, test := range map[string]struct {
		given     string
		variables map[string]string
		want      string
		fault     string
	}{
		"a given folder comes first": {
			given: all, variables: map[string]string{"TANDEM_ASSETS": others}, want: all,
		},
		"TANDEM_ASSETS comes before KUBEBUILDER's": {
			variables: map[string]string{"TANDEM_ASSETS": all, "KUBEBUILDER_ASSETS": others}, want: all,
		},
		"KUBEBUILDER_ASSETS serves if it holds all": {variables: map[string]string{"KUBEBUILDER_ASSETS": all}, want: all},
		"what KUBEBUILDER_ASSETS lacks is named": {
			variables: map[string]string{"KUBEBUILDER_ASSETS": partial}, fault: "kube-scheduler, kwok",
		},
		"a given folder that lacks some does not fall back": {
			given: partial, variables: map[string]string{"TANDEM_ASSETS": all}, fault: "make controlplane",
		},
		"without any, the error says what to do": {fault: "make controlplane"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findAssets(test.given, func(name string) string { return test.variables[name] })
			if test.fault != "" {
				if err == nil || !strings.Contains(err.Error(), test.fault) {
					t.Errorf("the error is %v, want one with %q", err, test.fault)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func addProgram(t *testing.T, folder, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), nil, 0o700); err != nil {
		t.Fatal(err)
	}
}
