package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ProblemsText returns a line for each problem, with file names relative to the working directory.
func (b *Bundle) ProblemsText() string {
	var text strings.Builder
	for _, m := range b.RootFirst() {
		for _, f := range m.Problems {
			f.File = m.file(f.File)
			text.WriteString(f.String() + "\n")
		}
	}
	return text.String()
}

// Errors returns the errors of a package and of its child packages.
func (b *Bundle) Errors() []string {
	var found []string
	for _, m := range b.RootFirst() {
		for _, f := range pack.Errors(m.Problems) {
			f.File = m.file(f.File)
			found = append(found, f.String())
		}
	}
	return found
}

// FetchedText lists the charts that were fetched for a bundle.
func (b *Bundle) FetchedText() string {
	var lines strings.Builder
	for _, m := range b.RootFirst() {
		for _, c := range m.FetchedCharts() {
			lines.WriteString(SourceText(c))
		}
	}
	return lines.String()
}

// RootFirst returns the members in the order of the output.
func (b *Bundle) RootFirst() []*Member {
	last := len(b.Members) - 1
	return append([]*Member{b.Members[last]}, b.Members[:last]...)
}

// Brings returns the sorted names of the child OperatorVersions.
func (b *Bundle) Brings() []string {
	names := map[string]bool{}
	for _, m := range b.Members {
		for _, child := range m.Children {
			names[child.Name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// NotLookedFor returns the sorted names of packages that were not looked up.
func (b *Bundle) NotLookedFor() []string {
	var names []string
	for _, m := range b.Members {
		names = append(names, m.unsought...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckValid returns an error if the package or one of its child packages has errors.
func (b *Bundle) CheckValid(name string) error {
	var problems, all int
	for _, m := range b.Members {
		problems += len(pack.Errors(m.Problems))
		all += len(m.Problems)
	}
	if problems == 0 {
		return nil
	}
	found := text.Plural(problems, "error")
	if warnings := all - problems; warnings > 0 {
		found += ", " + text.Plural(warnings, "warning")
	}
	return fmt.Errorf("package %s is not valid: %s", name, found)
}

// ContentDigests returns the digests of the OperatorVersions in a bundle, which its signature covers. Versions on the hub have signatures of their own.
func (b *Bundle) ContentDigests() (map[string]string, error) {
	if names := b.NotLookedFor(); len(names) > 0 {
		return nil, fmt.Errorf("child packages %s were not looked up, so the signature cannot cover their versions: set --repository",
			text.List(names, 3))
	}
	digests := map[string]string{}
	for _, m := range b.Distinct() {
		_, version := m.Objects("")
		digests[version.Name] = signature.ContentDigest(version)
	}
	return digests, nil
}
