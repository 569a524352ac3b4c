// Package structure tests what a linter cannot express about the code's structure: what pure packages reach, the order of files, names, words,
// and what pages say about the code. It reads the source and touches no cluster.
package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tandem-addons/tandem"

// root is the folder of go.mod, relative to this package.
const root = "../.."

// listed is the output of `go list` for a package of the module.
type listed struct {
	ImportPath string
	GoFiles    []string
	Imports    []string
	Deps       []string
}

// path returns the path of the package below the module's root, such as "pkg/core/plan".
func (p listed) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// packages lists the module's packages that contain more than tests.
func packages(t *testing.T) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-e", "-json=ImportPath,GoFiles,Imports,Deps", "./...")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var found []listed
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		if len(p.GoFiles) > 0 {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		t.Fatal("go list found no packages")
	}
	return found
}

// source is a parsed Go file of the module.
type source struct {
	path    string // below the module's root
	files   *token.FileSet
	syntax  *ast.File
	imports []string          // import paths
	names   map[string]string // import name -> import path
	dotted  []string          // import paths of dot imports
}

func (s source) folder() string    { return path.Dir(s.path) }
func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGenerated() bool { return ast.IsGenerated(s.syntax) }

// at returns a position in the format of compilers.
func (s source) at(node ast.Node) string {
	position := s.files.Position(node.Pos())
	return (&token.Position{Filename: s.path, Line: position.Line, Column: position.Column}).String()
}

// uses visits every use of a name of an imported package, such as time.Now.
func (s source) uses(visit func(node ast.Node, importPath, name string)) {
	ast.Inspect(s.syntax, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if qualifier, ok := selector.X.(*ast.Ident); ok {
				if importPath, ok := s.names[qualifier.Name]; ok {
					visit(node, importPath, selector.Sel.Name)
				}
			}
		}
		return true
	})
}

// sources parses every Go file of the module. Every test calls it or shares a cached result with tests that do, so that changed files
// invalidate the test cache although `go list` runs in a separate process.
func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && isIgnored(entry.Name()) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parse(name)
		if err == nil {
			found = append(found, parsed)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no Go files found")
	}
	return found
}

// isIgnored reports whether the go command or git ignores a folder of that name.
func isIgnored(folder string) bool {
	return strings.HasPrefix(folder, ".") || strings.HasPrefix(folder, "_") || folder == "testdata" || folder == "bin"
}

func parse(name string) (source, error) {
	files := token.NewFileSet()
	syntax, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	below, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, err
	}
	s := source{path: filepath.ToSlash(below), files: files, syntax: syntax, names: map[string]string{}}
	for _, spec := range syntax.Imports {
		importPath := strings.Trim(spec.Path.Value, `"`)
		s.imports = append(s.imports, importPath)
		if name := localName(spec, importPath); name == "." {
			s.dotted = append(s.dotted, importPath)
		} else {
			s.names[name] = importPath
		}
	}
	return s, nil
}

// localName returns the name of an import in a file: its own, else the last part of the path that is not a version.
func localName(spec *ast.ImportSpec, importPath string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	last := path.Base(importPath)
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		return path.Base(path.Dir(importPath))
	}
	return last
}
