package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// bundle is a package with all packages that it depends on.
type bundle struct {
	// members lists the packages, dependencies first, the requested package last.
	members []*member
	// stored lists the versions on the hub, if a package depends on one of them.
	stored []kudo.OperatorVersion
}

// member is one package of a bundle.
type member struct {
	source
	pkg      *pack.Package
	problems []pack.Problem
	// children holds the versions that tasks refer to, by the index of the task. A task that could not be resolved has no entry.
	children map[int]childVersion
	// unsought lists the names that were not looked up.
	unsought []string
	// charts are the archives of charts, by their names in the content.
	charts map[string][]byte
	// fetched are the charts that are not in the package, by the index of the task.
	fetched map[int]*registry.Chart
	fetcher *chartFetcher
	// rendered is what the charts render, by the names of the tasks.
	rendered map[string]pack.Chart
}

// childVersion is the version that a task refers to: a member or, if member is nil, a version on the hub.
type childVersion struct {
	member *member
	name   string
	spec   *kudo.OperatorVersionSpec
}

func (b *bundle) root() *member { return b.members[len(b.members)-1] }

// membersLimit is the number of packages that a bundle may load.
const membersLimit = 100

// loader loads a package with all packages that it depends on.
type loader struct {
	http *http.Client
	// repository is the URL or folder of the KUDO repository in which names are looked up; empty for none.
	repository string
	// tryValues also tries hostile values of parameters.
	tryValues bool
	// catalog is the repository's content; nil until a name is looked up.
	catalog listing
	// versions returns the versions on the hub, in which names are looked up without a repository; nil to not look up names.
	versions func() ([]kudo.OperatorVersion, error)

	registries registries.Flags
	// pulled are the packages that were pulled from registries, by their references.
	pulled map[string]*oci.Pulled

	fetcher   chartFetcher
	downloads map[tarball]download
	// room is the remaining number of bytes that tarballs may contain.
	room   int64
	met    map[string]*member
	bundle bundle
}

// addFlag adds the flags that select the repository, and those of registries.
func (l *loader) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.repository, "repository", "",
		"URL or folder of a repository of KUDO packages (with an index.yaml), in which packages given only by name are looked up.")
	l.registries.AddTo(cmd)
}

// failure is an error that is not a problem of a package, such as an unreachable hub. It stops loading.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// loadBundle loads the package of that name with all packages that it depends on, and collects all problems.
func (l *loader) loadBundle(ctx context.Context, name string) (*bundle, error) {
	l.begin()
	from, err := l.openSource(ctx, name)
	if err != nil {
		return nil, err
	}
	return l.loadFrom(ctx, from)
}

func (l *loader) begin() {
	l.http, l.downloads, l.room, l.met = httpClient(), map[tarball]download{}, roomForArchives, map[string]*member{}
	l.pulled = map[string]*oci.Pulled{}
}

// loadFrom loads the bundle of a package at a location.
func (l *loader) loadFrom(ctx context.Context, from source) (*bundle, error) {
	root, err := l.load(ctx, from)
	if err != nil {
		return nil, err
	}
	root.problems = append(root.problems, l.bundle.twins()...)
	root.problems = append(root.problems, l.bundle.problems()...)
	return &l.bundle, nil
}

func (l *loader) verify(p *pack.Package) []pack.Problem {
	if l.tryValues {
		return p.VerifyValues()
	}
	return p.Verify()
}

// load loads the package at a location. Each location is loaded once.
func (l *loader) load(ctx context.Context, from source) (*member, error) {
	if known := l.met[from.key()]; known != nil {
		return known, nil
	}
	if len(l.met) == membersLimit {
		return nil, fmt.Errorf("more than %d packages in total: split the operator", membersLimit)
	}
	m, err := l.loadAlone(ctx, from)
	if err != nil {
		return nil, err
	}
	for i, task := range m.pkg.Version.Tasks {
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
			m.children[i] = child
			m.problems = append(m.problems, m.misfits(i, task, child)...)
		}
	}
	l.bundle.members = append(l.bundle.members, m)
	return m, nil
}

// loadAlone loads the package at a location without those that it depends on.
func (l *loader) loadAlone(ctx context.Context, from source) (*member, error) {
	p, err := from.load()
	if err != nil {
		return nil, err
	}
	m := &member{source: from, pkg: p, problems: l.verify(p), children: map[int]childVersion{}, fetcher: &l.fetcher}
	l.met[from.key()] = m
	if err := m.renderCharts(ctx, l.tryValues); err != nil {
		return nil, failure{err}
	}
	return m, nil
}

// misfits returns problems about parameters that the task passes to the child. A problem that no parameter of the parent can fix is an
// error.
func (m *member) misfits(i int, task kudo.Task, child childVersion) []pack.Problem {
	parameters, from, known := m.pkg.ChildParameters(task)
	if !known {
		return nil
	}
	err := parameter.Validate(child.spec, parameters, from)
	if err == nil {
		return nil
	}
	if task.Spec.ParameterFile == "" {
		return []pack.Problem{m.pkg.At(fmt.Sprintf("tasks[%d].spec", i), pack.Error, fmt.Sprintf(
			"task %q: %s requires parameters, but the task has no parameterFile: %v", task.Name, child.name, err))}
	}
	return []pack.Problem{m.pkg.At(fmt.Sprintf("tasks[%d].spec.parameterFile", i), pack.Warning, fmt.Sprintf(
		"task %q: with the default parameters, the parameterFile is not valid for %s: %v", task.Name, child.name, err))}
}

// find adds a problem about the package that a task names.
func (m *member) find(task int, severity pack.Severity, format string, args ...any) {
	m.problems = append(m.problems, m.pkg.At(fmt.Sprintf("tasks[%d].spec.package", task), severity, text.JoinMessage(fmt.Sprintf(format, args...))))
}

// errNotLookedFor is returned for a name that was not looked up.
var errNotLookedFor = errors.New("is only a name and was not looked up: set --repository to look it up in a repository; without it, " +
	"'kubectl addon package push' looks it up on the hub")

// child returns the version that a task of the package at from refers to.
func (l *loader) child(ctx context.Context, from source, task kudo.Task) (childVersion, error) {
	var at source
	var err error
	switch name := task.Spec.Package; {
	case artifact.IsReference(name):
		at, err = l.openReference(ctx, name)
	case isURL(name):
		at, err = l.openLinked(ctx, from, name)
	case IsPath(name):
		at, err = l.openFrom(ctx, from, name)
	case l.repository != "":
		return l.openNamed(ctx, task)
	case l.versions != nil:
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
func (l *loader) childAt(ctx context.Context, at source, task kudo.Task) (childVersion, error) {
	m, err := l.load(ctx, at)
	if err != nil {
		return childVersion{}, err
	}
	spec := &m.pkg.Version
	if spec.Operator.Name == "" {
		return childVersion{}, fmt.Errorf("%s is not valid", m.name)
	}
	for _, version := range []struct{ field, asked, is string }{
		{"operatorVersion", task.Spec.OperatorVersion, spec.Version}, {"appVersion", task.Spec.AppVersion, spec.AppVersion},
	} {
		if version.asked != "" && version.asked != version.is {
			return childVersion{}, fmt.Errorf("its %s is %q, but the task requests %q", version.field, version.is, version.asked)
		}
	}
	return childVersion{member: m, name: versionName(m.pkg), spec: spec}, nil
}

// storedVersion returns the version on the hub that a task refers to.
func (l *loader) storedVersion(task kudo.Task) (childVersion, error) {
	found, err := l.versions()
	if err != nil {
		return childVersion{}, failure{err}
	}
	l.bundle.stored = found
	chosen, err := tree.Choose(task, found)
	if err != nil {
		return childVersion{}, fmt.Errorf("on the hub: %w; set --repository to look it up in a repository", err)
	}
	return childVersion{name: chosen.Name, spec: chosen.NamedSpec()}, nil
}

// objects returns the package's objects for the hub, in which tasks name operators and exact OperatorVersions instead of the locations of
// packages. The name makes them exact: without it, a version without appVersion would mean any appVersion.
func (m *member) objects(namespace string) (*kudo.Operator, *kudo.OperatorVersion) {
	operator, version := m.pkg.Objects(namespace)
	m.setSources(version)
	for i, child := range m.children {
		spec := &version.Spec.Tasks[i].Spec
		spec.Package, spec.OperatorVersion, spec.AppVersion = child.spec.Operator.Name, child.spec.Version, child.spec.AppVersion
		spec.OperatorVersionName = child.name
	}
	return operator, version
}

// twins returns problems about packages at different locations that have the same OperatorVersion but different contents.
func (b *bundle) twins() []pack.Problem {
	first := map[string]*member{}
	var problems []pack.Problem
	for _, m := range b.members {
		_, version := m.objects("")
		other, exists := first[version.Name]
		if !exists || m.pkg.Name == "" {
			first[version.Name] = m
			continue
		}
		_, another := other.objects("")
		if changed := pack.ChangedFields(&another.Spec, &version.Spec); len(changed) > 0 {
			problems = append(problems, b.problem(fmt.Sprintf(
				"%s and %s are both OperatorVersion %s, but differ (%s): raise operatorVersion in one of them",
				other.name, m.name, version.Name, strings.Join(changed, ", "))))
		}
	}
	return problems
}

// problems returns the problems of the tree of child Instances. A name that was not looked up counts as a package without dependencies.
func (b *bundle) problems() []pack.Problem {
	var versions, unsought []kudo.OperatorVersion
	for _, m := range b.members {
		_, version := m.objects("")
		version.Spec.Tasks = slices.Clone(version.Spec.Tasks)
		for i := range version.Spec.Tasks {
			task := &version.Spec.Tasks[i]
			switch _, resolved := m.children[i]; {
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
	_, err := tree.Resolve(&versions[len(b.members)-1], versions)
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
func (b *bundle) problem(message string) pack.Problem {
	return b.root().pkg.At("tasks", pack.Error, message)
}

// openNamed returns the package from the repository that a task refers to by the operator's name.
func (l *loader) openNamed(ctx context.Context, task kudo.Task) (childVersion, error) {
	if err := l.readCatalog(ctx); err != nil {
		return childVersion{}, failure{err}
	}
	entry, err := l.catalog.choose(task)
	var absent *tree.AbsenceError
	switch where := shownURL(l.repository); {
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
	return child, entry.mismatch(task.Spec.Package, child.member)
}

// loadNamed loads the bundle of a package in the repository, named by its OperatorVersion or, for the highest version, by its operator.
func (l *loader) loadNamed(ctx context.Context, name string) (*bundle, error) {
	l.begin()
	if err := l.readCatalog(ctx); err != nil {
		return nil, err
	}
	version, err := tree.Find(name, l.catalog.versions())
	if err != nil {
		return nil, fmt.Errorf("in repository %s: %w", shownURL(l.repository), err)
	}
	operator := version.Spec.Operator.Name
	entry := l.catalog.entry(operator, version.Name)
	at, err := l.openEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	b, err := l.loadFrom(ctx, at)
	if err != nil {
		return nil, err
	}
	return b, entry.mismatch(operator, b.root())
}

// mismatch returns an error for a package that does not match its index entry. Manually written indexes may omit the appVersion.
func (e indexEntry) mismatch(operator string, m *member) error {
	spec := m.pkg.Version
	if spec.Operator.Name == operator && spec.Version == e.OperatorVersion && (e.AppVersion == "" || spec.AppVersion == e.AppVersion) {
		return nil
	}
	return fmt.Errorf("%s contains %s, but the repository index lists %s", m.name, versionName(m.pkg), e.versionName(operator))
}

func versionName(p *pack.Package) string {
	return pack.VersionName(p.Name, p.Version.AppVersion, p.Version.Version)
}

// distinct returns the members with each OperatorVersion once, because two locations may hold the same package.
func (b *bundle) distinct() []*member {
	met := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(b.members), func(m *member) bool {
		name := versionName(m.pkg)
		again := met[name]
		met[name] = true
		return again
	})
}
