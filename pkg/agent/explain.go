package agent

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// slow is how long a step may run before it is asked why, and how long until it is asked again: pods are not watched.
const slow = 10 * time.Second

// explain adds to what a slow step waits for what holds up the pods of that: an image that cannot be pulled, a volume that nobody
// provisions. The workload's own status does not say.
func (e *engine) explain(ctx context.Context, x *execution, placed plan.Placed, objects []plan.Object, outcome plan.Outcome) plan.Outcome {
	workload, selector := plan.AwaitedPods(objects)
	if outcome.Status != kudo.InProgress || workload == nil || x.age(placed, e.clock()) < slow {
		return outcome
	}
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	err := e.live.List(ctx, pods, client.InNamespace(workload.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return outcome // what is waited for is said all the same
	}
	if why := plan.Holdup(pods.Items); why != "" {
		outcome.Message += ": " + why
	}
	return outcome
}

// age is how long the step of a task has had its turn.
func (x *execution) age(placed plan.Placed, now time.Time) time.Duration {
	for _, phase := range x.instance.Status.PlanStatus[x.Plan].Phases {
		for _, step := range phase.Steps {
			if phase.Name == placed.Phase && step.Name == placed.Step && step.StartedTimestamp != nil {
				return now.Sub(step.StartedTimestamp.Time)
			}
		}
	}
	return 0
}

// lookAgain is when to look again at tasks that wait for something; zero if none does.
func lookAgain(outcomes map[plan.Task]plan.Outcome) time.Duration {
	for _, outcome := range outcomes {
		if outcome.Status == kudo.InProgress {
			return slow
		}
	}
	return 0
}
