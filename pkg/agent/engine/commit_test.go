package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestOnlyAPlanThatRunsForAWhileHasAnEventOfItsStart(t *testing.T) {
	for sentence, test := range map[string]struct {
		run  func(starts, ends func(instance, plan string))
		want []string
	}{
		"it runs for a while": {func(starts, _ func(_, _ string)) { starts("kafka", "deploy") }, []string{"deploy"}},
		"it ends soon": {func(starts, ends func(_, _ string)) {
			starts("kafka", "deploy")
			<-time.After(longestGrace / 2)
			ends("kafka", "deploy")
		}, nil},
		"another plan supersedes it": {func(starts, _ func(_, _ string)) {
			starts("kafka", "deploy")
			<-time.After(longestGrace / 2)
			starts("kafka", "update")
		}, []string{"update"}},
		"the plan of another Instance ends": {func(starts, ends func(_, _ string)) {
			starts("kafka", "deploy")
			starts("redis", "update")
			ends("redis", "update")
		}, []string{"deploy"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var emitted []string
				b := newBeginnings()
				test.run(func(instance, plan string) {
					for range 2 {
						b.of(types.UID(instance), types.UID(plan), longestGrace, func() { emitted = append(emitted, plan) })
					}
				}, func(instance, plan string) { b.end(types.UID(instance), types.UID(plan)) })
				<-time.After(2 * longestGrace) // in the time of synctest
				synctest.Wait()
				if !slices.Equal(emitted, test.want) || len(b.timers) > 0 {
					t.Errorf("got %q, want %q; %d timers are left", emitted, test.want, len(b.timers))
				}
			})
		})
	}
}
