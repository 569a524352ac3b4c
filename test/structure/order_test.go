package structure

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An exception is a package's allowance beyond a rule.
type exception struct {
	number int
	reason string
}

// unordered lists the packages whose files have no order: read from the top, they use names that an earlier file declares.
var unordered = map[string]exception{
	"pkg/core/availability": {1, "from before the rule"},
	"pkg/core/dependency":   {2, "from before the rule"},
	"pkg/core/health":       {6, "from before the rule"},
	"pkg/api/kudo/v1beta1":  {1, "from before the rule"},
	"pkg/sandbox":           {7, "from before the rule"},
	"pkg/sandbox/story":     {4, "from before the rule"},
}

// A file A refers to a file B of its package if A uses a function, a type, a constant or a variable that B declares, or calls a method that
// B declares. The files of a package must have an order in which all references point downwards.
func TestOrderOfFiles(t *testing.T) {
	known := exportImporter(t)
	exceptions := newExceptions(unordered)
	for _, p := range packages(t) {
		if !within("pkg")(p.path()) && !within("cmd")(p.path()) {
			continue
		}
		found, err := referencesOf(p, known)
		if err != nil {
			t.Fatal(err)
		}
		ordered, upward := order(p.GoFiles, found)
		t.Logf("%s: %d files, %d references, %d of them upwards: %s", p.path(), len(ordered), len(found), len(upward), strings.Join(ordered, " "))
		for _, r := range upward {
			t.Logf("    upwards: %s uses %s of %s", r.from, strings.Join(found[r], ", "), r.to)
		}
		exceptions.check(t, p.path(), len(upward), 0, "references between files run upwards (see them with -v): move the names that two files share down, to where both see them")
	}
	exceptions.checkRest(t)
}

// The maximum number of files of a package, without tests and generated files.
const maxFiles = 25

// large lists the packages with more files.
var large = map[string]exception{
	"pkg/sandbox": {28, "it stands beside the product, and is divided when it next changes"},
}

func TestPackagesAreRooms(t *testing.T) {
	files := map[string]int{}
	for _, s := range sources(t) {
		if !s.isTest() && !s.isGenerated() {
			files[s.folder()]++
		}
	}
	exceptions := newExceptions(large)
	for _, p := range packages(t) {
		exceptions.check(t, p.path(), files[p.path()], maxFiles, "files: divide the package")
	}
	exceptions.checkRest(t)
}

// exceptions are the exceptions to a numeric limit, and those that a test has used.
type exceptions struct {
	all map[string]exception
	met map[string]bool
}

func newExceptions(all map[string]exception) exceptions {
	return exceptions{all: all, met: map[string]bool{}}
}

// check compares a package's number with the limit, or requires exactly the number of its exception.
func (e exceptions) check(t *testing.T, path string, number, limit int, what string) {
	t.Helper()
	e.met[path] = true
	exception, isException := e.all[path]
	switch {
	case isException && exception.reason == "":
		t.Errorf("%s: the exception gives no reason", path)
	case isException && number <= limit:
		t.Errorf("%s has %d: it needs no exception any more, remove it", path, number)
	case isException && number != exception.number:
		t.Errorf("%s has %d %s (its exception says %d: a number that falls is lowered, and none rises)", path, number, what, exception.number)
	case !isException && number > limit:
		t.Errorf("%s has %d %s, at most %d", path, number, what, limit)
	}
}

// checkRest reports exceptions for packages that no longer exist.
func (e exceptions) checkRest(t *testing.T) {
	t.Helper()
	for path := range e.all {
		if !e.met[path] {
			t.Errorf("%s does not exist: remove its exception", path)
		}
	}
}

func TestOrder(t *testing.T) {
	for sentence, test := range map[string]struct {
		files  string
		found  string // references as "ab", from a to b
		order  string
		upward string
	}{
		"unrelated files are in the order of the list": {files: "a b c", order: "a b c"},
		"used declarations are below their users":      {files: "a b c", found: "ba ca cb", order: "c b a"},
		"files without references keep their place":    {files: "a b c d", found: "db", order: "a c d b"},
		"two that use each other have one upwards":     {files: "a b", found: "ab ba", order: "a b", upward: "ba"},
		"a cycle has one upwards":                      {files: "a b c", found: "ab bc ca", order: "a b c", upward: "ca"},
		"two cycles with a file in common have two":    {files: "a b c", found: "ab ba bc cb", order: "a b c", upward: "ba cb"},
		"cycles apart count each for itself":           {files: "a b c d", found: "ab ba cd dc da", order: "c d a b", upward: "ba dc"},
		"one reference upwards saves many":             {files: "a b c d", found: "da db dc ab ac bc cd", order: "d a b c", upward: "cd"},
		"greed alone would choose badly":               {files: "a b c d e", found: "ab bc cd de ea ac bd ce", order: "a b c d e", upward: "ea"},
	} {
		t.Run(sentence, func(t *testing.T) {
			found := references{}
			for _, r := range strings.Fields(test.found) {
				found[reference{r[:1], r[1:]}] = nil
			}
			files := strings.Fields(test.files)
			for range 2 {
				ordered, upward := order(files, found)
				var names []string
				for _, r := range upward {
					names = append(names, r.from+r.to)
				}
				if diff := cmp.Diff([]string{test.order, test.upward}, []string{strings.Join(ordered, " "), strings.Join(names, " ")}); diff != "" {
					t.Error(diff)
				}
				slices.Reverse(files) // the order of the list does not matter
			}
		})
	}
}
