package structure

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// pure lists the folders whose packages make decisions: their inputs are plain data, without a cluster or a clock. Beside pkg/core, these
// are the decisions that only the plugin and the dashboard need, and the basis of all.
var pure = []string{"pkg/core", "pkg/console/fleet", "pkg/console/progress", "pkg/console/why", "pkg/kube/inflight", "pkg/text", "pkg/ui/graph"}

// foundation lists what every pure package may import in addition to the standard library and other pure packages.
var foundation = []string{
	module + "/pkg/api",
	"go.yaml.in/yaml/v3",
	"k8s.io/api",
	"k8s.io/apimachinery",
	"open-cluster-management.io/api",
	"sigs.k8s.io/json",
	"sigs.k8s.io/yaml",
}

// subjects lists the libraries that a single pure package may import as its subject.
var subjects = map[string][]string{
	"pkg/core/health":          {"github.com/fluxcd/cli-utils/pkg/kstatus/status"},
	"pkg/core/install":         {"github.com/google/uuid"},
	"pkg/core/pack":            {"github.com/Masterminds/semver/v3"},
	"pkg/core/render/template": {"github.com/Masterminds/sprig/v3"},
	"pkg/text":                 {"github.com/pmezard/go-difflib/difflib"},
	"pkg/core/tree":            {"github.com/Masterminds/semver/v3"},
}

// edges lists the packages that do I/O. They do not import each other; only the programs in cmd and tests use them.
var edges = []string{"pkg/hub", "pkg/agent", "pkg/cli", "pkg/sandbox"}

// within returns a function that reports whether a path is the folder or inside it.
func within(folder string) func(string) bool {
	return func(name string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }
}

func isPure(folder string) bool {
	return slices.ContainsFunc(pure, func(p string) bool { return within(p)(folder) })
}

// edgesAmong returns the packages of edges in a list of import paths.
func edgesAmong(imports []string) []string {
	var found []string
	for _, edge := range edges {
		if slices.ContainsFunc(imports, within(module+"/"+edge)) {
			found = append(found, edge)
		}
	}
	return found
}

func TestPurePackagesAndAPIReachNoClient(t *testing.T) {
	walls := []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", module + "/pkg/kube/apply", module + "/pkg/kube/controller"}
	for _, p := range packages(t) {
		if !isPure(p.path()) && !within("pkg/api")(p.path()) {
			continue
		}
		for _, wall := range walls {
			if reached := slices.IndexFunc(p.Deps, within(wall)); reached >= 0 {
				t.Errorf("%s reaches %s: what decides must not be able to reach a cluster (`go list -deps ./%s` shows all)",
					p.path(), p.Deps[reached], p.path())
			}
		}
	}
}

func TestPurePackagesImportLittle(t *testing.T) {
	for _, p := range packages(t) {
		if !isPure(p.path()) {
			continue
		}
		allowed := slices.Concat(foundation, subjects[p.path()])
		for _, imported := range p.Imports {
			first, _, _ := strings.Cut(imported, "/")
			standard := !strings.Contains(first, ".")
			fits := func(wall string) bool { return within(wall)(imported) }
			if !standard && !isPure(strings.TrimPrefix(imported, module+"/")) && !slices.ContainsFunc(allowed, fits) {
				t.Errorf("%s imports %s, which is not among what it may import: %q", p.path(), imported, allowed)
			}
		}
	}
}

func TestPurePackagesImportNoWorld(t *testing.T) {
	worldly := []string{"os", "os/exec", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand",
		"k8s.io/apimachinery/pkg/util/rand", "k8s.io/apimachinery/pkg/util/uuid", "k8s.io/apimachinery/pkg/util/wait"}
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			if isPure(p.path()) && slices.Contains(worldly, imported) {
				t.Errorf("%s imports %s: files come in as fs.FS, and identities as arguments", p.path(), imported)
			}
		}
	}
}

func TestPurePackagesReadNoClockAndThrowNoDice(t *testing.T) {
	impure := map[string][]string{
		"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
		"github.com/google/uuid":               {"New", "NewString", "NewRandom", "NewUUID", "NewV6", "NewV7"},
	}
	for _, s := range sources(t) {
		if !isPure(s.folder()) || s.isTest() {
			continue
		}
		s.uses(func(node ast.Node, importPath, name string) {
			if slices.Contains(impure[importPath], name) {
				t.Errorf("%s: %s.%s in a pure package: take the value as an argument", s.at(node), path.Base(importPath), name)
			}
		})
	}
}

func TestEdgesAreImportedByProgramsOnly(t *testing.T) {
	for _, p := range packages(t) {
		if !within("pkg")(p.path()) {
			continue
		}
		for _, edge := range edgesAmong(p.Deps) {
			if !within(edge)(p.path()) {
				t.Errorf("%s reaches %s: only a program in cmd may", p.path(), edge)
			}
		}
	}
}

func TestEveryProgramImportsExactlyOneEdge(t *testing.T) {
	for _, p := range packages(t) {
		if !within("cmd")(p.path()) {
			continue
		}
		if p.Name != "main" {
			t.Errorf("%s is package %s: cmd holds programs only", p.path(), p.Name)
		}
		if found := edgesAmong(p.Imports); len(found) != 1 {
			t.Errorf("%s imports %q, want exactly one of %q", p.path(), found, edges)
		}
	}
}

// rooms lists what the subpackages of an I/O package may import of its other subpackages. None imports the package itself, which is their
// table of contents.
var rooms = map[string][]string{
	"pkg/hub/ocm":       {"pkg/hub/read"},
	"pkg/hub/read":      nil,
	"pkg/hub/uninstall": nil,
	"pkg/hub/webhook":   {"pkg/hub/read"},
}

func TestRoomsImportWhatIsBelow(t *testing.T) {
	for _, p := range packages(t) {
		below, listed := rooms[p.path()]
		if !listed {
			continue
		}
		for _, imported := range p.Imports {
			imported = strings.TrimPrefix(imported, module+"/")
			if within(path.Dir(p.path()))(imported) && !slices.Contains(below, imported) {
				t.Errorf("%s imports %s: of the rooms beside it, it may import %q", p.path(), imported, below)
			}
		}
	}
}

func TestAddonFrameworkHasOneDoor(t *testing.T) {
	const door = "pkg/hub/ocm/delivery.go"
	for _, s := range sources(t) {
		for _, imported := range s.imports {
			if within("open-cluster-management.io/addon-framework")(imported) && s.path != door {
				t.Errorf("%s imports %s: only %s may", s.path, imported, door)
			}
		}
	}
}

func TestLibraryGoHasOneDoorPerPackage(t *testing.T) {
	doors := map[string]string{}
	for _, s := range sources(t) {
		for _, imported := range s.imports {
			if !within("github.com/openshift/library-go")(imported) {
				continue
			}
			if door, taken := doors[s.folder()]; taken && door != s.path {
				t.Errorf("%s imports %s, and %s imports library-go as well: one file of a package may", s.path, imported, door)
			}
			doors[s.folder()] = s.path
		}
	}
}
