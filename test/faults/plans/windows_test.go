package plans

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/soak"
)

// windows is the life of an Instance with maintenance windows, which has to be healthy for a time after each plan: a change waits for a window that opens by
// itself while a fault may be in progress, and its removal does not wait.
func windows() scenario {
	return scenario{
		name:    "windows",
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, gadgets("1.0.0")) },
		actions: []action{
			{"deploy", func(ctx context.Context, r *run) error {
				instance := r.instance("gadgets-1.0.0")
				instance.Spec.HealthyFor = &metav1.Duration{Duration: 2 * time.Second}
				return r.hub.Create(ctx, instance)
			}, expectSoaked("one")},
			{"close", changeWithin("two", tomorrow), expectWaiting("one")},
			{"open", changeWithin("two", nextMinute), expectSoaked("two")},
			{"freeze", changeWithin("three", tomorrow), expectWaiting("two")},
			{"remove", remove, expectGone},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster,
	}
}

func tomorrow() time.Time { return time.Now().AddDate(0, 0, 1) }

// nextMinute returns the first minute that begins after some seconds: windows have no seconds.
func nextMinute() time.Time { return time.Now().Add(65 * time.Second) }

// changeWithin returns an action that sets the value, and windows that are closed until a time.
func changeWithin(value string, end func() time.Time) func(context.Context, *run) error {
	return edit(func(i *kudo.Instance) {
		const format = "2006-01-02T15:04"
		begin := time.Now().UTC().AddDate(0, 0, -1)
		i.Spec.Parameters = map[string]string{"VALUE": value}
		i.Spec.Windows = fmt.Sprintf("freeze: [{from: %s, to: %s}]", begin.Format(format), end().UTC().Format(format))
	})
}

// expectSoaked returns a check that a plan has applied the value, and that the Instance was healthy for long enough after it.
func expectSoaked(value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if err := ready(ctx, r); err != nil {
			return err
		}
		i := &kudo.Instance{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.name}, i); err != nil {
			return err
		}
		if record := i.Status.Soak; !soak.IsOver(i) || record.CompletionTime.Sub(record.Since.Time) < i.Spec.HealthyFor.Duration {
			return fmt.Errorf("it was not healthy for long enough: %+v, %+v", record, i.Status.Conditions)
		}
		return expectBase(ctx, r, value)
	}
}

// expectWaiting returns a check that a change waits for a window, and that the value before it is applied.
func expectWaiting(value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		i := &kudo.Instance{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: r.name}, i); err != nil {
			return err
		}
		waiting := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionWaiting)
		if waiting == nil || waiting.Reason != kudo.ReasonWindow || i.Status.ObservedGeneration != i.Generation {
			return fmt.Errorf("generation %d does not wait for a window: %+v", i.Generation, i.Status.Conditions)
		}
		if !meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionReady) || soak.IsOver(i) {
			return fmt.Errorf("what waits is reported as reached: %+v", i.Status.Conditions)
		}
		return expectBase(ctx, r, value)
	}
}

func expectBase(ctx context.Context, r *run, value string) error {
	base := r.base()
	if err := r.managed.Get(ctx, client.ObjectKeyFromObject(base), base); err != nil {
		return err
	}
	if base.Data["value"] != value {
		return fmt.Errorf("the value is %q, want %q", base.Data["value"], value)
	}
	return nil
}
