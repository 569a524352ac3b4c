// Package cache names the folder in which programs are kept that are built or downloaded once. It imports only the standard library,
// so that hack/controlplane, which fills that folder, starts quickly on a new machine. It touches no cluster and no disk.
package cache

import "path/filepath"

// Folder returns TANDEM_CACHE, else the folder tandem in XDG_CACHE_HOME, else ~/.cache/tandem.
func Folder(getenv func(string) string) string {
	if folder := getenv("TANDEM_CACHE"); folder != "" {
		return folder
	}
	if folder := getenv("XDG_CACHE_HOME"); folder != "" {
		return filepath.Join(folder, "tandem")
	}
	return filepath.Join(getenv("HOME"), ".cache", "tandem")
}
