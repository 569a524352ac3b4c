package pack

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/text"
)

// templateSyntax: every template parses with the functions of package template.
func templateSyntax(s *subject) []Problem {
	var problems []Problem
	for _, name := range sortedKeys(s.broken) {
		problem := problemAt(templateField(name), "%v", s.broken[name])
		var broken *template.Error
		if errors.As(s.broken[name], &broken) {
			problem.Line, problem.Message = broken.Line, broken.Err.Error()
		}
		problems = append(problems, problem)
	}
	return problems
}

// templateVariables are the top-level variables of a template (KUDO's).
var templateVariables = []string{
	"Name", "Namespace", "OperatorName", "OperatorVersion", "AppVersion", "PlanName", "PhaseName", "StepName", "Params", "Pipes",
	"Cluster", "Capabilities",
}

// clusterFields are the fields of .Cluster.
var clusterFields = []string{"Name", "Labels", "Claims"}

// maxReferences is the maximum number of problems about the references of one template: it may have tens of thousands.
const maxReferences = 100

// templateReferences: templates refer to existing variables, parameters and keys of Pipe tasks.
func templateReferences(s *subject) []Problem {
	keys := s.pipeKeys()
	var all []Problem
	for _, name := range sortedKeys(s.references) {
		var problems []Problem
		for _, ref := range s.references[name] {
			message := s.lackOf(ref, keys)
			if message == "" {
				continue
			}
			problem := problemAt(templateField(name), "%s", message)
			problem.Line = ref.line
			if len(problems) == maxReferences {
				problem.Message = "there are more wrong references from here on: fix the others first"
				problems = append(problems, problem)
				break
			}
			problems = append(problems, problem)
		}
		all = append(all, problems...)
	}
	return all
}

// lackOf returns what a template refers to and does not exist; empty if it does.
func (s *subject) lackOf(ref reference, keys []string) string {
	switch {
	case ref.kind == paramReference && s.parameters[ref.name] == nil && !s.blind:
		return fmt.Sprintf("parameter %s is not defined in params.yaml: %s", text.Quote(ref.name), s.choices(ref.name, s.parameterNames))
	case ref.kind == pipeReference && !slices.Contains(keys, ref.name):
		return fmt.Sprintf(".Pipes.%s is not a key of any Pipe task: %s", ref.name, s.choices(ref.name, keys))
	case ref.kind == clusterReference && !slices.Contains(clusterFields, ref.name):
		return fmt.Sprintf(".Cluster.%s does not exist: the fields of .Cluster are .%s", ref.name, strings.Join(clusterFields, ", ."))
	case ref.kind == variableReference && !slices.Contains(templateVariables, ref.name):
		return fmt.Sprintf(".%s does not exist: templates can refer to .%s", ref.name, strings.Join(templateVariables, ", ."))
	default:
		return ""
	}
}

func (s *subject) pipeKeys() []string {
	var keys []string
	for _, t := range s.Tasks {
		if t.Kind == kudo.TaskPipe {
			for _, p := range t.Spec.Pipe {
				keys = append(keys, p.Key)
			}
		}
	}
	return keys
}

// unusedTemplates: a template that no task uses may be misspelt.
func unusedTemplates(s *subject) []Problem {
	used := map[string]bool{s.operator.NamespaceManifest: true}
	for _, t := range s.Tasks {
		used[t.Spec.Pod], used[t.Spec.ParameterFile], used[t.Spec.ValuesFile] = true, true, true
		for _, name := range t.Spec.Resources {
			used[name] = true
		}
	}
	var problems []Problem
	for _, name := range s.templateNames {
		if !used[name] {
			problems = append(problems, warningAt(templateField(name), "template %s is not used by any task", text.Quote(name)))
		}
	}
	return problems
}

// removedAPIVersions: a current cluster serves the API versions. The text of a template is searched, not its rendering, to include objects
// that a parameter disables.
func removedAPIVersions(s *subject) []Problem {
	var problems []Problem
	for _, name := range s.templateNames {
		for _, k := range writtenKinds(s.Templates[name]) {
			if message := removalOf(k.gvk); message != "" {
				problem := warningAt(templateField(name), "%s", message)
				problem.Line = k.line
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// removalOf describes the removal of a kind in an API version that Kubernetes has removed; "" for all others.
func removalOf(gvk schema.GroupVersionKind) string {
	if successor, ok := render.Successor(gvk); ok {
		what, version := gvk.GroupVersion().String()+" "+gvk.Kind, successor.GroupVersion().String()
		return fmt.Sprintf("%s is no longer served by Kubernetes and is applied as %s: use that instead", what, version)
	}
	return render.RemovalAdvice(gvk)
}

// writtenKind is a pair of apiVersion and kind as written in a template.
type writtenKind struct {
	gvk  schema.GroupVersionKind
	line int
}

// typeLine matches apiVersion and kind of an object at the left margin, or of an item of a list.
var typeLine = regexp.MustCompile(`^(-? *)(apiVersion|kind):\s*["']?([A-Za-z0-9./-]+)["']?\s*(?:#.*)?$`)

// writtenKinds finds the objects of a template without rendering it. It ignores deeper fields of that name, such as a roleRef's kind.
func writtenKinds(text string) []writtenKind {
	var kinds []writtenKind
	var apiVersion, kind string
	var at int
	margin := ""
	flush := func() {
		if apiVersion != "" && kind != "" {
			kinds = append(kinds, writtenKind{schema.FromAPIVersionAndKind(apiVersion, kind), at})
		}
		apiVersion, kind, at = "", "", 0
	}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if strings.HasPrefix(line, "---") {
			flush()
			margin = ""
			continue
		}
		m := typeLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch {
		case strings.HasPrefix(m[1], "-"):
			flush()
			margin = strings.Replace(m[1], "-", " ", 1)
		case m[1] != margin && m[1] != "":
			continue
		}
		if m[2] == "apiVersion" {
			apiVersion, at = m[3], i+1
		} else {
			kind = m[3]
		}
	}
	flush()
	return kinds
}

// namespaceManifest: the manifest exists, and is one Namespace (KUDO's rule).
func namespaceManifest(s *subject) []Problem {
	const field = "namespaceManifest"
	name := s.operator.NamespaceManifest
	if name == "" {
		return nil
	}
	manifest, ok := s.Templates[name]
	if s.unread[name] {
		return nil
	}
	if !ok {
		return []Problem{problemAt(field, "namespaceManifest %s does not exist: %s", text.Quote(name), s.choices(name, s.templateNames))}
	}
	kinds := writtenKinds(manifest)
	if len(kinds) == 1 && kinds[0].gvk.Kind == "Namespace" {
		return nil
	}
	return []Problem{warningAt(field, "namespaceManifest %s must contain exactly one object, of kind Namespace", text.Quote(name))}
}

// ownNamespaces: the objects of an Instance are deleted with it, and deleting a Namespace deletes all objects that others have created in
// it.
func ownNamespaces(s *subject) []Problem {
	var problems []Problem
	for _, name := range s.templateNames {
		if name == s.operator.NamespaceManifest {
			continue
		}
		for _, k := range writtenKinds(s.Templates[name]) {
			if k.gvk.Group == "" && k.gvk.Kind == "Namespace" {
				problem := warningAt(templateField(name),
					"the Namespace and everything in it are deleted with the Instance: use the add-on's install namespace instead")
				problem.Line = k.line
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

var (
	topKey = regexp.MustCompile(`^([A-Za-z]+):`)
	// nameLine matches metadata's name, which is indented, without its comment.
	nameLine = regexp.MustCompile(`^ +name:\s*(.*?)\s*(?: #.*)?$`)
	// ownName matches the parts that make a name differ between Instances: the Instance's name, a parameter's value, or a variable.
	ownName = regexp.MustCompile(`\{\{.*(\.Name\b|\.Params\b|\$|index).*\}\}`)
)

// definitionKind matches the kind of a resource definition, whose name its content determines.
var definitionKind = regexp.MustCompile(`(?m)^kind:\s*["']?CustomResourceDefinition`)

// fixedNames: names differ between Instances. Two Instances in one namespace would use the same object, and the second one fails. All of them are
// one problem, at the first.
func fixedNames(s *subject) []Problem {
	const shown = 5
	var first Problem
	var names []string
	for _, name := range sortedKeys(s.templatesOfObjects()) {
		for _, fixed := range fixedNamesOf(s.Templates[name]) {
			if len(names) == 0 {
				first = warningAt(templateField(name), "")
				first.Line = fixed.line
			}
			names = append(names, text.Quote(fixed.name))
		}
	}
	const rest = " the same for every Instance, and two Instances in one namespace would share the object%s: include .Name in %s"
	switch len(names) {
	case 0:
		return nil
	case 1:
		first.Message = fmt.Sprintf("the name %s is"+rest, names[0], "", "it")
	default:
		count := len(names)
		slices.Sort(names)
		names = text.Limit(slices.Compact(names), shown, "more")
		first.Message = fmt.Sprintf("the names of %d objects are"+rest+": %s", count, "s", "them", strings.Join(names, ", "))
	}
	return []Problem{first}
}

// fixedName is a name in a line of a template.
type fixedName struct {
	name string
	line int
}

// fixedNamesOf returns the names in a template that are the same for every Instance, except those of resource definitions.
func fixedNamesOf(source string) []fixedName {
	var all, ofDocument []fixedName
	inMetadata, begin := false, 0
	lines := strings.Split(source, "\n")
	flush := func(end int) {
		if !definitionKind.MatchString(strings.Join(lines[begin:end], "\n")) {
			all = append(all, ofDocument...)
		}
		ofDocument, begin = nil, end
	}
	for i, line := range lines {
		if strings.HasPrefix(line, "---") {
			flush(i)
			inMetadata = false
			continue
		}
		if key := topKey.FindStringSubmatch(line); key != nil {
			inMetadata = key[1] == "metadata"
			continue
		}
		m := nameLine.FindStringSubmatch(strings.TrimRight(line, "\r"))
		if !inMetadata || m == nil {
			continue
		}
		inMetadata = false
		if m[1] != "" && !ownName.MatchString(m[1]) {
			ofDocument = append(ofDocument, fixedName{m[1], i + 1})
		}
	}
	flush(len(lines))
	return all
}
