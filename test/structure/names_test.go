package structure

import (
	"go/ast"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// glossary lists words that identifiers do not contain, and what Go code calls the concept instead. Each expression matches the words of an
// identifier in lower case, separated by spaces: `mostAhead` is "most ahead".
var glossary = []wording{
	phrase(`^(most|longest)`, "max…, …Timeout, …Delay or …Interval"),
	phrase(`patience|in a row`, "…Timeout, max…"),
	phrase(`tell|tells|telling|told|announce|announced|begun`, "emit, report, enqueue or print"),
	phrase(`outdated|behind|newest`, "stale, live or latest"),
	phrase(`unhurried|grace|quiet (?:period|time)s?`, "pace, …Delay or …Timeout"),
	phrase(`bereft|forsaken|heirs?|make way|last words|theirs`, "the condition, or the noun"),
}

// proseGlossary lists what comments, names of tests and texts of specs do not contain either. A word of the glossary that is normal English
// in a sentence is ruled out only where it names the concept: the longest path, a client behind a proxy and the grace period of a pod are
// fine.
var proseGlossary = []wording{
	phrase(`patience|times in a row`, "timeout, consecutive"),
	phrase(`tell|tells|telling|told|announce|announces|announced|begun`, "emit, report, record, print, distinguish, started"),
	phrase(`outdated|newest`, "stale, live or latest"),
	phrase(`(?:caches?|views?|readers?) (?:is|are|may be) behind|lags? behind`, "stale"),
	phrase(`unhurried|quiet (?:period|time)s?`, "pace, write delay"),
	phrase(`bereft|forsaken|heirs?|make way|makes way|last words`, "the condition, or the noun"),
}

// borrowed are names that contain a word of the glossary and belong to Kubernetes.
var borrowed = []string{"GracePeriodSeconds", "DeletionGracePeriodSeconds", "TerminationGracePeriodSeconds"}

// TestIdentifiersAreOfTheGlossary reads everything that the code declares: packages, functions, types, fields, constants, variables.
func TestIdentifiersAreOfTheGlossary(t *testing.T) {
	for _, s := range sources(t) {
		if s.isGenerated() {
			continue
		}
		declared(s.syntax, func(name *ast.Ident) {
			if isTestName(name.Name) || slices.Contains(borrowed, name.Name) {
				return
			}
			words := spaced(name.Name)
			if i := slices.IndexFunc(glossary, func(w wording) bool { return w.avoid.MatchString(words) }); i >= 0 {
				t.Errorf("%s: %s: say %s", s.at(name), name.Name, glossary[i].say)
			}
		})
	}
}

// TestSentencesAreOfTheGlossary reads comments, the names of tests, the keys of their tables, and the texts of specs.
func TestSentencesAreOfTheGlossary(t *testing.T) {
	for _, s := range sources(t) {
		if s.isGenerated() {
			continue
		}
		for _, comments := range s.syntax.Comments {
			plain(t, s.at(comments), comments.Text(), proseGlossary)
		}
		if !s.isTest() {
			continue
		}
		for _, function := range functions(s) {
			if name := function.Name.Name; isTestName(name) {
				plain(t, s.at(function), spaced(name), proseGlossary)
				plain(t, s.at(function), spaced(name), wordings)
			}
		}
		testTexts(s, func(text *ast.BasicLit) { plain(t, s.at(text), text.Value, proseGlossary) })
	}
}

const ginkgo = "github.com/onsi/ginkgo/v2"

// ginkgoNodes are Ginkgo's containers and specs.
var ginkgoNodes = []string{"Describe", "Context", "When", "It", "Specify", "DescribeTable", "DescribeTableSubtree", "Entry"}

// testTexts visits the literals that name specs, steps and cases: the first argument of Ginkgo's nodes, and the string keys of maps.
func testTexts(s source, visit func(*ast.BasicLit)) {
	each := func(node ast.Node) {
		ast.Inspect(node, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				visit(literal)
			}
			return true
		})
	}
	dotted := slices.Contains(s.dotted, ginkgo)
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			function, ok := node.Fun.(*ast.Ident)
			if ok && dotted && len(node.Args) > 0 && (function.Name == "By" || slices.Contains(ginkgoNodes, function.Name)) {
				each(node.Args[0])
			}
		case *ast.KeyValueExpr:
			each(node.Key)
		}
		return true
	})
}

// The largest share of functions that are named by a bare participle, in percent: most such names do not say what the function returns.
const maxParticiples = 1

var participle = regexp.MustCompile(`^[A-Za-z][a-z]+(ed|ing)$`)

// verbs end like participles and are none.
var verbs = []string{"String", "Need", "need", "Feed", "feed", "Seed", "seed", "Ping", "ping", "Embed", "embed"}

func TestFewFunctionsAreNamedByAParticiple(t *testing.T) {
	var all int
	var found []string
	for _, s := range sources(t) {
		if s.isGenerated() || !within("pkg")(s.folder()) {
			continue
		}
		for _, function := range functions(s) {
			all++
			if name := function.Name.Name; participle.MatchString(name) && !slices.Contains(verbs, name) {
				found = append(found, s.at(function)+": "+name)
			}
		}
	}
	t.Logf("%d of %d functions are named by a bare participle:\n%s", len(found), all, strings.Join(found, "\n"))
	if len(found)*100 > all*maxParticiples {
		t.Errorf("%d of %d functions are named by a bare participle, more than %d%%: name them by the noun that they return, by a verb, or isX",
			len(found), all, maxParticiples)
	}
}

// declared visits every identifier that a file declares.
func declared(file *ast.File, visit func(*ast.Ident)) {
	each := func(names ...*ast.Ident) {
		for _, name := range names {
			visit(name)
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			each(node.Name)
		case *ast.TypeSpec:
			each(node.Name)
		case *ast.ValueSpec:
			each(node.Names...)
		case *ast.Field:
			each(node.Names...)
		case *ast.AssignStmt:
			for _, left := range node.Lhs {
				if name, ok := left.(*ast.Ident); ok && node.Tok == token.DEFINE {
					visit(name)
				}
			}
		case *ast.RangeStmt:
			for _, variable := range []ast.Expr{node.Key, node.Value} {
				if name, ok := variable.(*ast.Ident); ok && node.Tok == token.DEFINE {
					visit(name)
				}
			}
		}
		return true
	})
}

// isTestName reports whether go test runs the function: its name is a sentence, which follows the rules of prose.
func isTestName(name string) bool {
	return slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark", "Example"}, func(prefix string) bool {
		rest, found := strings.CutPrefix(name, prefix)
		return found && rest != "" && unicode.IsUpper(rune(rest[0]))
	})
}

// spaced returns the words of an identifier in lower case: "dry run of" for DryRunOf.
func spaced(identifier string) string {
	var words strings.Builder
	for i, letter := range identifier {
		if i > 0 && unicode.IsUpper(letter) {
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(letter))
	}
	return words.String()
}

// TestKeysOfJSONBeginInLowerCase reads the tags of fields: Kubernetes' conventions, and what docs/cli.md promises of -o json.
func TestKeysOfJSONBeginInLowerCase(t *testing.T) {
	for _, s := range sources(t) {
		if s.isTest() {
			continue
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			field, ok := node.(*ast.Field)
			if !ok || field.Tag == nil {
				return true
			}
			key := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
			if key != "" && unicode.IsUpper(rune(key[0])) {
				t.Errorf("%s: key %q: begin it in lower case", s.at(field), key)
			}
			return true
		})
	}
}
