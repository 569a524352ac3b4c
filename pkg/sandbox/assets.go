package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/sandbox/cache"
)

// controlPlanePrograms lists the programs required in a folder of assets; kubectl is included for users.
func controlPlanePrograms() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "kubectl"}
}

// findAssets returns the folder of the control plane programs: the given one, else TANDEM_ASSETS, else KUBEBUILDER_ASSETS if it has all of
// them, else the latest complete one in the cache. It returns an error if a folder given explicitly is incomplete or none is found; the
// error lists the missing programs and how to get them.
func findAssets(given string, getenv func(string) string) (string, error) {
	const advice = "run `make controlplane` to download or build them into the cache"
	for _, named := range []struct{ source, folder string }{
		{"the assets folder", given},
		{"TANDEM_ASSETS", getenv("TANDEM_ASSETS")},
	} {
		if named.folder == "" {
			continue
		}
		if missing := missingPrograms(named.folder, controlPlanePrograms()); len(missing) > 0 {
			return "", fmt.Errorf("%s %q does not contain %s; %s", named.source, named.folder, strings.Join(missing, ", "), advice)
		}
		return filepath.Abs(named.folder)
	}
	lacking := ""
	if folder := getenv("KUBEBUILDER_ASSETS"); folder != "" {
		missing := missingPrograms(folder, controlPlanePrograms())
		if len(missing) == 0 {
			return filepath.Abs(folder)
		}
		lacking = fmt.Sprintf(" (and KUBEBUILDER_ASSETS %q does not contain %s)", folder, strings.Join(missing, ", "))
	}
	cached := cache.Folder(getenv)
	if folder := latestFolder(cached, "controlplane-*", controlPlanePrograms()); folder != "" {
		return filepath.Abs(folder)
	}
	return "", fmt.Errorf("no complete set of control plane programs in %q%s; %s", cached, lacking, advice)
}

// latestFolder returns the most recently changed folder of the cache that matches the pattern and has all programs, or an empty string. The
// cache also holds earlier versions and interrupted builds.
func latestFolder(cache, pattern string, programs []string) string {
	folders, err := filepath.Glob(filepath.Join(cache, pattern))
	if err != nil { // the pattern is valid unless the cache's own name is unusual
		return ""
	}
	var latest string
	var changed time.Time
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil || len(missingPrograms(folder, programs)) > 0 {
			continue
		}
		if latest == "" || info.ModTime().After(changed) {
			latest, changed = folder, info.ModTime()
		}
	}
	return latest
}

// missingPrograms returns the names that are not executable files in the folder.
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
