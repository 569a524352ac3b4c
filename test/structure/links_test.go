package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	// link matches a Markdown link to a file or an anchor on the same host.
	link = regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`)
	// heading matches the heading of a section.
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	// code matches a code block.
	code = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	listed, err := exec.Command("git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	links := 0
	for _, page := range strings.Fields(string(listed)) {
		text := readPage(t, filepath.Join(root, page))
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			links++
			target := filepath.Join(root, page)
			if found[1] != "" {
				target = filepath.Join(filepath.Dir(target), found[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s leads to a file that is not there", page, found[0])
				continue
			}
			if found[2] != "" && !anchors(readPage(t, target))[found[2]] {
				t.Errorf("%s: %s leads to a section that is not there", page, found[0])
			}
		}
	}
	if links == 0 {
		t.Error("no links found")
	}
}

// readPage returns a page without its code blocks.
func readPage(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return code.ReplaceAllString(string(text), "")
}

// anchors returns the anchors that GitHub generates for the sections of a page.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(page, -1) {
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, found[1])] = true
	}
	return names
}
