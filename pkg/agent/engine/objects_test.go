package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// version returns a ConfigMap at a resource version.
func version(resourceVersion string) *unstructured.Unstructured {
	o := newObject("ConfigMap", resourceVersion, "metadata", "resourceVersion")
	o.SetUID("one")
	return o
}

func TestWhatWasSeenIsOfOneObject(t *testing.T) {
	k := controller.NewExpectations(placeOf, maxRemembered)
	k.NoteIfNewer(version("10"))
	other := version("9")
	other.SetName("other")
	secret := version("9")
	secret.SetKind("Secret")
	for _, o := range []*unstructured.Unstructured{other, secret} {
		if upToDate, seen := k.UpToDate(o); !upToDate || seen {
			t.Errorf("%s %q: up to date %v, seen %v", o.GetKind(), o.GetName(), upToDate, seen)
		}
	}
}

func TestFreshness(t *testing.T) {
	const missing, asCached, deleting, fromAPIServer = "missing", "as cached", "being deleted", "from the API server"
	long := time.Now().Add(-2 * missedDeletionDelay)
	applied := version("10")
	applied.SetAnnotations(map[string]string{kudo.AnnotationExecution: "run"})
	leaving := version("10")
	leaving.SetDeletionTimestamp(&metav1.Time{Time: long})
	for sentence, test := range map[string]struct {
		fresh  freshness
		cached *unstructured.Unstructured
		filled bool
		seen   string    // the resource version that the engine has seen last, if any
		last   *deletion // by the engine, if any
		want   string
	}{
		"as seen: nothing newer was seen":           {fresh: asSeen, cached: version("10"), seen: "10", want: asCached},
		"as seen: the object was never seen":        {fresh: asSeen, cached: version("10"), want: asCached},
		"as seen: a newer one was seen":             {fresh: asSeen, cached: version("10"), seen: "11", want: fromAPIServer},
		"as seen: the cache lacks it":               {fresh: asSeen, filled: true, want: fromAPIServer},
		"as seen: its end may have been missed":     {fresh: asSeen, cached: leaving, want: fromAPIServer},
		"or a response: it is newer than the cache": {fresh: asSeenOr(liveObjects{placeOf(applied): applied}), cached: version("9"), seen: "10", want: asCached},

		"as applied: the cache shows it":           {fresh: asAppliedBy("run"), cached: applied, seen: "10", want: asCached},
		"as applied: the engine has not seen it":   {fresh: asAppliedBy("run"), cached: applied, want: fromAPIServer},
		"as applied: by another execution":         {fresh: asAppliedBy("another"), cached: applied, seen: "10", want: fromAPIServer},
		"as applied: the cache lacks it":           {fresh: asAppliedBy("run"), filled: true, want: fromAPIServer},
		"before apply: the cache lacks it":         {fresh: beforeApply, filled: true, want: missing},
		"before apply: the cache has it":           {fresh: beforeApply, cached: version("10"), filled: true, want: fromAPIServer},
		"before apply: the cache is not filled":    {fresh: beforeApply, want: fromAPIServer},
		"before delete: exists":                    {fresh: beforeDelete, cached: version("10"), want: asCached},
		"before delete: the engine has deleted it": {fresh: beforeDelete, cached: version("10"), last: &deletion{uid: "one", at: time.Now()}, want: deleting},
		"before delete: its end may have been missed": {
			fresh: beforeDelete, cached: version("10"), last: &deletion{uid: "one", at: long}, want: fromAPIServer,
		},
		"before delete: others have deleted it, and its end may have been missed": {fresh: beforeDelete, cached: leaving, want: fromAPIServer},
		"before delete: it is gone, which was confirmed": {
			fresh: beforeDelete, cached: version("10"), last: &deletion{uid: "one", at: long, gone: true}, want: missing,
		},
		"before delete: another one of its name is gone": {
			fresh: beforeDelete, cached: version("10"), last: &deletion{uid: "another", at: time.Now(), gone: true}, want: asCached,
		},
		"before delete: the cache lacks it and has seen its deletion": {
			fresh: beforeDelete, filled: true, last: &deletion{uid: "one", at: time.Now()}, want: missing,
		},
		"before delete: the cache lacks it":                          {fresh: beforeDelete, filled: true, want: fromAPIServer},
		"before delete: the cache lacks it because it is not filled": {fresh: beforeDelete, last: &deletion{uid: "one", at: time.Now()}, want: fromAPIServer},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := &objects{expectations: controller.NewExpectations(placeOf, maxRemembered), deletions: lru.New(maxRemembered)}
			if test.seen != "" {
				o.expectations.NoteIfNewer(version(test.seen))
			}
			if test.last != nil {
				o.deletions.Add(placeOf(version("")), *test.last)
			}
			found, answers := test.fresh.suffices(o, version(""), test.cached, test.filled)
			got := asCached
			switch {
			case !answers:
				got = fromAPIServer
			case found == nil:
				got = missing
			case found.GetDeletionTimestamp() != nil:
				got = deleting
			}
			if got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestACrashLoopIsWrittenRarely counts how often the message of condition Ready changes, and with it the status, in an hour in which each run of a
// container ends otherwise, and is looked at once a minute.
func TestACrashLoopIsWrittenRarely(t *testing.T) {
	const crash = "Deployment ns/a: 0 of 1 replicas ready: container app restarts: CrashLoopBackOff: "
	o := &objects{explained: lru.New(maxRemembered)}
	start, writes, recorded := time.Now(), 0, "Deployment ns/a: 0 of 1 replicas ready"
	for minute := range 60 {
		current := crash + []string{"exited with code 1 (Error)", "exited with code 137 (OOMKilled): Liveness probe failed", "exited with code 1 (Error): last line of its log: \"x\""}[minute%3]
		if minute == 30 {
			o.explained = lru.New(maxRemembered) // the agent is restarted
		}
		message := o.steady("uid", recorded, current, start.Add(time.Duration(minute)*time.Minute))
		if message != recorded {
			writes++
		}
		recorded = message
	}
	if writes < 2 || writes > 6 {
		t.Errorf("%d writes in an hour", writes)
	}
	if got := o.steady("uid", recorded, "StatefulSet ns/b: 0 of 1 replicas ready", start.Add(time.Hour)); got == recorded {
		t.Error("another problem is not reported")
	}
}
