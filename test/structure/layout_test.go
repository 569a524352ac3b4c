package structure

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// layoutRow matches a row of the table of folders in docs/development.md, with the names in its first column.
	layoutRow = regexp.MustCompile("(?m)^\\| (`[a-z0-9/]+`(?:, `[a-z0-9/]+`)*) \\|")
	folder    = regexp.MustCompile("[a-z0-9/]+")
)

func TestLayoutListsEveryPackage(t *testing.T) {
	rows := layout(t)
	for name := range rows {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("docs/development.md lists %s, which does not exist", name)
		}
	}
	compiled := map[string]bool{}
	for _, p := range packages(t) {
		compiled[p.path()] = true
	}
	for name := range compiled {
		listed := rows[name] || !within("pkg")(name) || strings.Contains(name, "/testdata/")
		// A folder that is no package itself, such as pkg/api, is listed for all packages in it.
		for above := path.Dir(name); !listed && above != "." && !compiled[above]; above = path.Dir(above) {
			listed = rows[above]
		}
		if !listed {
			t.Errorf("docs/development.md does not list %s in section Layout", name)
		}
	}
}

// layout returns the folders that docs/development.md lists. In a row of several, the last elements suffice for those beside the first one:
// `pkg/agent/mirror`, `engine`.
func layout(t *testing.T) map[string]bool {
	page, err := os.ReadFile(filepath.Join(root, "docs/development.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## Layout\n")
	if !found {
		t.Fatal("docs/development.md has no section Layout")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]bool{}
	for _, row := range layoutRow.FindAllStringSubmatch(section, -1) {
		names := folder.FindAllString(row[1], -1)
		for i, name := range names {
			if i > 0 && !strings.Contains(name, "/") {
				name = path.Join(path.Dir(names[0]), name)
			}
			rows[path.Clean(name)] = true
		}
	}
	return rows
}
