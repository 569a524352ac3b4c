package resume

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

func TestProblem(t *testing.T) {
	last := &kudo.Execution{Plan: "deploy", UID: "failed"}
	for sentence, c := range map[string]struct {
		request Request
		want    string
	}{
		"a failed execution can be resumed": {Request{Plan: "deploy", Resume: "failed", Last: last, Status: kudo.FatalError}, ""},
		"nothing has run":                   {Request{Plan: "deploy", Resume: "failed"}, "no plan has run yet"},
		"another execution is the last one": {Request{Plan: "deploy", Resume: "older", Last: last, Status: kudo.FatalError}, `the last one is "failed" of plan "deploy"`},
		"it is of another plan":             {Request{Plan: "backup", Resume: "failed", Last: last, Status: kudo.FatalError}, `it is of plan "deploy"`},
		"the version has changed since": {
			Request{Plan: "deploy", Resume: "failed", Last: last, Status: kudo.FatalError, OtherVersion: true}, "the OperatorVersion has changed since",
		},
		"it is complete": {Request{Plan: "deploy", Resume: "failed", Last: last, Status: kudo.Complete}, "it is complete"},
		"it runs":        {Request{Plan: "deploy", Resume: "failed", Last: last, Status: kudo.InProgress}, "it has not ended"},
		"it waits":       {Request{Plan: "deploy", Resume: "failed", Last: last, Status: kudo.Pending}, "it has not ended"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := Problem(c.request); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("problem %q, want %q", got, c.want)
			}
		})
	}
}

// version has a task for each letter, of which v draws a random value and k requests a child.
var version = &kudo.OperatorVersionSpec{
	Templates: map[string]string{"random.yaml": `{{ randAlphaNum 8 }}`},
	Tasks: []kudo.Task{
		{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "k", Kind: kudo.TaskKudoOperator},
		{Name: "v", Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"random.yaml"}}}},
	},
}

// planOf returns a plan with a phase for each word and a step for each of its letters, whose task has the same name, and its status: a capital is complete,
// with a digest unless its task has none. Words after a bar are in parallel phases.
func planOf(words string) (spec kudo.Plan, status kudo.PlanStatus) {
	for word := range strings.FieldsSeq(words) {
		phase, state := kudo.Phase{Name: word}, kudo.PhaseStatus{Name: strings.ToLower(word)}
		if letters, isParallel := strings.CutPrefix(word, "|"); isParallel {
			phase.Strategy, word = kudo.Parallel, letters
		}
		for _, letter := range word {
			name := strings.ToLower(string(letter))
			task := kudo.TaskStatus{Name: name, Status: kudo.FatalError}
			if string(letter) != name {
				if task.Status = kudo.Complete; name != "v" && name != "k" {
					task.Rendered = "digest"
				}
			}
			phase.Steps = append(phase.Steps, kudo.Step{Name: name, Tasks: []string{name}})
			state.Steps = append(state.Steps, kudo.StepStatus{Name: name, Tasks: []kudo.TaskStatus{task}})
		}
		spec.Phases, status.Phases = append(spec.Phases, phase), append(status.Phases, state)
	}
	return spec, status
}

// unstarted returns a status in which nothing has run.
func unstarted(of kudo.PlanStatus) kudo.PlanStatus {
	fresh := *of.DeepCopy()
	for p := range fresh.Phases {
		for s := range fresh.Phases[p].Steps {
			fresh.Phases[p].Steps[s].Tasks[0] = kudo.TaskStatus{Name: fresh.Phases[p].Steps[s].Name, Status: kudo.Pending}
		}
	}
	return fresh
}

// describe returns the candidates of a status, and after a colon the steps that run again with the reason.
func describe(status kudo.PlanStatus) string {
	candidates, reruns := "", ""
	for _, phase := range status.Phases {
		for _, step := range phase.Steps {
			if MayBeSkipped(step) {
				candidates += step.Name
			}
			if step.RerunReason != "" {
				reruns += " " + step.Name + " because of " + step.RerunReason
			}
		}
	}
	return candidates + ":" + reruns
}

func TestPrepare(t *testing.T) {
	for sentence, c := range map[string]struct{ plan, want string }{
		"what was complete before the failure is a candidate": {"ABcd", "ab:"},
		"nothing was complete":                                {"abcd", ":"},
		"what follows a step with random values runs again":   {"AVBc", `a: v because of task "v" has random values, or reads the clock b because of step "v" before it runs again`},
		"a child operator is asked again, which does nothing": {"AKBc", `ab: k because of task "k" requests a child operator, which runs no plan unless it has changed`},
		"parallel steps do not follow each other":             {"|AbC", "ac:"},
		"phases follow each other":                            {"AV BC d", `a: v because of task "v" has random values, or reads the clock b because of step "v" before it runs again c because of step "v" before it runs again`},
		"a phase follows parallel steps, one of which failed": {"|Ab C d", `a: c because of step "b" before it runs again`},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec, before := planOf(c.plan)
			fresh := unstarted(before)
			unchanged := *fresh.DeepCopy()
			if diff := cmp.Diff(c.want, describe(Prepare(version, spec, before, fresh))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(unchanged, fresh); diff != "" {
				t.Errorf("the argument was changed: %s", diff)
			}
		})
	}
}

func TestRunAgain(t *testing.T) {
	for sentence, c := range map[string]struct {
		plan string
		at   Place
		want string
	}{
		"with the steps and phases after it": {
			"ABC D", Place{Step: 1}, `a: b because of object is missing c because of step "b" before it runs again d because of step "b" before it runs again`,
		},
		"alone among parallel steps, with the phases after them": {
			"|ABC D", Place{Step: 1}, `ac: b because of object is missing d because of step "b" before it runs again`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			spec, before := planOf(c.plan)
			prepared := Prepare(version, spec, before, unstarted(before))
			again := RunAgain(spec, prepared, c.at, "object is missing")
			if diff := cmp.Diff(c.want, describe(again)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(again, RunAgain(spec, again, c.at, "another reason")); diff != "" {
				t.Errorf("the second time changes something: %s", diff)
			}
		})
	}
}

func TestASkippedStepIsNoCandidate(t *testing.T) {
	step := kudo.StepStatus{Tasks: []kudo.TaskStatus{{Name: "a", Status: kudo.Complete, Rendered: "digest", Skipped: true}}}
	if MayBeSkipped(step) || !IsSkipped(step) || IsSkipped(kudo.StepStatus{}) || MayBeSkipped(kudo.StepStatus{}) {
		t.Error("a step whose only task was skipped is decided, and one without tasks is neither")
	}
}

// keyOf returns the key of a cluster.
func keyOf(t *testing.T, letter string) sensitive.Key {
	t.Helper()
	key, err := sensitive.NewKey([]byte(strings.Repeat(letter, sensitive.KeyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestDigest(t *testing.T) {
	object := func(value, execution string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "x", "annotations": map[string]any{kudo.AnnotationExecution: execution, "other": "kept"}}, "data": value,
		}}
	}
	key := keyOf(t, "a")
	one := Digest(key, "Apply", object("one", "first"))
	for sentence, c := range map[string]struct {
		digest  string
		isEqual bool
	}{
		"another execution renders the same":         {Digest(key, "Apply", object("one", "second")), true},
		"another value":                              {Digest(key, "Apply", object("two", "first")), false},
		"the same objects are deleted":               {Digest(key, "Delete", object("one", "first")), false},
		"another cluster":                            {Digest(keyOf(t, "b"), "Apply", object("one", "first")), false},
		"another number of objects":                  {Digest(key, "Apply", object("one", "first"), object("one", "first")), false},
		"no object, which is no end of what was one": {Digest(key, "Apply"), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if (one == c.digest) != c.isEqual || c.digest == "" {
				t.Errorf("digests %q and %q", one, c.digest)
			}
		})
	}
	original := object("one", "first")
	if Digest(key, "Apply", original); original.GetAnnotations()[kudo.AnnotationExecution] != "first" {
		t.Error("the object was changed")
	}
}
