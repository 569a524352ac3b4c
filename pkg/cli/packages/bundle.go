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
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/pack"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// bundle is a package with all that it brings along.
type bundle struct {
	// members are the packages, each after those that it needs, the one that was asked for last.
	members []*member
	// stored are the versions on the hub, where a package needs one of them.
	stored []kudo.OperatorVersion
}

// member is one package of a bundle.
type member struct {
	source
	pkg      *pack.Package
	findings []pack.Finding
	// children are the versions that tasks mean, by the index of the task. A task that is missing here could not be resolved.
	children map[int]childVersion
	// unsought are the names that were looked for nowhere.
	unsought []string
}

// childVersion is what a task means: a member, or where that is nil a version on the hub.
type childVersion struct {
	member *member
	name   string
	spec   *kudo.OperatorVersionSpec
}

func (b *bundle) root() *member { return b.members[len(b.members)-1] }

// membersLimit bounds how many packages one may make this program load.
const membersLimit = 100

// loader loads a package with all that it brings along.
type loader struct {
	http *http.Client
	// repository is the URL or the folder of a KUDO repository, in which names are looked for; none if empty.
	repository string
	// catalog of the repository; nil until a name is looked for.
	catalog catalog
	// versions are those on the hub, where names are looked for without a repository; nil: nowhere.
	versions func() ([]kudo.OperatorVersion, error)

	downloads map[tarball]download
	// room is how many bytes tarballs may still hold.
	room   int64
	met    map[string]*member
	bundle bundle
}

// addFlag lets a command say where names are looked for.
func (l *loader) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.repository, "repository", "",
		"URL or folder of a repository of KUDO packages, which holds index.yaml: where packages that are only a name are looked for")
}

// failure is an error that says nothing about a package, such as that the hub cannot be reached. It ends the loading.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// loadBundle reads the package of that name and all that it brings along, and says everything there is to say about it.
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
}

// loadFrom is loadBundle for a package that is at a place.
func (l *loader) loadFrom(ctx context.Context, from source) (*bundle, error) {
	root, err := l.load(ctx, from)
	if err != nil {
		return nil, err
	}
	root.findings = append(root.findings, l.bundle.twins()...)
	root.findings = append(root.findings, l.bundle.faults()...)
	return &l.bundle, nil
}

// load reads the package at a place, which is the same one whenever it is met.
func (l *loader) load(ctx context.Context, from source) (*member, error) {
	if known := l.met[from.key()]; known != nil {
		return known, nil
	}
	if len(l.met) == membersLimit {
		return nil, fmt.Errorf("more than %d packages in all: split the operator", membersLimit)
	}
	p, err := from.load()
	if err != nil {
		return nil, err
	}
	m := &member{source: from, pkg: p, findings: p.Verify(), children: map[int]childVersion{}}
	l.met[from.key()] = m
	for i, task := range p.Version.Tasks {
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
			m.findings = append(m.findings, m.misfits(i, task, child)...)
		}
	}
	l.bundle.members = append(l.bundle.members, m)
	return m, nil
}

// misfits is what the child has against the parameters that the task gives it. What no parameter of the parent can change is an error.
func (m *member) misfits(i int, task kudo.Task, child childVersion) []pack.Finding {
	parameters, known := m.pkg.ChildParameters(task)
	if !known {
		return nil
	}
	err := parameter.Validate(child.spec, parameters)
	if err == nil {
		return nil
	}
	if task.Spec.ParameterFile == "" {
		return []pack.Finding{m.pkg.At(fmt.Sprintf("tasks[%d].spec", i), pack.Error, fmt.Sprintf(
			"task %q: %s refuses to run without parameters, and no parameterFile gives any: %v", task.Name, child.name, err))}
	}
	return []pack.Finding{m.pkg.At(fmt.Sprintf("tasks[%d].spec.parameterFile", i), pack.Warning, fmt.Sprintf(
		"task %q: with the default parameters, %s refuses what the parameterFile gives it: %v", task.Name, child.name, err))}
}

// find adds a finding about the package that a task names.
func (m *member) find(task int, severity pack.Severity, format string, args ...any) {
	m.findings = append(m.findings, m.pkg.At(fmt.Sprintf("tasks[%d].spec.package", task), severity, terminal.OneLine(fmt.Sprintf(format, args...))))
}

// errNotLookedFor says that a name was looked for nowhere.
var errNotLookedFor = errors.New("is only a name, and was not looked for: --repository says where to look for it, and without " +
	"that 'kubectl addon package push' looks on the hub")

// child finds what the task of the package at from means.
func (l *loader) child(ctx context.Context, from source, task kudo.Task) (childVersion, error) {
	var at source
	var err error
	switch name := task.Spec.Package; {
	case isURL(name):
		at, err = l.openURL(ctx, name)
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

// childAt is the package at a place, in the versions that the task asks for.
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
			return childVersion{}, fmt.Errorf("its %s is %q, and the task asks for %q", version.field, version.is, version.asked)
		}
	}
	return childVersion{member: m, name: versionName(m.pkg), spec: spec}, nil
}

// storedVersion is the version on the hub that a task means.
func (l *loader) storedVersion(task kudo.Task) (childVersion, error) {
	found, err := l.versions()
	if err != nil {
		return childVersion{}, failure{err}
	}
	l.bundle.stored = found
	chosen, err := tree.Choose(task, found)
	if err != nil {
		return childVersion{}, fmt.Errorf("on the hub: %w; --repository looks for it in a repository", err)
	}
	return childVersion{name: chosen.Name, spec: &chosen.Spec}, nil
}

// objects are what is stored of the package: its tasks name operators and exact versions in place of where their packages are.
func (m *member) objects(namespace string) (*kudo.Operator, *kudo.OperatorVersion) {
	operator, version := m.pkg.Objects(namespace)
	for i, child := range m.children {
		spec := &version.Spec.Tasks[i].Spec
		spec.Package, spec.OperatorVersion, spec.AppVersion = child.spec.Operator.Name, child.spec.Version, child.spec.AppVersion
	}
	return operator, version
}

// twins are packages at different places that make one OperatorVersion with different contents.
func (b *bundle) twins() []pack.Finding {
	first := map[string]*member{}
	var findings []pack.Finding
	for _, m := range b.members {
		_, version := m.objects("")
		other, exists := first[version.Name]
		if !exists || m.pkg.Name == "" {
			first[version.Name] = m
			continue
		}
		_, another := other.objects("")
		if changed := changedFields(&another.Spec, &version.Spec); len(changed) > 0 {
			findings = append(findings, b.fault(fmt.Sprintf("%s and %s both are OperatorVersion %s, with another content (%s): raise operatorVersion in one of them",
				other.name, m.name, version.Name, strings.Join(changed, ", "))))
		}
	}
	return findings
}

// faults are what is wrong with the tree as a whole. What a name stands for that was looked for nowhere is taken to bring nothing along.
func (b *bundle) faults() []pack.Finding {
	var versions, unsought []kudo.OperatorVersion
	for _, m := range b.members {
		_, version := m.objects("")
		version.Spec.Tasks = slices.Clone(version.Spec.Tasks)
		for i := range version.Spec.Tasks {
			task := &version.Spec.Tasks[i]
			switch _, resolved := m.children[i]; {
			case resolved:
			case slices.Contains(m.unsought, task.Spec.Package):
				task.Spec.OperatorVersion = cmp.Or(task.Spec.OperatorVersion, "unknown") // perhaps none of those that are here
				unsought = append(unsought, standIn(task))
			default:
				task.Kind = "" // what could not be resolved has a finding of its own
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
	var findings []pack.Finding
	for _, fault := range invalid.Faults {
		findings = append(findings, b.fault(fault.Message))
	}
	return findings
}

// standIn is a version without anything that is what the task means.
func standIn(task *kudo.Task) kudo.OperatorVersion {
	var version kudo.OperatorVersion
	version.Name = pack.VersionName(task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion)
	version.Spec.Operator.Name, version.Spec.AppVersion, version.Spec.Version = task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion
	return version
}

// fault is a finding about the package that was asked for, because of what it brings along.
func (b *bundle) fault(message string) pack.Finding {
	return b.root().pkg.At("tasks", pack.Error, message)
}

// openNamed is the package that a task names by the operator's name, from the repository.
func (l *loader) openNamed(ctx context.Context, task kudo.Task) (childVersion, error) {
	if err := l.readCatalog(ctx); err != nil {
		return childVersion{}, failure{err}
	}
	entry, err := l.catalog.choose(task)
	var absent *tree.AbsenceError
	switch where := shownURL(l.repository); {
	case errors.As(err, &absent) && len(absent.Others) > 0:
		return childVersion{}, fmt.Errorf("the repository %s does not have %s; there are %s", where, absent.Wanted, strings.Join(absent.Others, ", "))
	case errors.As(err, &absent):
		return childVersion{}, fmt.Errorf("the repository %s does not have %s", where, absent.Wanted)
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

// loadNamed is loadBundle for a package of the repository, called as its OperatorVersion or, in the highest version, as its operator.
func (l *loader) loadNamed(ctx context.Context, name string) (*bundle, error) {
	l.begin()
	if err := l.readCatalog(ctx); err != nil {
		return nil, err
	}
	version, err := Named(name, l.catalog.versions())
	if err != nil {
		return nil, fmt.Errorf("in the repository %s: %w", shownURL(l.repository), err)
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
