package structure

import (
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wording is a phrase that Tandem does not use in text that people read, and the words to use instead.
type wording struct {
	avoid *regexp.Regexp
	say   string
}

// phrase matches an expression as complete words, in any case, also across the end of a line of prose or of a comment.
func phrase(expression, say string) wording {
	spaced := strings.ReplaceAll(expression, " ", `\s+(?://\s*|#\s*|\*\s*)?`)
	return wording{avoid: regexp.MustCompile(`(?i)\b(?:` + spaced + `)\b`), say: say}
}

// wordings lists the phrases to avoid. To add one, run `go test ./test/structure -run Words` and replace what it reports.
var wordings = []wording{
	phrase(`nobody|somebody|whoever|people who|anybody`, "the passive, or the noun: no controller, another writer, anyone who"),
	phrase(`stands`, "is, is stored, conflicts with, in place"),
	phrase(`(?:bring|brings|bringing|brought) (?:along|about)`, "dependencies, child operators; creates, causes"),
	phrase(`(?:go|goes|going|went) on`, "continues"),
	phrase(`(?:go|goes|going|went) with`, "is deleted too, belongs to"),
	phrase(`(?:come|comes|coming|came) back`, "reconnects, returns"),
	phrase(`comes to it`, "reaches"),
	phrase(`(?:let|lets|letting) (?:\w+ )?go`, "releases"),
	phrase(`(?:let|lets|letting) in`, "admitted"),
	phrase(`(?:leave|leaves|leaving|left) away`, "omitted"),
	phrase(`anew|once more`, "again; re-created"),
	phrase(`(?:hear|hears|heard) of`, "received, known"),
	phrase(`none of \w+'s`, "does not belong to"),
	phrase(`(?:is|are|was|were) that of`, "name the noun"),
	phrase(`what there is|what is there`, "existing objects"),
	phrase(`(?:make|makes|made) no sense`, "invalid"),
	phrase(`how it is|how far`, "status, progress"),
	phrase(`wish|wishes|wished`, "desired state, spec"),
	phrase(`for lack of`, "because ... is missing"),
	phrase(`for (?:its|their) turn|whose turn`, "queued, next"),
	phrase(`says? whether`, "reports whether"),
	phrase(`dependants?`, "dependent"),
	phrase(`circles?`, "cycle"),
	phrase(`for good`, "permanently"),
	phrase(`as ever`, "as before"),
	phrase(`in vain`, "without effect"),
	phrase(`out of touch|(?:lose|loses|lost) touch`, "unreachable, disconnected"),
	phrase(`thereof|thereupon|wherefrom|hereby`, "name the noun"),
	{avoid: regexp.MustCompile(`(?m)^(?:<{7} |>{7} |={7}$)`), say: "one side: this is the mark of a merge conflict"},
}

// pageWordings lists phrases to avoid on pages, beside wordings. Messages, which tests quote, may still have them.
var pageWordings = []wording{
	phrase(`also (?:if|while|when)`, "even if, even while"),
	phrase(`(?:starts?|started|continues?|recovers?|retry|retries)(?: again)? by (?:itself|themselves)`, "automatically"),
	phrase(`(?:is|are) no (?:part of|text|value|names?|powers?)`, "is not"),
	phrase(`at worst`, "in the worst case"),
	phrase(`by hand`, "manually; on a manual request"),
	phrase(`people`, "users"),
	phrase(`(?:the|its) price`, "the cost"),
	phrase(`what follows from that`, "Consequences"),
	phrase(`whatever (?:its|their|the|other)`, "regardless of"),
	phrase(`(?:no|the) way out`, "does not work; the fix"),
	phrase(`(?:hand|hands) (?:it|the object) over|(?:take|takes) (?:it|the object) back`, "transfer; adopt again"),
}

// testLinkOnPage matches a link to a test, whose text is the name of the test.
var testLinkOnPage = regexp.MustCompile(`\[[^\]]*\]\([^)]*_test\.go\)`)

// TestWordsArePlain reads all pages, scripts and manifests, and the comments and strings of Go files.
func TestWordsArePlain(t *testing.T) {
	for _, s := range sources(t) {
		if s.path == "test/structure/words_test.go" {
			continue
		}
		for _, comments := range s.syntax.Comments {
			plain(t, s.at(comments), comments.Text(), wordings)
		}
		if s.isTest() {
			continue // quotes what others write
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				plain(t, s.at(literal), literal.Value, wordings)
			}
			return true
		})
	}
	for _, page := range proseFiles(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		plain(t, page, string(text), wordings)
		if strings.HasSuffix(page, ".md") {
			plain(t, page, testLinkOnPage.ReplaceAllString(string(text), ""), pageWordings)
		}
	}
}

// proseFiles lists the tracked files of prose, configuration and scripts.
func proseFiles(t *testing.T) []string {
	t.Helper()
	output, err := exec.Command("git", "-C", root, "ls-files", "-co", "--exclude-standard", "*.md", "*.yaml", "*.sh", "Makefile", ".ci").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(output))
	if len(files) == 0 {
		t.Fatal("no pages found")
	}
	return files
}

// plain fails for every phrase to avoid in a text that begins at a position.
func plain(t *testing.T, at, text string, avoid []wording) {
	t.Helper()
	for _, w := range avoid {
		for _, found := range w.avoid.FindAllStringIndex(text, -1) {
			line := strings.Count(text[:found[0]], "\n")
			t.Errorf("%s, line +%d: %q: say %s", at, line, text[found[0]:found[1]], w.say)
		}
	}
}
