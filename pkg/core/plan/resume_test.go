package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/resume"
)

// failedAt returns an Instance whose plan deploy, of twelve serial steps, has failed at its eleventh. The others were complete.
func failedAt(change ...func(*plan.Observation)) plan.Observation {
	o := newObservation(kudo.FatalError)
	phase := kudo.Phase{Name: "main"}
	o.Running.Tasks = nil
	for i := 1; i <= 12; i++ {
		name := fmt.Sprintf("s%d", i)
		o.Running.Tasks = append(o.Running.Tasks, kudo.Task{Name: name, Kind: kudo.TaskApply})
		phase.Steps = append(phase.Steps, kudo.Step{Name: name, Tasks: []string{name}})
	}
	deploy := kudo.Plan{Phases: []kudo.Phase{phase}}
	o.Running.Plans["deploy"] = deploy
	status := plan.Begin("deploy", deploy, "x", noon)
	for i := range 10 {
		status = plan.Record(deploy, status, map[plan.Task]plan.Outcome{{Step: i}: {Status: kudo.Complete, Rendered: "digest"}}, noon)
	}
	o.Instance.Status.PlanStatus["deploy"] = plan.Record(deploy, status, map[plan.Task]plan.Outcome{{Step: 10}: {Status: kudo.FatalError, Message: "refused"}}, noon)
	o.Instance.Status.Execution.Owed = []kudo.OwedPlan{{Plan: "deploy", Whole: true, Outcome: kudo.OwedFailed}}
	o.Instance.Status.Whole = nil
	for _, c := range change {
		c(&o)
	}
	return o
}

// asksFor requests that an execution is resumed.
func asksFor(execution types.UID, change ...func(*kudo.PlanExecution)) func(*plan.Observation) {
	return func(o *plan.Observation) {
		o.Instance.Spec.PlanExecution = kudo.PlanExecution{PlanName: "deploy", UID: "r", Resume: execution}
		for _, c := range change {
			c(&o.Instance.Spec.PlanExecution)
		}
	}
}

func TestWhatARequestToResumeStarts(t *testing.T) {
	type start struct {
		UID, Request, Resume types.UID
		Value                string // of parameter PLAIN
	}
	ended := func(status kudo.ExecutionStatus) func(*plan.Observation) {
		return func(o *plan.Observation) {
			last := o.Instance.Status.PlanStatus["deploy"]
			last.Status = status
			o.Instance.Status.PlanStatus["deploy"] = last
		}
	}
	for sentence, test := range map[string]struct {
		o    plan.Observation
		want *start
	}{
		"the failed execution is resumed":                  {failedAt(asksFor("x")), &start{UID: "r", Request: "r", Resume: "x", Value: "a"}},
		"without a name of an execution, all runs":         {failedAt(asksFor("")), &start{UID: "r", Request: "r", Value: "a"}},
		"a changed value starts the plan, which resumes":   {failedAt(asksFor("x"), parameter("PLAIN", "b")), &start{Request: "r", Resume: "x", Value: "b"}},
		"a changed value alone starts all":                 {failedAt(parameter("PLAIN", "b")), &start{Value: "b"}},
		"a retry that is due resumes":                      {failedAt(asksFor("x"), retryIsDue), &start{Request: "r", Resume: "x", Value: "a"}},
		"another execution is not":                         {failedAt(asksFor("y")), nil},
		"a complete execution is not":                      {failedAt(asksFor("x"), ended(kudo.Complete)), nil},
		"a request to cancel is none":                      {failedAt(asksFor("x", func(r *kudo.PlanExecution) { r.Cancel = true })), nil},
		"a request that was handled is none":               {failedAt(asksFor("x"), func(o *plan.Observation) { o.Instance.Status.HandledRequests = []types.UID{"r"} }), nil},
		"an execution of another plan is not":              {failedAt(asksFor("x", func(r *kudo.PlanExecution) { r.PlanName = "backup" })), nil},
		"another version starts its whole plan, from zero": {failedAt(asksFor("x"), otherVersion), &start{Value: "a"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			choice, err := plan.Choose(test.o.State())
			if err != nil {
				t.Fatal(err)
			}
			var got *start
			if s := choice.Start; s != nil {
				got = &start{s.UID, s.Request, s.Resume, s.Parameters["PLAIN"]}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func retryIsDue(o *plan.Observation) {
	o.Instance.Status.Execution.Owed[0].RetryTime = &metav1.Time{Time: noon.Add(-time.Second)}
}

func otherVersion(o *plan.Observation) {
	o.Desired, o.Reference = o.Desired.DeepCopy(), two
	o.Desired.Version = "2"
}

func TestTheConditionOfARequestToResume(t *testing.T) {
	for sentence, test := range map[string]struct {
		o    plan.Observation
		want string // reason
	}{
		"a bad request is invalid": {failedAt(asksFor("y")), kudo.ReasonRequestInvalid},
		"a good one is not":        {failedAt(asksFor("x")), ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if condition := test.o.LastRequest(test.o.Instance.Status); condition != nil {
				got = condition.Reason
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	o := failedAt(asksFor("x"), parameter("PLAIN", "b"))
	choice, _ := plan.Choose(o.State())
	status := plan.Start(o.Instance.Status, choice, "new", noon)
	if condition := o.LastRequest(status); condition == nil || condition.Reason != kudo.ReasonPlanInProgress {
		t.Errorf("an execution that a changed value has started and that resumes is in progress: got %v", condition)
	}
}

// TestAResumedExecutionCompletes plays resumed executions to the end. The agent may stop at any point, which loses what it has not recorded. Some tasks
// have to run again.
func TestAResumedExecutionCompletes(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		o := failedAt(asksFor("x"))
		spec, gone := o.Running.Plans["deploy"], random.IntN(13)
		choice, err := plan.Choose(o.State())
		if err != nil {
			t.Fatal(err)
		}
		status := plan.Start(o.Instance.Status, choice, "", noon)
		executed := map[int]int{}
		for range 200 {
			progress := status.PlanStatus["deploy"]
			if progress.Status.IsTerminal() {
				break
			}
			advanced := resumeOnce(o, spec, status, gone, executed)
			if random.IntN(3) > 0 { // else the agent stops before the write
				status = advanced
			}
		}
		progress := status.PlanStatus["deploy"]
		if progress.Status != kudo.Complete || len(status.Execution.Owed) > 0 {
			t.Fatalf("seed %d: the plan is %s: %s", seed, progress.Status, progress.Message)
		}
		for i, step := range progress.Phases[0].Steps {
			skipped := i < min(gone, 10)
			if step.Tasks[0].Skipped != skipped || (executed[i] == 0) != skipped || step.Tasks[0].Rendered != "digest" {
				t.Fatalf("seed %d: step %d: skipped %v, executed %d times, digest %q; the object of step %d was gone",
					seed, i, step.Tasks[0].Skipped, executed[i], step.Tasks[0].Rendered, gone)
			}
		}
	}
}

// resumeOnce returns the status after the next decision, or the next task, as the agent does it. The object of step gone does not exist.
func resumeOnce(o plan.Observation, spec kudo.Plan, status kudo.InstanceStatus, gone int, executed map[int]int) kudo.InstanceStatus {
	progress := status.PlanStatus["deploy"]
	at := plan.Next(spec, progress)[0]
	outcome := plan.Outcome{Status: kudo.Complete, Rendered: "digest"}
	switch isCandidate := resume.IsCandidate(progress.Phases[0].Steps[at.Step].Tasks[0]); {
	case isCandidate && at.Step == gone:
		status = *status.DeepCopy()
		status.PlanStatus["deploy"] = resume.RunAgain(spec, progress, resume.Place{Step: at.Step}, "gone")
		return status
	case isCandidate:
		outcome.Skipped = true
	default:
		executed[at.Step]++
	}
	return o.Advance(status, map[plan.Task]plan.Outcome{at: outcome})
}

func TestWhatIsWrongWithTheObjectsOfACompleteTask(t *testing.T) {
	owner := plan.Owner{Namespace: "apps", Name: "kafka"}
	own := func(kind string) *plan.Object {
		live := object(kind, "a")
		if kind == "Job" {
			live.SetAPIVersion("batch/v1")
		}
		live.SetNamespace("apps")
		live.SetLabels(map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: "kafka"})
		return &plan.Object{Want: live, Live: live}
	}
	gone := func(kind string) plan.Object { return plan.Object{Want: own(kind).Want} }
	listed := func(kind, task string, pending bool) []kudo.InventoryEntry {
		entry := plan.Entry(own(kind).Want, task)
		entry.Pending = pending
		return []kudo.InventoryEntry{entry}
	}
	manual := listed("ConfigMap", "t", false)
	manual[0].Manual = true
	failed, leaving := *own("Job"), *own("ConfigMap")
	failed.Live = failed.Live.DeepCopy()
	failed.Live.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}}}
	leaving.Live = leaving.Live.DeepCopy()
	leaving.Live.SetDeletionTimestamp(&metav1.Time{Time: noon})
	for sentence, test := range map[string]struct {
		object    plan.Object
		inventory []kudo.InventoryEntry
		deletes   bool
		aside     bool
		want      bool
	}{
		"a healthy object":                           {object: *own("ConfigMap"), inventory: listed("ConfigMap", "t", false)},
		"one that is gone":                           {object: gone("ConfigMap"), inventory: listed("ConfigMap", "t", false), want: true},
		"one that is not listed":                     {object: gone("ConfigMap"), want: true},
		"one that a later task has deleted":          {object: gone("ConfigMap"), inventory: listed("ConfigMap", "t", true)},
		"a Job that is gone":                         {object: gone("Job"), inventory: listed("Job", "t", false)},
		"one of another owner":                       {object: plan.Object{Want: own("ConfigMap").Want, Live: object("ConfigMap", "a", func(u *unstructured.Unstructured) { u.SetLabels(nil) })}, want: true},
		"one that exists and is not listed":          {object: *own("ConfigMap"), want: true},
		"one of a request, for the whole plan":       {object: *own("ConfigMap"), inventory: manual, want: true},
		"one of a request, for a request":            {object: *own("ConfigMap"), inventory: manual, aside: true},
		"one that is not healthy":                    {object: failed, inventory: listed("Job", "t", false), want: true},
		"one that is being deleted":                  {object: leaving, inventory: listed("ConfigMap", "t", false), want: true},
		"a deleted object":                           {object: gone("ConfigMap"), deletes: true},
		"a deleted object that exists":               {object: *own("ConfigMap"), deletes: true, want: true},
		"a deleted object that a later task applies": {object: *own("ConfigMap"), inventory: listed("ConfigMap", "later", false), deletes: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := owner.RerunProblem(test.inventory, "t", test.object, test.deletes, test.aside); (got != "") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
