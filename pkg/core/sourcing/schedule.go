package sourcing

import (
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Memory is what is remembered of the last attempt of a source, while the program runs. The status has no time of it, which would be written each time.
type Memory struct {
	UID        types.UID
	Generation int64
	Request    string
	// At is the end of the attempt, and Took how long it took.
	At   time.Time
	Took time.Duration
	// Failures is the number of failed attempts since the last one that succeeded.
	Failures int
	// IsFinal is set if the last one fails again, until the spec, the keys or the registry change.
	IsFinal bool
}

// Note returns the memory after an attempt.
func (m Memory) Note(source *kudo.PackageSource, failure *Failure, started, ended time.Time) Memory {
	next := Memory{UID: source.UID, Generation: source.Generation, Request: RequestOf(source), At: ended, Took: ended.Sub(started)}
	if failure == nil {
		return next
	}
	next.Failures, next.IsFinal = 1, failure.IsFinal()
	if m.IsAbout(source) {
		next.Failures += m.Failures
	}
	return next
}

// IsAbout reports whether the last attempt was of the object with its current spec and request.
func (m Memory) IsAbout(source *kudo.PackageSource) bool {
	return !m.At.IsZero() && m.UID == source.UID && m.Generation == source.Generation && m.Request == RequestOf(source)
}

const (
	// minDelay is the minimum time between two attempts, however often the spec or the annotation changes.
	minDelay = 2 * time.Second
	// firstRetryDelay is the time after the first failure. It doubles with each further one.
	firstRetryDelay = 15 * time.Second
	// restShare is how many times as long as a failed attempt a source rests after it: those whose registry hangs leave the others time.
	restShare = 2
	// jitterShare is the share of the interval that is added at most.
	jitterShare = 10

	defaultInterval = 10 * time.Minute
	defaultTimeout  = time.Minute
)

// Wait returns the time until the next attempt; none if it is due.
func Wait(source *kudo.PackageSource, m Memory, now time.Time) time.Duration {
	delay := minDelay
	switch {
	case m.At.IsZero() || m.UID != source.UID:
		return 0
	case !m.IsAbout(source):
	default:
		delay = m.delay(source)
	}
	return max(0, m.At.Add(delay).Sub(now))
}

// delay returns the time between the last attempt and the next one.
func (m Memory) delay(source *kudo.PackageSource) time.Duration {
	interval := defaultInterval
	if i := source.Spec.Interval; i != nil {
		interval = max(time.Minute, i.Duration)
	}
	if m.Failures == 0 || m.IsFinal {
		return interval + interval/jitterShare*jitter(source)/jitterParts
	}
	delay := firstRetryDelay
	for i := 1; i < m.Failures && delay < interval; i++ {
		delay *= 2
	}
	return max(min(delay, interval), restShare*m.Took)
}

const jitterParts = 100

// jitter returns a number below jitterParts, another one for most sources: those that were created together are not attempted together.
func jitter(source *kudo.PackageSource) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(source.UID)) // never fails
	return time.Duration(sum.Sum32() % jitterParts)
}

// Timeout returns the time that an attempt may take.
func Timeout(source *kudo.PackageSource) time.Duration {
	if t := source.Spec.Timeout; t != nil && t.Duration > 0 {
		return t.Duration
	}
	return defaultTimeout
}

const maxRequest = 256

// RequestOf returns the request for an attempt in the annotation of a source.
func RequestOf(source *kudo.PackageSource) string {
	return text.Truncate(source.Annotations[kudo.AnnotationReconcileAt], maxRequest)
}
