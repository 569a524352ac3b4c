// Package bundle reads a package with all packages that it depends on, from folders, tarballs, URLs, repositories and registries, and stores them on a hub.
// It judges nothing itself: core/pack and core/tree do.
package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Bundle is a package with all packages that it depends on.
type Bundle struct {
	// Members lists the packages, dependencies first, the requested package last.
	Members []*Member
	// stored lists the versions on the hub, if a package depends on one of them.
	stored []kudo.OperatorVersion
}

// Member is one package of a bundle.
type Member struct {
	source
	Pkg      *pack.Package
	Problems []pack.Problem
	// Children holds the versions that tasks refer to, by the index of the task. A task that could not be resolved has no entry.
	Children map[int]childVersion
	// unsought lists the names that were not looked up.
	unsought []string
	// Charts are the archives of charts, by their names in the content.
	Charts map[string][]byte
	// fetched are the charts that are not in the package, by the index of the task.
	fetched map[int]*registry.Chart
	fetcher *ChartFetcher
	// Rendered is what the charts render, by the names of the tasks.
	Rendered map[string]pack.Chart
}

// childVersion is the version that a task refers to: a member or, if member is nil, a version on the hub.
type childVersion struct {
	Member *Member
	Name   string
	spec   *kudo.OperatorVersionSpec
}

// Root returns the requested package.
func (b *Bundle) Root() *Member { return b.Members[len(b.Members)-1] }

// membersLimit is the number of packages that a bundle may load.
const membersLimit = 100

// Loader loads a package with all packages that it depends on. It is for one package.
type Loader struct {
	// Repository is the URL or folder of the KUDO repository in which names are looked up; empty for none.
	Repository string
	// TryValues also tries hostile values of parameters.
	TryValues bool
	// Catalog is the repository's content; nil until a name is looked up.
	Catalog listing
	// Versions returns the versions on the hub, in which names are looked up without a repository; nil to not look up names.
	Versions func() ([]kudo.OperatorVersion, error)

	// Registry returns the client of registries; nil for one with the credentials of the user's docker.
	Registry func() (*oci.Client, error)
	// Repositories returns the client of repositories and registries of charts; nil for one with the credentials of the user's Helm and docker.
	Repositories func() (*registry.Client, error)
	// Room limits the content of all tarballs together, and the archives of all charts that are fetched, each in bytes; 0 for what a command may load.
	Room int64
	// Transport sends the requests for packages at URLs; nil for the default one.
	Transport http.RoundTripper
	// Pulled are the references, with digests, of the packages that were pulled from registries, by the references that named them.
	Pulled map[string]artifact.Reference

	http      *http.Client
	Fetcher   ChartFetcher
	downloads map[tarball]download
	// room is the remaining number of bytes that tarballs may contain.
	room   int64
	met    map[string]*Member
	bundle Bundle
}

// LoadBundle loads the package of that name with all packages that it depends on, and collects all problems.
func (l *Loader) LoadBundle(ctx context.Context, name string) (*Bundle, error) {
	l.Begin()
	from, err := l.OpenSource(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.LoadFrom(ctx, from)
}

// Begin forgets what was loaded before. The methods that load a package by its name call it.
func (l *Loader) Begin() {
	l.http, l.downloads, l.met = httpClient(l.Transport), map[tarball]download{}, map[string]*Member{}
	l.room, l.Fetcher.room = cmp.Or(l.Room, roomForArchives), l.Room
	l.Pulled = map[string]artifact.Reference{}
	l.Fetcher.open = l.Repositories
	if l.Registry == nil {
		l.Registry = sync.OnceValues(func() (*oci.Client, error) { return oci.New(oci.Options{}) })
	}
}

// LoadFrom loads the bundle of a package at a location.
func (l *Loader) LoadFrom(ctx context.Context, from source) (*Bundle, error) {
	root, err := l.load(ctx, from)
	if err != nil {
		return nil, err
	}
	root.Problems = append(root.Problems, l.bundle.twins()...)
	root.Problems = append(root.Problems, l.bundle.problems()...)
	return &l.bundle, nil
}

func (l *Loader) verify(p *pack.Package) []pack.Problem {
	if l.TryValues {
		return p.VerifyValues()
	}
	return p.Verify()
}

// load loads the package at a location. Each location is loaded once.
func (l *Loader) load(ctx context.Context, from source) (*Member, error) {
	if known := l.met[from.key()]; known != nil {
		return known, nil
	}
	if len(l.met) == membersLimit {
		return nil, fmt.Errorf("more than %d packages in total: split the operator", membersLimit)
	}
	m, err := l.LoadAlone(ctx, from)
	if err != nil {
		return nil, err
	}
	for i, task := range m.Pkg.Version.Tasks {
		if !tree.MakesChild(task) || task.Spec.Package == "" {
			continue
		}
		child, err := l.child(ctx, from, task)
		var failed failure
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &failed):
			return nil, err
		case errors.Is(err, errNotLookedFor):
			m.unsought = append(m.unsought, task.Spec.Package)
			m.find(i, pack.Warning, "task %q: package %q %v", task.Name, task.Spec.Package, err)
		case err != nil:
			m.find(i, pack.Error, "task %q: package %q: %v", task.Name, task.Spec.Package, err)
		default:
			m.Children[i] = child
			m.Problems = append(m.Problems, m.misfits(i, task, child)...)
		}
	}
	l.bundle.Members = append(l.bundle.Members, m)
	return m, nil
}

// LoadAlone loads the package at a location without those that it depends on.
func (l *Loader) LoadAlone(ctx context.Context, from source) (*Member, error) {
	p, err := from.load()
	if err != nil {
		return nil, err
	}
	m := &Member{source: from, Pkg: p, Problems: l.verify(p), Children: map[int]childVersion{}, fetcher: &l.Fetcher}
	l.met[from.key()] = m
	if err := m.renderCharts(ctx, l.TryValues); err != nil {
		return nil, failure{err}
	}
	return m, nil
}

// misfits returns problems about parameters that the task passes to the child. A problem that no parameter of the parent can fix is an
// error.
func (m *Member) misfits(i int, task kudo.Task, child childVersion) []pack.Problem {
	parameters, from, known := m.Pkg.ChildParameters(task)
	if !known {
		return nil
	}
	err := parameter.Validate(child.spec, parameters, from)
	if err == nil {
		return nil
	}
	if task.Spec.ParameterFile == "" {
		return []pack.Problem{m.Pkg.At(fmt.Sprintf("tasks[%d].spec", i), pack.Error, fmt.Sprintf(
			"task %q: %s requires parameters, but the task has no parameterFile: %v", task.Name, child.Name, err))}
	}
	return []pack.Problem{m.Pkg.At(fmt.Sprintf("tasks[%d].spec.parameterFile", i), pack.Warning, fmt.Sprintf(
		"task %q: with the default parameters, the parameterFile is not valid for %s: %v", task.Name, child.Name, err))}
}

// find adds a problem about the package that a task names.
func (m *Member) find(task int, severity pack.Severity, format string, args ...any) {
	m.Problems = append(m.Problems, m.Pkg.At(fmt.Sprintf("tasks[%d].spec.package", task), severity, text.JoinMessage(fmt.Sprintf(format, args...))))
}

// errNotLookedFor is returned for a name that was not looked up.
var errNotLookedFor = errors.New("is only a name and was not looked up: set --repository to look it up in a repository; without it, " +
	"'kubectl addon package push' looks it up on the hub")

// child returns the version that a task of the package at from refers to.
func (l *Loader) child(ctx context.Context, from source, task kudo.Task) (childVersion, error) {
	var at source
	var err error
	switch name := task.Spec.Package; {
	case artifact.IsReference(name):
		at, err = l.openReference(ctx, name)
	case IsURL(name):
		at, err = l.openLinked(ctx, from, name)
	case IsPath(name):
		at, err = l.openFrom(ctx, from, name)
	case l.Repository != "":
		return l.openNamed(ctx, task)
	case l.Versions != nil:
		return l.storedVersion(task)
	default:
		return childVersion{}, errNotLookedFor
	}
	if err != nil {
		return childVersion{}, err
	}
	return l.childAt(ctx, at, task)
}

// childAt returns the package at a location if it has the versions that the task requests.
func (l *Loader) childAt(ctx context.Context, at source, task kudo.Task) (childVersion, error) {
	m, err := l.load(ctx, at)
	if err != nil {
		return childVersion{}, err
	}
	spec := &m.Pkg.Version
	if spec.Operator.Name == "" {
		return childVersion{}, fmt.Errorf("%s is not valid", m.Name)
	}
	for _, version := range []struct{ field, asked, is string }{
		{"operatorVersion", task.Spec.OperatorVersion, spec.Version}, {"appVersion", task.Spec.AppVersion, spec.AppVersion},
	} {
		if version.asked != "" && version.asked != version.is {
			return childVersion{}, fmt.Errorf("its %s is %q, but the task requests %q", version.field, version.is, version.asked)
		}
	}
	return childVersion{Member: m, Name: VersionName(m.Pkg), spec: spec}, nil
}

// storedVersion returns the version on the hub that a task refers to.
func (l *Loader) storedVersion(task kudo.Task) (childVersion, error) {
	found, err := l.Versions()
	if err != nil {
		return childVersion{}, failure{err}
	}
	l.bundle.stored = found
	chosen, err := tree.Choose(task, found)
	if err != nil {
		return childVersion{}, fmt.Errorf("on the hub: %w; set --repository to look it up in a repository", err)
	}
	return childVersion{Name: chosen.Name, spec: chosen.NamedSpec()}, nil
}

// Objects returns the package's objects for the hub, in which tasks name operators and exact OperatorVersions instead of the locations of
// packages. The name makes them exact: without it, a version without appVersion would mean any appVersion.
func (m *Member) Objects(namespace string) (*kudo.Operator, *kudo.OperatorVersion) {
	operator, version := m.Pkg.Objects(namespace)
	m.setSources(version)
	for i, child := range m.Children {
		spec := &version.Spec.Tasks[i].Spec
		spec.Package, spec.OperatorVersion, spec.AppVersion = child.spec.Operator.Name, child.spec.Version, child.spec.AppVersion
		spec.OperatorVersionName = child.Name
	}
	return operator, version
}

// twins returns problems about packages at different locations that have the same OperatorVersion but different contents.
func (b *Bundle) twins() []pack.Problem {
	first := map[string]*Member{}
	var problems []pack.Problem
	for _, m := range b.Members {
		_, version := m.Objects("")
		other, exists := first[version.Name]
		if !exists || m.Pkg.Name == "" {
			first[version.Name] = m
			continue
		}
		_, another := other.Objects("")
		if changed := pack.ChangedFields(&another.Spec, &version.Spec); len(changed) > 0 {
			problems = append(problems, b.problem(fmt.Sprintf(
				"%s and %s are both OperatorVersion %s, but differ (%s): raise operatorVersion in one of them",
				other.Name, m.Name, version.Name, strings.Join(changed, ", "))))
		}
	}
	return problems
}

// problems returns the problems of the tree of child Instances. A name that was not looked up counts as a package without dependencies.
func (b *Bundle) problems() []pack.Problem {
	var versions, unsought []kudo.OperatorVersion
	for _, m := range b.Members {
		_, version := m.Objects("")
		version.Spec.Tasks = slices.Clone(version.Spec.Tasks)
		for i := range version.Spec.Tasks {
			task := &version.Spec.Tasks[i]
			switch _, resolved := m.Children[i]; {
			case resolved:
			case slices.Contains(m.unsought, task.Spec.Package):
				task.Spec.OperatorVersion = cmp.Or(task.Spec.OperatorVersion, "unknown") // it may not be one of the loaded versions
				unsought = append(unsought, standIn(task))
			default:
				task.Kind = "" // an unresolved task has its own problem
			}
		}
		versions = append(versions, *version)
	}
	versions = slices.Concat(versions, unsought, b.stored)
	_, err := tree.Resolve(&versions[len(b.Members)-1], versions)
	var invalid *tree.Error
	if !errors.As(err, &invalid) {
		return nil
	}
	var problems []pack.Problem
	for _, problem := range invalid.Problems {
		problems = append(problems, b.problem(problem.Message))
	}
	return problems
}

// standIn returns an empty version that matches the reference of the task.
func standIn(task *kudo.Task) kudo.OperatorVersion {
	var version kudo.OperatorVersion
	version.Name = pack.VersionName(task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion)
	version.Spec.Operator.Name, version.Spec.AppVersion, version.Spec.Version = task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion
	return version
}

// problem returns a problem about the requested package that is caused by its dependencies.
func (b *Bundle) problem(message string) pack.Problem {
	return b.Root().Pkg.At("tasks", pack.Error, message)
}

// openNamed returns the package from the repository that a task refers to by the operator's name.
func (l *Loader) openNamed(ctx context.Context, task kudo.Task) (childVersion, error) {
	if err := l.ReadCatalog(ctx); err != nil {
		return childVersion{}, failure{err}
	}
	entry, err := l.Catalog.choose(task)
	var absent *tree.AbsenceError
	switch where := ShownURL(l.Repository); {
	case errors.As(err, &absent) && len(absent.Others) > 0:
		return childVersion{}, fmt.Errorf("repository %s does not contain %s: available are %s",
			where, absent.Wanted, strings.Join(absent.Others, ", "))
	case errors.As(err, &absent):
		return childVersion{}, fmt.Errorf("repository %s does not contain %s", where, absent.Wanted)
	case err != nil:
		return childVersion{}, err
	}
	at, err := l.openEntry(ctx, entry)
	if err != nil {
		return childVersion{}, err
	}
	child, err := l.childAt(ctx, at, task)
	if err != nil {
		return childVersion{}, err
	}
	return child, entry.mismatch(task.Spec.Package, child.Member)
}

// LoadNamed loads the bundle of a package in the repository, named by its OperatorVersion or, for the highest version, by its operator.
func (l *Loader) LoadNamed(ctx context.Context, name string) (*Bundle, error) {
	l.Begin()
	if err := l.ReadCatalog(ctx); err != nil {
		return nil, err
	}
	version, err := tree.Find(name, l.Catalog.Versions())
	if err != nil {
		return nil, fmt.Errorf("in repository %s: %w", ShownURL(l.Repository), err)
	}
	operator := version.Spec.Operator.Name
	entry := l.Catalog.Entry(operator, version.Name)
	at, err := l.openEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	b, err := l.LoadFrom(ctx, at)
	if err != nil {
		return nil, err
	}
	return b, entry.mismatch(operator, b.Root())
}

// mismatch returns an error for a package that does not match its index entry. Manually written indexes may omit the appVersion.
func (e IndexEntry) mismatch(operator string, m *Member) error {
	spec := m.Pkg.Version
	if spec.Operator.Name == operator && spec.Version == e.OperatorVersion && (e.AppVersion == "" || spec.AppVersion == e.AppVersion) {
		return nil
	}
	return fmt.Errorf("%s contains %s, but the repository index lists %s", m.Name, VersionName(m.Pkg), e.versionName(operator))
}

// VersionName returns the name of the OperatorVersion of a package.
func VersionName(p *pack.Package) string {
	return pack.VersionName(p.Name, p.Version.AppVersion, p.Version.Version)
}

// Distinct returns the members with each OperatorVersion once, because two locations may hold the same package.
func (b *Bundle) Distinct() []*Member {
	met := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(b.Members), func(m *Member) bool {
		name := VersionName(m.Pkg)
		again := met[name]
		met[name] = true
		return again
	})
}

// VersionKeys returns the names of the OperatorVersions of the package and of those that it depends on.
func (b *Bundle) VersionKeys(namespace string) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, m := range b.Distinct() {
		_, version := m.Objects(namespace)
		keys = append(keys, client.ObjectKeyFromObject(version))
	}
	return keys
}

// StoredObjects returns the objects that store the package on a hub, in the order in which they are written.
func (b *Bundle) StoredObjects(namespace string) []client.Object {
	var all []client.Object
	for _, m := range b.Distinct() {
		operator, version := m.Objects(namespace)
		stored, files := pack.Divide(version)
		all = append(all, operator, stored)
		for _, file := range stored.Spec.Content {
			data, isChart := m.Charts[file.File]
			if !isChart {
				data = files[file.File]
			}
			for _, part := range corecontent.Split(data) {
				content := corecontent.New(stored, part)
				content.OwnerReferences = nil // a hub adds it: the OperatorVersion has no identity yet
				all = append(all, content)
			}
		}
	}
	return all
}

// FetchedArchives returns the charts that were fetched for the package and its children, each once.
func (b *Bundle) FetchedArchives() []*registry.Chart {
	var charts []*registry.Chart
	for _, m := range b.Distinct() {
		for _, index := range slices.Sorted(maps.Keys(m.fetched)) {
			found := m.fetched[index]
			if !slices.ContainsFunc(charts, func(c *registry.Chart) bool { return c.Digest == found.Digest && c.Repository == found.Repository }) {
				charts = append(charts, found)
			}
		}
	}
	return charts
}
