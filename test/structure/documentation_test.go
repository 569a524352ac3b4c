package structure

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// scenarioName is the name in the literal of a scenario.
var scenarioName = regexp.MustCompile(`return scenario\{\n\t+name: +"([a-z]+)"`)

// TestEveryFaultScenarioIsDocumented holds docs/reliability.md to test/faults/plans.
func TestEveryFaultScenarioIsDocumented(t *testing.T) {
	page := readText(t, "docs/reliability.md")
	files, err := filepath.Glob(filepath.Join(root, "test/faults/plans/*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for _, file := range files {
		text := readText(t, filepath.Join("test/faults/plans", filepath.Base(file)))
		for _, found := range scenarioName.FindAllStringSubmatch(text, -1) {
			number++
			if !strings.Contains(page, "\n| `"+found[1]+"` | ") {
				t.Errorf("docs/reliability.md has no row for scenario %s", found[1])
			}
		}
	}
	if number < 15 {
		t.Errorf("found %d scenarios", number)
	}
}

// TestEveryPageIsOnTheSite holds the groups of the site to docs/: `make docs` fails without one.
func TestEveryPageIsOnTheSite(t *testing.T) {
	_, groups, _ := strings.Cut(readText(t, "hack/site/.vitepress/config.mjs"), "const groups = {")
	groups, _, _ = strings.Cut(groups, "\n}\n")
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		if name := strings.TrimSuffix(filepath.Base(page), ".md"); !strings.Contains(groups, "'"+name+"'") {
			t.Errorf("no group of hack/site/.vitepress/config.mjs has docs/%s.md", name)
		}
	}
}
