package structure

import (
	"slices"
	"strings"
	"testing"
)

// floors lists the folders of pkg: each imports only folders of the floors below its own.
var floors = [][]string{
	{"cli", "source"},
	{"hub", "agent", "ui", "bundle"},
	{"chart", "console", "kube", "sandbox"},
	{"oci"},
	{"core"},
	{"api", "text"},
}

func TestFoldersImportWhatIsBelow(t *testing.T) {
	arrows := map[string]bool{}
	for _, p := range packages(t) {
		from, isInPkg := folderIn(p.path())
		if !isInPkg {
			continue
		}
		for _, imported := range p.Imports {
			to, isInPkg := folderIn(strings.TrimPrefix(imported, module+"/"))
			if !isInPkg || from == to {
				continue
			}
			arrows[from+" -> "+to] = true
			if above, below := floorOf(from), floorOf(to); above < 0 || below <= above {
				t.Errorf("%s imports %s: pkg/%s is not below pkg/%s", p.path(), imported, to, from)
			}
		}
	}
	t.Logf("%d folders on %d floors, with %d arrows between them", len(slices.Concat(floors...)), len(floors), len(arrows))
}

// folderIn returns the folder of pkg that a package is in.
func folderIn(path string) (folder string, isInPkg bool) {
	rest, isInPkg := strings.CutPrefix(path, "pkg/")
	folder, _, _ = strings.Cut(rest, "/")
	return folder, isInPkg
}

// floorOf returns the number of a folder's floor, counted from the top, and -1 for a folder that is not listed.
func floorOf(folder string) int {
	return slices.IndexFunc(floors, func(floor []string) bool { return slices.Contains(floor, folder) })
}
