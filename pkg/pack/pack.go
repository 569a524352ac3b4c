// Package pack decides what a package on disk says and whether it is valid: operator.yaml, params.yaml and templates/ in
// KUDO's format on one side, Operator and OperatorVersion on the other. It is pure (fs.FS in) and touches no cluster.
package pack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// The files of a package.
const (
	operatorFile    = "operator.yaml"
	paramsFile      = "params.yaml"
	templatesFolder = "templates"
)

// MaxSize bounds an OperatorVersion, in bytes of JSON, and every file of a package. etcd refuses objects over 1.5 MiB; the
// rest is left for managed fields.
const MaxSize = 1 << 20

// Severity says how bad a finding is.
type Severity string

const (
	// Error means that the package cannot be run.
	Error Severity = "error"
	// Warning means that the package runs, though perhaps not as its author thinks.
	Warning Severity = "warning"
)

// Finding is one thing that verification has to say.
type Finding struct {
	// File in the package, with slashes; empty in findings over an OperatorVersion.
	File string
	// Line in File, from 1; in findings over an OperatorVersion the line in the template that Field names. 0 if unknown.
	Line int
	// Column in Line, from 1, in characters. 0 if unknown: only YAML files have columns.
	Column int
	// Field is the path of what is meant, such as tasks[0].spec.resources[1].
	Field string
	// Severity of the finding.
	Severity Severity
	// Message names the thing, the value and the way out.
	Message string
}

// String is FILE:LINE:COLUMN: SEVERITY: MESSAGE as compilers write it, with the field in place of the file where there is no file.
func (f Finding) String() string {
	place := f.File
	if place == "" {
		place = f.Field
	}
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	if f.Column > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Column)
	}
	return fmt.Sprintf("%s: %s: %s", place, f.Severity, f.Message)
}

// Errors are the findings of severity Error, in their order.
func Errors(findings []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Severity != Error })
}

// Package is an operator package as it stands on disk.
type Package struct {
	// Name of the operator.
	Name string
	// Operator describes it.
	Operator kudo.OperatorSpec
	// Version is what Objects writes into the OperatorVersion.
	Version kudo.OperatorVersionSpec

	// findings of Load.
	findings []Finding
	// places of the fields of operator.yaml and params.yaml, by the field's path in the OperatorVersion.
	places map[string]place
	// readable says whether there is an operator.yaml to apply the rules to, hasParams whether there is a params.yaml.
	readable, hasParams bool
}

// place in a file; only the readers of YAML know columns.
type place struct {
	file         string
	line, column int
}

// Load reads operator.yaml, params.yaml and every file under templates/ strictly; other files are left alone. Findings
// name unknown and duplicate fields, wrong types and missing required fields, all of them. The package is never nil and
// holds whatever could be read.
func Load(fsys fs.FS) (*Package, []Finding) {
	p := &Package{places: map[string]place{}}
	p.loadOperator(fsys)
	p.loadParams(fsys)
	p.loadTemplates(fsys)
	sortFindings(p.findings)
	return p, slices.Clone(p.findings)
}

// Verify is everything that can be said about the package, sorted by file and line: the findings of Load, those of Check,
// and, if nothing is wrong so far, whether the templates render with the default parameters. A line that Load could not
// read is not judged again.
func (p *Package) Verify() []Finding {
	findings := slices.Clone(p.findings)
	if !p.readable {
		return findings
	}
	subject := newSubject(&p.Version)
	subject.operator, subject.blind = p.Operator, !p.hasParams
	judged := subject.judge()
	if len(Errors(findings)) == 0 && len(Errors(judged)) == 0 {
		judged = append(judged, trial(subject)...)
	}
	unread := p.unread()
	for _, f := range judged {
		f = p.locate(f)
		if !unread[place{file: f.File, line: f.Line}] {
			findings = append(findings, f)
		}
	}
	sortFindings(findings)
	return slices.Compact(findings)
}

// unread are the places that Load could not read.
func (p *Package) unread() map[place]bool {
	places := map[place]bool{}
	for _, f := range p.findings {
		if f.Severity == Error {
			places[place{file: f.File, line: f.Line}] = true
		}
	}
	return places
}

// Objects are the Operator and the OperatorVersion to store in namespace.
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

// VersionName is the name of an OperatorVersion: <operator>-<appVersion>-<version>, or <operator>-<version> without an
// appVersion (KUDO's rule).
func VersionName(operator, appVersion, version string) string {
	if appVersion == "" {
		return operator + "-" + version
	}
	return operator + "-" + appVersion + "-" + version
}

func (p *Package) loadOperator(fsys fs.FS) {
	d, root := p.open(fsys, operatorFile)
	if root == nil {
		return
	}
	p.readable = true
	d.operator(root, p)
	p.Version.Operator = corev1.ObjectReference{Kind: "Operator", Name: p.Name}
	p.close(d)
}

func (p *Package) loadParams(fsys fs.FS) {
	d, root := p.open(fsys, paramsFile)
	if root == nil {
		return
	}
	p.hasParams = true
	p.Version.Parameters = d.params(root)
	p.close(d)
}

func (p *Package) loadTemplates(fsys fs.FS) {
	names, err := templateFiles(fsys)
	for _, name := range names {
		p.loadTemplate(fsys, name)
	}
	if err != nil {
		p.fault(templatesFolder, 0, "%v", err)
	}
}

// templateFiles are the files under templates/ that are not hidden.
func templateFiles(fsys fs.FS) ([]string, error) {
	info, err := fs.Stat(fsys, templatesFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil // a package of Dummy tasks needs none; a task that refers to a missing template is found by the rules
	case err != nil:
		return nil, fmt.Errorf("cannot be read: %w", err)
	case !info.IsDir():
		return nil, errors.New("is not a folder")
	}
	var names []string
	err = fs.WalkDir(fsys, templatesFolder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading the templates: %w", err)
		}
		if strings.HasPrefix(path.Base(name), ".") {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Files are what Load reads of a package that is valid, sorted.
func Files(fsys fs.FS) ([]string, error) {
	templates, err := templateFiles(fsys)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", templatesFolder, err)
	}
	return append([]string{operatorFile, paramsFile}, templates...), nil
}

func (p *Package) loadTemplate(fsys fs.FS, name string) {
	text, ok := p.read(fsys, name)
	if !ok {
		return
	}
	if p.Version.Templates == nil {
		p.Version.Templates = map[string]string{}
	}
	p.Version.Templates[strings.TrimPrefix(name, templatesFolder+"/")] = text
}

// read returns the text of a file; where it cannot, it says why in a finding.
func (p *Package) read(fsys fs.FS, name string) (string, bool) {
	info, err := fs.Stat(fsys, name)
	switch {
	case err != nil:
		p.fault(name, 0, "cannot be read: %v", err)
		return "", false
	case !info.Mode().IsRegular():
		p.fault(name, 0, "is not a regular file")
		return "", false
	case info.Size() > MaxSize:
		p.fault(name, 0, "has %d bytes, more than the %d that an OperatorVersion can hold: split the operator or shorten the file",
			info.Size(), MaxSize)
		return "", false
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		p.fault(name, 0, "cannot be read: %v", err)
		return "", false
	}
	if !utf8.Valid(text) {
		p.fault(name, 0, "is not UTF-8 text: remove it from the package or encode it, with base64 for example")
		return "", false
	}
	return string(text), true
}

func (p *Package) fault(file string, line int, format string, args ...any) {
	p.findings = append(p.findings, Finding{File: file, Line: line, Severity: Error, Message: fmt.Sprintf(format, args...)})
}

// At is a finding about a field of the OperatorVersion, such as tasks[0].spec.package, at its place in the package: for what only others
// can say, who know more than the package.
func (p *Package) At(field string, severity Severity, message string) Finding {
	return p.locate(Finding{Field: field, Severity: severity, Message: message})
}

// locate turns the field of a rule's finding into file and line.
func (p *Package) locate(f Finding) Finding {
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

// parentField cuts the last part of a path such as tasks[0].spec.resources[1].
func parentField(field string) string {
	return field[:max(strings.LastIndexAny(field, ".["), 0)]
}

// templateField is the path of a template in an OperatorVersion; templateOf is its inverse.
func templateField(name string) string { return "templates[" + name + "]" }

func templateOf(field string) (name string, ok bool) {
	name, ok = strings.CutPrefix(field, "templates[")
	return strings.TrimSuffix(name, "]"), ok
}

func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
}

// size is the number of bytes that the specification has in JSON.
func size(spec *kudo.OperatorVersionSpec) int {
	text, err := json.Marshal(spec)
	if err != nil {
		return 0 // plain data always marshals
	}
	return len(text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
