package structure

import (
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// securityPage is the page that states what each party can do. Its claims are rows of tables, whose last column links to tests.
const securityPage = "docs/security.md"

// upstreamPage is the page that compares OCM's proposals with Tandem. Its tables link to tests where there are any.
const upstreamPage = "docs/upstream.md"

// testLink is a link to a test: [NAME › NAME](../FILE), where each name is a function, or a text of a spec or of a case of a table.
var testLink = regexp.MustCompile("\\[`?([^]`]+)`?\\]\\(([^)]+)\\)")

// TestEveryClaimOnSecurityHasATest checks that each row of each table links to tests, and that the linked files contain tests of these names.
func TestEveryClaimOnSecurityHasATest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, securityPage))
	if err != nil {
		t.Fatal(err)
	}
	names := testNamesByFile(t)
	claims := 0
	for number, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		if last == "test" {
			continue
		}
		claims++
		links := testLink.FindAllStringSubmatch(last, -1)
		if len(links) == 0 {
			t.Errorf("%s:%d: a claim without a test: %s", securityPage, number+1, line)
		}
		for _, link := range links {
			checkTestLink(t, securityPage, number+1, link, names)
		}
	}
	if claims < 50 {
		t.Errorf("%s has %d claims: are its tables still read?", securityPage, claims)
	}
}

// TestUpstreamNamesExistingTests checks that the linked files contain the tests that the page names.
func TestUpstreamNamesExistingTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, upstreamPage))
	if err != nil {
		t.Fatal(err)
	}
	names := testNamesByFile(t)
	found := 0
	for number, line := range strings.Split(string(page), "\n") {
		for _, link := range testLink.FindAllStringSubmatch(line, -1) {
			if strings.HasSuffix(link[2], "_test.go") {
				found++
				checkTestLink(t, upstreamPage, number+1, link, names)
			}
		}
	}
	if found < 50 {
		t.Errorf("%s links to %d tests: are its tables still read?", upstreamPage, found)
	}
}

// checkTestLink fails for each name in a match of testLink that the linked file does not contain.
func checkTestLink(t *testing.T, page string, line int, link []string, names map[string][]string) {
	t.Helper()
	file := path.Join(path.Dir(page), link[2])
	for name := range strings.SplitSeq(link[1], " › ") {
		if !slices.Contains(names[file], name) {
			t.Errorf("%s:%d: %s has no test %q", page, line, file, name)
		}
	}
}

// testNamesByFile returns the names of all tests, by the path of their file.
func testNamesByFile(t *testing.T) map[string][]string {
	t.Helper()
	names := map[string][]string{}
	for _, s := range sources(t) {
		if s.isTest() {
			names[s.path] = testNames(s)
		}
	}
	return names
}

// testNames returns the functions and the texts of a file.
func testNames(s source) []string {
	var names []string
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			names = append(names, node.Name.Name)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); node.Kind == token.STRING && err == nil {
				names = append(names, text)
			}
		}
		return true
	})
	return names
}
