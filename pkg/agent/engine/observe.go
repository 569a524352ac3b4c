package engine

import (
	"context"
	"slices"
	"time"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// observe reads everything that plan.Decide depends on, except for the objects of tasks.
func (e *engine) observe(ctx context.Context, instance *kudo.Instance) (plan.Observation, error) {
	o, err := e.withVersions(ctx, instance)
	if err != nil {
		return o, err
	}
	o.Sensitive = e.view.Sensitive
	o.CleanupWait = e.cleanupWait(instance, o.Now)
	if !untouched(instance) && (hasPipes(o.Running) || hasPipes(o.Desired)) {
		o.Pods, err = e.objects.pods(ctx, o.Owner)
	}
	return o, err
}

// cleanupWait returns the remaining time before a failed cleanup plan is retried.
func (e *engine) cleanupWait(instance *kudo.Instance, now time.Time) time.Duration {
	key := cleanupKey(instance)
	if !e.backoff.IsInBackOffSinceUpdate(key, now) {
		return 0
	}
	return e.backoff.Get(key)
}

// hasPipes reports whether a version has Pipe tasks.
func hasPipes(version *kudo.OperatorVersionSpec) bool {
	return version != nil && slices.ContainsFunc(version.Tasks, func(t kudo.Task) bool { return t.Kind == kudo.TaskPipe })
}
