package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// controlPlanePrograms are what a folder of assets must hold; kubectl is there for whoever looks around.
func controlPlanePrograms() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl"}
}

// findAssets is the folder with the control plane's programs: the given one, else TANDEM_ASSETS, else KUBEBUILDER_ASSETS
// if it holds them all. The error says what is missing where, and how to build it.
func findAssets(given string, getenv func(string) string) (string, error) {
	const advice = "`make controlplane` builds them and prints their folder: give it by --assets or TANDEM_ASSETS"
	for _, candidate := range []struct{ source, folder string }{
		{"the assets folder", given},
		{"TANDEM_ASSETS", getenv("TANDEM_ASSETS")},
	} {
		if candidate.folder == "" {
			continue
		}
		if missing := missingPrograms(candidate.folder, controlPlanePrograms()); len(missing) > 0 {
			return "", fmt.Errorf("%s %q lacks %s; %s", candidate.source, candidate.folder, strings.Join(missing, ", "), advice)
		}
		return filepath.Abs(candidate.folder)
	}
	folder := getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return "", fmt.Errorf("no folder with the control plane's programs was given; %s", advice)
	}
	if missing := missingPrograms(folder, controlPlanePrograms()); len(missing) > 0 {
		return "", fmt.Errorf("KUBEBUILDER_ASSETS %q lacks %s; %s", folder, strings.Join(missing, ", "), advice)
	}
	return filepath.Abs(folder)
}

// missingPrograms are those of the named programs that are not executable files in the folder.
func missingPrograms(folder string, names []string) []string {
	var missing []string
	for _, name := range names {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			missing = append(missing, name)
		}
	}
	return missing
}
