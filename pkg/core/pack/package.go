package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/release"
)

// The files of a package.
const (
	operatorFile    = "operator.yaml"
	paramsFile      = "params.yaml"
	templatesFolder = "templates"
)

// MaxSize limits an OperatorVersion, in bytes of JSON, and every file of a package but its templates. etcd rejects objects over 1.5 MiB; the rest
// is reserved for managed fields.
const MaxSize = 1 << 20

// Package is an operator package on disk.
type Package struct {
	// Name of the operator.
	Name string
	// Operator is the description of the operator.
	Operator kudo.OperatorSpec
	// Version is the specification of the OperatorVersion.
	Version kudo.OperatorVersionSpec

	// problems of Load.
	problems []Problem
	// places maps the paths of OperatorVersion fields to their places in operator.yaml and params.yaml.
	places map[string]place
	// readable is true if there is an operator.yaml to apply the rules to, hasParams if there is a params.yaml.
	readable, hasParams bool
	// samples are objects for the rules of health.
	samples []sample
	// charts are what VerifyCharts received.
	charts map[string]Chart
}

// sample is an object that a rule judges in verification.
type sample struct {
	file   string
	want   health.Status
	object *unstructured.Unstructured
}

// Chart is what the chart of a Helm task renders without a cluster.
type Chart struct {
	// Renderings are those of an install and of an upgrade, with the default parameters. There is none if the chart does not render with them.
	Renderings []release.Rendering
	// Lookups are what its templates have looked up.
	Lookups []Lookup
}

// Lookup is a call of Helm's function lookup. A call without a name reads all objects of a kind.
type Lookup struct{ APIVersion, Kind, Namespace, Name string }

// place in a file; only YAML files have columns.
type place struct {
	file         string
	line, column int
}

// Objects returns the Operator and the OperatorVersion to store in namespace.
func (p *Package) Objects(namespace string) (*kudo.Operator, *kudo.OperatorVersion) {
	operator := &kudo.Operator{
		TypeMeta:   metav1.TypeMeta{APIVersion: kudo.GroupVersion.String(), Kind: "Operator"},
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace},
		Spec:       *p.Operator.DeepCopy(),
	}
	version := &kudo.OperatorVersion{
		TypeMeta: metav1.TypeMeta{APIVersion: kudo.GroupVersion.String(), Kind: "OperatorVersion"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      VersionName(p.Name, p.Version.AppVersion, p.Version.Version),
			Namespace: namespace,
		},
		Spec: *p.Version.DeepCopy(),
	}
	return operator, version
}

// VersionName returns the name of an OperatorVersion: <operator>-<appVersion>-<version>, or <operator>-<version> without an appVersion
// (KUDO's rule).
func VersionName(operator, appVersion, version string) string {
	if appVersion == "" {
		return operator + "-" + version
	}
	return operator + "-" + appVersion + "-" + version
}

// Divide returns an OperatorVersion of the package as it is stored, and the templates that are too large for it, by name: OperatorContents store
// them.
func Divide(version *kudo.OperatorVersion) (stored *kudo.OperatorVersion, files map[string][]byte) {
	stored = version.DeepCopy()
	spec, files := content.Fit(&version.Spec, MaxSize)
	stored.Spec = *spec
	return stored, files
}

// readFile returns the text of a file of at most that many bytes; on failure it adds a problem.
func (p *Package) readFile(fsys fs.FS, name string, maxBytes int64, of string) (string, bool) {
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		p.problem(name, 0, "%v", unreadable(err))
		return "", false
	case !info.Mode().IsRegular():
		p.problem(name, 0, "is not a regular file")
		return "", false
	case info.Size() > maxBytes:
		p.problem(name, 0, "has %d bytes, more than the limit of %d for %s: split the operator or shorten the file", info.Size(), maxBytes, of)
		return "", false
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		p.problem(name, 0, "%v", unreadable(err))
		return "", false
	}
	if !utf8.Valid(text) {
		p.problem(name, 0, "is not UTF-8 text: remove it from the package or encode it, for example with base64")
		return "", false
	}
	return string(text), true
}

func (p *Package) problem(file string, line int, format string, args ...any) {
	p.problems = append(p.problems, Problem{File: file, Line: line, Severity: Error, Message: fmt.Sprintf(format, args...)})
}

// At returns a problem about a field of the OperatorVersion, such as tasks[0].spec.package, at its place in the package. It serves callers
// that check more than the package itself.
func (p *Package) At(field string, severity Severity, message string) Problem {
	return p.locate(Problem{Field: field, Severity: severity, Message: message})
}

// locate converts the field of a rule's problem to file and line.
func (p *Package) locate(f Problem) Problem {
	if name, ok := templateOf(f.Field); ok {
		if _, exists := p.Version.Templates[name]; exists {
			f.File = templatesFolder + "/" + name
			return f
		}
	}
	for field := f.Field; field != ""; field = parentField(field) {
		if at, ok := p.places[field]; ok {
			f.File, f.Line, f.Column = at.file, at.line, at.column
			return f
		}
	}
	f.File = operatorFile
	return f
}

// parentField removes the last part of a path such as tasks[0].spec.resources[1].
func parentField(field string) string {
	return field[:max(strings.LastIndexAny(field, ".["), 0)]
}

// unreadable returns the error of a file that cannot be read, without its path, which the problem names.
func unreadable(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	if strings.Contains(err.Error(), "path escapes from parent") { // os.Root has no exported error
		err = errors.New("it is a symbolic link that leads out of the package")
	}
	return fmt.Errorf("cannot be read: %w", err)
}
