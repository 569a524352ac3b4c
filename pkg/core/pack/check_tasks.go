package pack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// taskKindNames are the kinds of tasks, in the order in which messages list them.
var taskKindNames = []string{
	kudo.TaskApply, kudo.TaskDelete, kudo.TaskToggle, kudo.TaskPipe, kudo.TaskDummy, kudo.TaskKudoOperator, kudo.TaskHelm,
}

func taskField(i int, name string) string { return fmt.Sprintf("tasks[%d].%s", i, name) }

// hasResources reports whether the templates of the kind become objects.
func hasResources(kind string) bool {
	return kind == kudo.TaskApply || kind == kudo.TaskDelete || kind == kudo.TaskToggle
}

func makesChild(kind string) bool { return kind == kudo.TaskKudoOperator || kind == kudo.TaskOperator }

// taskNames: each task has a unique name.
func taskNames(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		if t.Name == "" {
			problems = append(problems, problemAt(taskField(i, "name"), "task %d has no name", i+1))
		}
	}
	visitRepeated(s.taskNames, func(i, first int) {
		problems = append(problems, twice(taskField(i, "name"), "task "+text.Quote(s.taskNames[i]), s.taskNames[i], s.taskNames[first]))
	})
	return problems
}

// taskKinds: each task has an existing kind.
func taskKinds(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		if !slices.Contains(taskKindNames, t.Kind) && t.Kind != kudo.TaskOperator {
			problems = append(problems, problemAt(taskField(i, "kind"), "task %s: unknown kind %s: must be one of %s",
				text.Quote(t.Name), text.Quote(t.Kind), strings.Join(taskKindNames, ", ")))
		}
	}
	return problems
}

// taskFields: a task only sets fields of its kind; other fields have no effect.
func taskFields(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		for _, f := range specFields(&t.Spec) {
			kind := canonicalKind(t.Kind)
			if f.set && slices.Contains(taskKindNames, kind) && !slices.Contains(f.kinds, kind) {
				problems = append(problems, warningAt(taskField(i,
					"spec."+f.name), "task %s: a task of kind %s does not use %s",
					text.Quote(t.Name), t.Kind, f.name))
			}
		}
	}
	return problems
}

func canonicalKind(kind string) string {
	if kind == kudo.TaskOperator {
		return kudo.TaskKudoOperator
	}
	return kind
}

type specField struct {
	name  string
	set   bool
	kinds []string
}

// specFields returns which kinds use which field.
func specFields(spec *kudo.TaskSpec) []specField {
	resources := []string{kudo.TaskApply, kudo.TaskDelete, kudo.TaskToggle}
	dummy := []string{kudo.TaskDummy}
	pipe := []string{kudo.TaskPipe}
	child, helm := []string{kudo.TaskKudoOperator}, []string{kudo.TaskHelm}
	return []specField{
		{"resources", len(spec.Resources) > 0, resources},
		{"parameter", spec.Parameter != "", []string{kudo.TaskToggle}},
		{"wantErr", spec.WantErr, dummy},
		{"fatal", spec.Fatal, dummy},
		{"done", spec.Done, dummy},
		{"pod", spec.Pod != "", pipe},
		{"pipe", len(spec.Pipe) > 0, pipe},
		{"package", spec.Package != "", child},
		{"instanceName", spec.InstanceName != "", child},
		{"appVersion", spec.AppVersion != "", child},
		{"operatorVersion", spec.OperatorVersion != "", child},
		{"operatorVersionName", spec.OperatorVersionName != "", child},
		{"parameterFile", spec.ParameterFile != "", child},
		{"enablingParameter", spec.EnablingParameter != "", slices.Concat(child, helm)},
		{"chart", spec.Chart != "", helm},
		{"version", spec.HelmTaskSpec.Version != "", helm},
		{"repository", spec.Repository != "", helm},
		{"digest", spec.Digest != "", helm},
		{"valuesFile", spec.ValuesFile != "", helm},
		{"releaseName", spec.ReleaseName != "", helm},
		{"crds", spec.CRDs != "", helm},
		{"claims", spec.Claims != "", helm},
		{"postHooks", spec.PostHooks != "", helm},
	}
}

// taskResources: tasks name existing templates, each once.
func taskResources(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		if !hasResources(t.Kind) {
			continue
		}
		if len(t.Spec.Resources) == 0 {
			problems = append(problems, warningAt(taskField(i,
				"spec"), "task %s has no resources and does nothing", text.Quote(t.Name)))
		}
		for j, name := range t.Spec.Resources {
			if _, isContent := content.Find(s.OperatorVersionSpec, name); !isContent {
				problems = append(problems, s.templateExists(t.Name, taskField(i, fmt.Sprintf("spec.resources[%d]", j)), name)...)
			}
		}
		visitRepeated(t.Spec.Resources, func(j, first int) {
			if t.Spec.Resources[j] != t.Spec.Resources[first] {
				return // another file
			}
			problems = append(problems, problemAt(taskField(i, fmt.Sprintf("spec.resources[%d]", j)),
				"task %s: template %s is listed twice: remove one", text.Quote(t.Name), text.Quote(t.Spec.Resources[j])))
		})
	}
	return problems
}

func (s *subject) templateExists(task, field, name string) []Problem {
	if _, ok := s.Templates[name]; ok || s.unread[name] {
		return nil
	}
	return []Problem{problemAt(field,
		"task %s: template %s does not exist: %s", text.Quote(task), text.Quote(name), s.choices(name, s.templateNames))}
}

// toggleParameters: the parameter of a Toggle exists and is boolean (KEP-23).
func toggleParameters(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		if t.Kind != kudo.TaskToggle {
			continue
		}
		if t.Spec.Parameter == "" {
			problems = append(problems, problemAt(taskField(i,
				"spec"), "task %s: parameter is required for kind Toggle", text.Quote(t.Name)))
		} else if why := s.booleanProblem(t.Spec.Parameter); why != "" {
			problems = append(problems, problemAt(taskField(i, "spec.parameter"), "task %s: %s", text.Quote(t.Name), why))
		}
	}
	return problems
}

// pipeShapes: a Pipe task has a pod and files, each with a unique key.
func pipeShapes(s *subject) []Problem {
	var problems []Problem
	keys := map[string]string{}
	for i, t := range s.Tasks {
		if t.Kind != kudo.TaskPipe {
			continue
		}
		if t.Spec.Pod == "" {
			problems = append(problems, problemAt(taskField(i,
				"spec"), "task %s: pod is required for kind Pipe: set it to the name of a template", text.Quote(t.Name)))
		} else {
			problems = append(problems, s.templateExists(t.Name, taskField(i, "spec.pod"), t.Spec.Pod)...)
		}
		if len(t.Spec.Pipe) == 0 {
			problems = append(problems, problemAt(taskField(i,
				"spec"), "task %s: pipe is required for kind Pipe: list at least one file", text.Quote(t.Name)))
		}
		for j, p := range t.Spec.Pipe {
			field := taskField(i, fmt.Sprintf("spec.pipe[%d]", j))
			problems = append(problems, pipeProblems(t.Name, field, p)...)
			if other, ok := keys[p.Key]; ok && p.Key != "" {
				problems = append(problems, problemAt(field+".key",
					"task %s: key %s is already used by task %s: choose a unique key",
					text.Quote(t.Name), text.Quote(p.Key), text.Quote(other)))
			}
			keys[p.Key] = t.Name
		}
	}
	return problems
}

// pipeKey is KUDO's rule.
var pipeKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func pipeProblems(task, field string, p kudo.PipeSpec) []Problem {
	var problems []Problem
	if (p.File == "") == (p.EnvFile == "") {
		problems = append(problems, problemAt(field, "task %s: each entry of pipe must have either file or envFile", text.Quote(task)))
	}
	if path := p.File + p.EnvFile; path != "" && !strings.HasPrefix(path, "/") {
		problems = append(problems, problemAt(field,
			"task %s: %s must be an absolute path in the container", text.Quote(task), text.Quote(path)))
	}
	if p.Kind != "Secret" && p.Kind != "ConfigMap" {
		problems = append(problems, problemAt(field+".kind",
			"task %s: kind of a file must be Secret or ConfigMap, got %s", text.Quote(task), text.Quote(p.Kind)))
	}
	if !pipeKey.MatchString(p.Key) {
		problems = append(problems, problemAt(field+".key", "task %s: key %s is not valid: use letters, digits and _", text.Quote(task), text.Quote(p.Key)))
	} else if !identifier.MatchString(p.Key) {
		problems = append(problems, warningAt(field+".key",
			"task %s: templates cannot refer to key %s as .Pipes.KEY, only as index .Pipes %s: use letters, digits and _",
			text.Quote(task), text.Quote(p.Key), text.Quote(p.Key)))
	}
	return problems
}

// childOperators: a KudoOperator task names its package, and its references exist (KEP-29, KEP-36).
func childOperators(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		if !makesChild(t.Kind) {
			continue
		}
		if t.Spec.Package == "" {
			problems = append(problems, problemAt(taskField(i,
				"spec"), "task %s: package is required for kind %s", text.Quote(t.Name), t.Kind))
		}
		if file := t.Spec.ParameterFile; file != "" {
			problems = append(problems, s.templateExists(t.Name, taskField(i, "spec.parameterFile"), file)...)
		}
		if name := t.Spec.EnablingParameter; name != "" {
			if why := s.booleanProblem(name); why != "" {
				problems = append(problems, problemAt(taskField(i,
					"spec.enablingParameter"), "task %s: %s", text.Quote(t.Name), why))
			}
		}
		if name := t.Spec.InstanceName; name != "" {
			for _, why := range validation.IsDNS1123Subdomain(name) {
				problems = append(problems, problemAt(taskField(i,
					"spec.instanceName"), "task %s: instanceName %s is not valid: %s",
					text.Quote(t.Name), text.Quote(name), why))
			}
		}
	}
	return problems
}

// helmTasks: a Helm task names a chart, and its other fields have valid values.
func helmTasks(s *subject) []Problem {
	var problems []Problem
	users := map[string]string{} // by the name of the release; empty for the default
	for i, t := range s.Tasks {
		if t.Kind != kudo.TaskHelm {
			continue
		}
		if other, used := users[t.Spec.ReleaseName]; used && other != t.Name {
			problems = append(problems, problemAt(taskField(i, "spec.releaseName"), "task %s: the release has the same name as that of task %s: "+
				"set another releaseName", text.Quote(t.Name), text.Quote(other)))
		}
		users[t.Spec.ReleaseName] = t.Name
		for field, why := range s.helmProblems(&t.Spec) {
			problems = append(problems, problemAt(taskField(i, "spec."+field), "task %s: %s", text.Quote(t.Name), why))
		}
		if file := t.Spec.ValuesFile; file != "" {
			problems = append(problems, s.templateExists(t.Name, taskField(i, "spec.valuesFile"), file)...)
		}
	}
	return problems
}

// helmProblems returns the problems with fields of a Helm task, by field.
func (s *subject) helmProblems(spec *kudo.TaskSpec) map[string]string {
	problems := map[string]string{}
	_, stored := content.Find(s.OperatorVersionSpec, spec.Chart)
	switch field, why := chartProblem(&spec.HelmTaskSpec); {
	case why != "":
		problems[field] = why
	case !s.whole && !stored:
		problems["chart"] = fmt.Sprintf("chart %s is not in the content of the OperatorVersion: push the package with 'kubectl addon package push'",
			text.Quote(spec.Chart))
	}
	if name := spec.EnablingParameter; name != "" {
		if why := s.booleanProblem(name); why != "" {
			problems["enablingParameter"] = why
		}
	}
	if why := releaseProblem(spec.ReleaseName); why != "" {
		problems["releaseName"] = why
	}
	for _, choice := range []struct{ field, value, one, other string }{
		{"crds", string(spec.CRDs), string(kudo.ApplyCRDs), string(kudo.SkipCRDs)},
		{"claims", string(spec.Claims), string(kudo.KeepClaims), string(kudo.DeleteClaims)},
		{"postHooks", string(spec.PostHooks), string(kudo.PostHooksApplied), string(kudo.PostHooksHealthy)},
	} {
		if choice.value != "" && choice.value != choice.one && choice.value != choice.other {
			problems[choice.field] = fmt.Sprintf("%s must be %s or %s, got %s", choice.field, choice.one, choice.other, text.Quote(choice.value))
		}
	}
	return problems
}

// ChartReference returns where the chart of a valid task is fetched from; false if it is in the package, as a folder or an archive.
func ChartReference(spec *kudo.HelmTaskSpec) (catalog.Reference, bool) {
	if !isFetched(spec) {
		return catalog.Reference{}, false
	}
	ref, err := catalog.ParseReference(spec.Chart, spec.Repository)
	ref.Version, ref.Digest = spec.Version, spec.Digest
	return ref, err == nil
}

// isFetched reports whether push fetches the chart of a task. An archive is in the package, and repository says where it is from.
func isFetched(spec *kudo.HelmTaskSpec) bool {
	return strings.Contains(spec.Chart, "://") || spec.Repository != "" && !strings.HasSuffix(spec.Chart, ".tgz")
}

// chartProblem returns why a task names no chart that a package can contain, or that push can fetch, and the field.
func chartProblem(spec *kudo.HelmTaskSpec) (field, why string) {
	const useless = " has no effect, because the chart is in the package: remove it, or set the repository that the chart is from"
	hasURL := strings.Contains(spec.Chart, "://")
	switch {
	case spec.Chart == "":
		return "chart", "chart is required for kind Helm: set it to a folder or archive in the package, to the name of a chart in repository, or to oci://HOST/PATH/NAME"
	case hasURL && !catalog.IsRegistry(spec.Chart):
		return "chart", "chart is a URL: set chart to the name of the chart, and repository to the URL of its repository"
	case hasURL && spec.Repository != "":
		return "repository", "repository is set twice, because chart contains it: remove one"
	case hasURL || spec.Repository != "":
		return sourceProblem(spec)
	case spec.Version != "":
		return "version", "version" + useless
	case spec.Digest != "":
		return "digest", "digest" + useless
	}
	return "", ""
}

// sourceProblem returns why a task does not say exactly which chart of a repository or a registry it means.
func sourceProblem(spec *kudo.HelmTaskSpec) (field, why string) {
	if spec.Repository != "" {
		if err := catalog.CheckRepository(spec.Repository); err != nil {
			return "repository", err.Error()
		}
	}
	if isFetched(spec) {
		ref, err := catalog.ParseReference(spec.Chart, spec.Repository)
		switch {
		case err != nil:
			return "chart", err.Error()
		case ref.Version != "" || ref.Manifest != "":
			return "chart", "chart contains a tag or a digest: set version, and digest to that of the archive, instead"
		}
	}
	switch {
	case spec.Version == "":
		return "version", "version is required for a chart from a repository: set the exact version, such as 1.2.3"
	case !catalog.IsExact(spec.Version):
		return "version", fmt.Sprintf("version %s is not exact: set one such as 1.2.3, because a package always deploys the same chart", text.Quote(spec.Version))
	case spec.Digest != "" && !catalog.IsDigest(spec.Digest):
		return "digest", fmt.Sprintf("digest %s is not sha256: and 64 hexadecimal digits", text.Quote(spec.Digest))
	}
	return "", ""
}

// maxReleaseName is the length of the name of a release, as for Helm.
const maxReleaseName = 53

// releaseProblem returns why the name of a release is not valid.
func releaseProblem(name string) string {
	switch why := validation.IsDNS1123Subdomain(name); {
	case name == "":
		return ""
	case len(name) > maxReleaseName:
		return fmt.Sprintf("releaseName %s has %d characters, more than the limit of %d", text.Quote(name), len(name), maxReleaseName)
	case len(why) > 0:
		return fmt.Sprintf("releaseName %s is not valid: %s", text.Quote(name), strings.Join(why, ", "))
	}
	return ""
}

// unusedTasks: a task that no step runs may be misspelt.
func unusedTasks(s *subject) []Problem {
	used := map[string]bool{}
	s.eachStep(func(_ string, step *kudo.Step, _ string) {
		for _, name := range step.Tasks {
			used[name] = true
		}
	})
	var problems []Problem
	for i, t := range s.Tasks {
		if t.Name != "" && !used[t.Name] {
			problems = append(problems, warningAt(taskField(i, "name"), "task %s is not used by any step", text.Quote(t.Name)))
		}
	}
	return problems
}

// endlessTasks: packages use a Dummy task that never completes to forbid a change. Its plan blocks later plans.
func endlessTasks(s *subject) []Problem {
	var problems []Problem
	for i, t := range s.Tasks {
		if t.Kind == kudo.TaskDummy && !t.Spec.Done && !t.Spec.WantErr {
			problems = append(problems, warningAt(taskField(i, "name"),
				"task %s never completes (Dummy without done: true), and neither does any plan that runs it: to forbid a change, "+
					"make the parameter immutable", text.Quote(t.Name)))
		}
	}
	return problems
}
