package structure

import (
	"go/ast"
	"go/token"
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
	phrase(`unhurried|grace`, "pace, …Delay or …Timeout"),
	phrase(`bereft|forsaken|heirs?|make way|last words|theirs`, "the condition, or the noun"),
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
			words := spaced(name.Name)
			rules := glossary
			if isTestName(name.Name) {
				rules = wordings
			}
			if i := slices.IndexFunc(rules, func(w wording) bool { return w.avoid.MatchString(words) }); i >= 0 && !slices.Contains(borrowed, name.Name) {
				t.Errorf("%s: %s: say %s", s.at(name), name.Name, rules[i].say)
			}
		})
	}
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
