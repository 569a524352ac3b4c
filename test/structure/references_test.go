package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"
)

// A reference points from a file to a file that declares names it uses.
type reference struct{ from, to string }

// references are the references between the files of a package, with the names of each.
type references map[reference][]string

// exportImporter returns the compiled export data of every package that the module uses, by import path.
func exportImporter(t *testing.T) types.Importer {
	t.Helper()
	command := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export", "./pkg/...", "./cmd/...")
	command.Dir, command.Stderr = root, os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("go list -export: %v", err)
		}
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(importPath string) (io.ReadCloser, error) {
		return os.Open(exports[importPath])
	})
}

// referencesOf type-checks a package and returns the references between its files.
func referencesOf(p listed, known types.Importer) (references, error) {
	files := token.NewFileSet()
	var syntax []*ast.File
	for _, name := range p.GoFiles {
		parsed, err := parser.ParseFile(files, filepath.Join(root, p.path(), name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		syntax = append(syntax, parsed)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked, err := (&types.Config{Importer: known}).Check(p.ImportPath, files, syntax, &info)
	if err != nil {
		return nil, fmt.Errorf("checking the types of %s: %w", p.path(), err)
	}
	fileOf := func(at token.Pos) string { return path.Base(filepath.ToSlash(files.Position(at).Filename)) }
	receivers := receiversOf(syntax)
	names := map[reference]map[string]bool{}
	for use, object := range info.Uses {
		r := reference{from: fileOf(use.Pos()), to: fileOf(object.Pos())}
		if object.Pkg() != checked || !isShared(object, checked) || receivers[use] || r.from == r.to {
			continue
		}
		if names[r] == nil {
			names[r] = map[string]bool{}
		}
		names[r][use.Name] = true
	}
	found := references{}
	for r, used := range names {
		found[r] = slices.Sorted(maps.Keys(used))
	}
	return found, nil
}

// isShared reports whether an object of the package is a function, a type, a constant, a variable or a method visible to other files.
// Fields do not count: a file that selects one gets the struct from a function or a type that it names.
func isShared(object types.Object, in *types.Package) bool {
	function, ok := object.(*types.Func)
	return object.Parent() == in.Scope() || ok && function.Signature().Recv() != nil
}

// receiversOf returns the identifiers in the receivers of methods, because a type's methods may be in files below the type's file.
func receiversOf(syntax []*ast.File) map[*ast.Ident]bool {
	found := map[*ast.Ident]bool{}
	for _, file := range syntax {
		for _, declaration := range file.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && function.Recv != nil {
				ast.Inspect(function.Recv, func(node ast.Node) bool {
					if name, ok := node.(*ast.Ident); ok {
						found[name] = true
					}
					return true
				})
			}
		}
	}
	return found
}
