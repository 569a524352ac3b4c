// Package cache returns the folder that caches built and downloaded programs. It imports only the standard library, so that
// hack/controlplane, which fills the cache, compiles quickly. It touches neither a cluster nor the disk.
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
