package resume_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/resume"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// version has an Apply task of any name but "random", which draws a value, "old", and "child", which requests a child operator.
func version() *kudo.OperatorVersionSpec {
	random := kudo.Task{Name: "random", Kind: kudo.TaskApply}
	random.Spec.Resources = []string{"random.yaml"}
	return &kudo.OperatorVersionSpec{
		Templates: map[string]string{"random.yaml": `{{ randAlphaNum 8 }}`},
		Tasks:     []kudo.Task{random, {Name: "child", Kind: kudo.TaskKudoOperator}, {Name: "old", Kind: kudo.TaskApply}},
	}
}

// planOf returns a plan and the status of an execution, from phases such as "a+ b+c+ d-": steps of tasks that are complete, with a digest except for
// those named in version, or not. A phase with the prefix "|" runs its steps in parallel, and so do the phases if the first one has another.
func planOf(phases ...string) (spec kudo.Plan, before, status kudo.PlanStatus) {
	for p, phase := range phases {
		if strings.HasPrefix(phase, "||") {
			spec.Strategy, phase = kudo.Parallel, phase[1:]
		}
		of := kudo.Phase{Name: string(rune('A' + p))}
		if strings.HasPrefix(phase, "|") {
			of.Strategy, phase = kudo.Parallel, phase[1:]
		}
		ran, fresh := kudo.PhaseStatus{Name: of.Name}, kudo.PhaseStatus{Name: of.Name}
		for _, step := range strings.Fields(phase) {
			name := strings.Trim(strings.ReplaceAll(step, "+", ","), ",-")
			of.Steps = append(of.Steps, kudo.Step{Name: name})
			ranStep, freshStep := kudo.StepStatus{Name: name}, kudo.StepStatus{Name: name}
			for _, task := range strings.SplitAfter(strings.ReplaceAll(step, "-", "-+"), "+") {
				if task == "" {
					continue
				}
				name := strings.TrimRight(task, "+-")
				ranTask := kudo.TaskStatus{Name: name, Status: kudo.Complete, Rendered: "digest"}
				if strings.Contains(task, "-") {
					ranTask.Status = kudo.FatalError
				}
				if name == "random" || name == "old" || name == "child" || strings.Contains(task, "-") {
					ranTask.Rendered = ""
				}
				ranStep.Tasks = append(ranStep.Tasks, ranTask)
				freshStep.Tasks = append(freshStep.Tasks, kudo.TaskStatus{Name: name, Status: kudo.Pending})
			}
			ran.Steps, fresh.Steps = append(ran.Steps, ranStep), append(fresh.Steps, freshStep)
		}
		spec.Phases = append(spec.Phases, of)
		before.Phases, status.Phases = append(before.Phases, ran), append(status.Phases, fresh)
	}
	return spec, before, status
}

// stepsOf returns what is decided about the steps of an execution: "skip", the number of tasks that may be skipped, or why the step runs again.
func stepsOf(status kudo.PlanStatus) map[string]string {
	found := map[string]string{}
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			candidates := 0
			for _, task := range step.Tasks {
				if resume.IsCandidate(task) {
					candidates++
				}
			}
			switch {
			case step.RerunReason != "":
				found[step.Name] = step.RerunReason
			case resume.MayBeSkipped(step):
				found[step.Name] = "skip"
			case candidates > 0:
				found[step.Name] = "skip a part"
			default:
				found[step.Name] = "run"
			}
		}
	}
	return found
}

func TestWhatMayBeSkipped(t *testing.T) {
	const random = `task "random" generates random values or reads the current time`
	for sentence, test := range map[string]struct {
		phases []string
		want   map[string]string
	}{
		"steps that were complete":                      {[]string{"a+ b+", "c-"}, map[string]string{"a": "skip", "b": "skip", "c": "run"}},
		"the tasks of a failed step that were complete": {[]string{"a+b+c-"}, map[string]string{"a,b,c": "skip a part"}},
		"not a step with random values, nor those after it": {[]string{"a+ random+ b+", "c+ d-"}, map[string]string{
			"a": "skip", "random": random, "b": `follows step "random", which runs again`, "c": `follows step "random", which runs again`, "d": "run",
		}},
		"steps beside one with random values": {[]string{"|random+ a+", "b+"}, map[string]string{
			"random": random, "a": "skip", "b": `follows step "random", which runs again`,
		}},
		"phases beside one with random values": {[]string{"||random+", "b+"}, map[string]string{"random": random, "b": "skip"}},
		"not a task that an earlier release has run": {[]string{"old+ a+"}, map[string]string{
			"old": `task "old" has no recorded digest of its rendered output`, "a": `follows step "old", which runs again`,
		}},
		"steps after one that requests a child": {[]string{"child+ a+"}, map[string]string{
			"child": `task "child" requests a child operator, which runs no plan unless it has changed`, "a": "skip",
		}},
		"not tasks after one that requests a child": {[]string{"child+a+ b+"}, map[string]string{
			"child,a": `task "child" requests a child operator, which runs no plan unless it has changed`, "b": `follows step "child,a", which runs again`,
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec, before, status := planOf(test.phases...)
			if diff := cmp.Diff(test.want, stepsOf(resume.Prepare(version(), spec, before, status))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatRunsAgain(t *testing.T) {
	const why, after = "its object is gone", `follows step "b", which runs again`
	for sentence, test := range map[string]struct {
		phases []string
		at     resume.Place
		want   map[string]string
	}{
		"the steps after it":                                {[]string{"a+ b+ c+", "d+ e-"}, resume.Place{Step: 1}, map[string]string{"a": "skip", "b": why, "c": after, "d": after, "e": "run"}},
		"not the steps beside it":                           {[]string{"|a+ b+ c+", "d+"}, resume.Place{Step: 1}, map[string]string{"a": "skip", "b": why, "c": "skip", "d": after}},
		"not the phases beside it":                          {[]string{"||a+", "b+", "c+"}, resume.Place{Phase: 1}, map[string]string{"a": "skip", "b": why, "c": "skip"}},
		"not the tasks before it":                           {[]string{"a+b+ c+"}, resume.Place{Task: 1}, map[string]string{"a,b": why, "c": `follows step "a,b", which runs again`}},
		"not the phases before it":                          {[]string{"a+", "b+"}, resume.Place{Phase: 1}, map[string]string{"a": "skip", "b": why}},
		"and a step that was not complete does not say why": {[]string{"b+ c-"}, resume.Place{}, map[string]string{"b": why, "c": "run"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec, before, status := planOf(test.phases...)
			prepared := resume.Prepare(version(), spec, before, status)
			copied := *prepared.DeepCopy()
			if diff := cmp.Diff(test.want, stepsOf(resume.RunAgain(spec, prepared, test.at, why))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(copied, prepared); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeResumed(t *testing.T) {
	last := &kudo.Execution{UID: "u", Plan: "deploy"}
	for sentence, test := range map[string]struct {
		request resume.Request
		want    string
	}{
		"a failed execution can":  {resume.Request{Plan: "deploy", Resume: "u", Last: last, Status: kudo.FatalError}, ""},
		"no execution":            {resume.Request{Plan: "deploy", Resume: "u"}, "no plan has run yet"},
		"another execution":       {resume.Request{Plan: "deploy", Resume: "v", Last: last, Status: kudo.FatalError}, `the last one is "u" of plan "deploy"`},
		"one of another plan":     {resume.Request{Plan: "backup", Resume: "u", Last: last, Status: kudo.FatalError}, `it is of plan "deploy"`},
		"one of another version":  {resume.Request{Plan: "deploy", Resume: "u", Last: last, Status: kudo.FatalError, OtherVersion: true}, "the OperatorVersion has changed"},
		"a complete execution":    {resume.Request{Plan: "deploy", Resume: "u", Last: last, Status: kudo.Complete}, "it is complete"},
		"a running execution":     {resume.Request{Plan: "deploy", Resume: "u", Last: last, Status: kudo.InProgress}, "it has not ended"},
		"one that is retried now": {resume.Request{Plan: "deploy", Resume: "u", Last: last, Status: kudo.Error}, "it has not ended"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := resume.Problem(test.request); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestADigestIsOfWhatIsRendered(t *testing.T) {
	key, err := sensitive.NewKey([]byte(strings.Repeat("k", sensitive.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := sensitive.NewKey([]byte(strings.Repeat("o", sensitive.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	object := func(value, execution string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "Secret", "metadata": map[string]any{"annotations": map[string]any{kudo.AnnotationExecution: execution, "a": "b"}}, "data": value,
		}}
	}
	one := resume.Digest(key, "Apply", object("secret", "1"))
	for sentence, test := range map[string]struct {
		got   string
		equal bool
	}{
		"another execution renders the same":      {resume.Digest(key, "Apply", object("secret", "2")), true},
		"another value":                           {resume.Digest(key, "Apply", object("changed", "1")), false},
		"another action":                          {resume.Digest(key, "Delete", object("secret", "1")), false},
		"another object":                          {resume.Digest(key, "Apply", object("secret", "1"), object("secret", "1")), false},
		"another key, so no value can be guessed": {resume.Digest(other, "Apply", object("secret", "1")), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if (test.got == one) != test.equal || test.got == "" {
				t.Errorf("got %q and %q", test.got, one)
			}
		})
	}
	rendered := object("secret", "1")
	resume.Digest(key, "Apply", rendered)
	if diff := cmp.Diff(object("secret", "1"), rendered); diff != "" {
		t.Errorf("the object was changed:\n%s", diff)
	}
}
