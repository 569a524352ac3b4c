package main

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// goPackage is a package of the module, with the dependencies of its tests.
type goPackage struct {
	folder string          // relative to the module, such as pkg/plan
	tested bool            // whether it has tests
	needs  map[string]bool // the folders of the module that its tests compile
	names  map[string]bool // path elements in string literals of its tests; some are folders that the tests read
}

// listing is what go list prints about a package or about the variant of it that a test binary compiles.
type listing struct {
	ImportPath, ForTest, Dir  string
	Deps                      []string
	TestGoFiles, XTestGoFiles []string
}

// packagesOf returns the packages of a module. read returns the text of a file.
func packagesOf(module string, all []listing, read func(file string) (string, error)) ([]goPackage, error) {
	byFolder := map[string]*goPackage{}
	for _, l := range all {
		folder, ok := folderOf(module, strings.TrimSuffix(l.ImportPath, ".test"))
		if !ok {
			continue
		}
		p := byFolder[folder]
		if p == nil {
			p = &goPackage{folder: folder, needs: map[string]bool{folder: true}, names: map[string]bool{}}
			byFolder[folder] = p
		}
		p.tested = p.tested || strings.HasSuffix(l.ImportPath, ".test")
		for _, dependency := range l.Deps {
			if needed, ok := folderOf(module, dependency); ok {
				p.needs[needed] = true
			}
		}
		for _, file := range slices.Concat(l.TestGoFiles, l.XTestGoFiles) {
			text, err := read(filepath.Join(l.Dir, file))
			if err != nil {
				return nil, err
			}
			addNames(p.names, text)
		}
	}
	var packages []goPackage
	for _, p := range byFolder {
		packages = append(packages, *p)
	}
	slices.SortFunc(packages, func(a, b goPackage) int { return strings.Compare(a.folder, b.folder) })
	return packages, nil
}

// folderOf returns the folder of an import path, which may name a test variant, such as "m/pkg/plan [m/pkg/plan.test]".
func folderOf(module, importPath string) (folder string, ok bool) {
	importPath, _, _ = strings.Cut(importPath, " ")
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// element matches one part of a path in a string literal.
var element = regexp.MustCompile(`["/]([A-Za-z0-9_.-]+)`)

func addNames(names map[string]bool, text string) {
	for _, match := range element.FindAllStringSubmatch(text, -1) {
		names[match[1]] = true
	}
}

// affected returns the tested packages, as arguments of go test, that depend on one of the files: paths relative to the module.
//
// A file belongs to the package in its folder, or in the nearest folder above that has one (testdata, embedded manifests). A file outside
// all packages (docs, deploy, the Makefile) affects the tests that name its first folder, or the file itself. go.mod and go.sum affect all.
func affected(files []string, packages []goPackage) []string {
	folders := map[string]bool{}
	for _, p := range packages {
		folders[p.folder] = true
	}
	var arguments []string
	for _, p := range packages {
		if p.tested && slices.ContainsFunc(files, func(file string) bool { return p.dependsOn(file, folders) }) {
			arguments = append(arguments, "./"+p.folder)
		}
	}
	return arguments
}

func (p goPackage) dependsOn(file string, folders map[string]bool) bool {
	if file == "go.mod" || file == "go.sum" {
		return true
	}
	if owner, ok := ownerOf(file, folders); ok {
		return p.needs[owner]
	}
	first, _, _ := strings.Cut(file, "/")
	return p.names[first]
}

// ownerOf returns the nearest folder at or above a file that has a package; the root of the module does not count.
func ownerOf(file string, folders map[string]bool) (owner string, ok bool) {
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if folders[folder] {
			return folder, true
		}
	}
	return "", false
}
