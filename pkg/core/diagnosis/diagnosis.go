// Package diagnosis decides when the agent answers a request for a diagnosis of an Instance, and bounds the answer. It touches no cluster.
package diagnosis

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const (
	// Lifetime is how long an answer is kept, and how old a request may be.
	Lifetime = time.Hour
	// maxSkew is the maximum time by which a request may be ahead of the clock of the agent.
	maxSkew = 5 * time.Minute
	// minInterval is the minimum time between two answers about an Instance.
	minInterval = 10 * time.Second
)

// Messages of answers without content.
const (
	malformed = "the request is not a time in the format of RFC 3339, such as 2026-01-02T15:04:05Z"
	future    = "the time of the request is in the future, by the clock of the agent"
	expired   = "the request is older than one hour, by the clock of the agent"
	dropped   = "the answer was dropped one hour after it was made"
)

// Decision is what happens with the answer of an Instance.
type Decision struct {
	// Next is the answer; nil if there is none.
	Next *kudo.Diagnosis
	// Gather means that the content of Next has to be read.
	Gather bool
	// After is when to decide again if nothing changes; zero means never.
	After time.Duration
}

// RequestOf returns the request for a diagnosis in the annotation of an Instance, as Bound returns it; empty if there is none. A longer value is not a
// time, and is shortened.
func RequestOf(instance *kudo.Instance) string {
	return cleanRequest(instance.Annotations[kudo.AnnotationDiagnose])
}

// Decide answers each request once. An answer without content stays as long as its request, so that the request is not answered again.
func Decide(request string, last *kudo.Diagnosis, now time.Time) Decision {
	switch {
	case request == "":
		return Decision{}
	case last != nil && last.Request == request:
		return keep(*last, now)
	case last != nil && now.Sub(last.Time.Time) >= 0 && now.Sub(last.Time.Time) < minInterval:
		return Decision{Next: last, After: minInterval - now.Sub(last.Time.Time)}
	}
	next := &kudo.Diagnosis{Request: request, Time: metav1.NewTime(now.Truncate(time.Second))}
	if next.Message = problemOf(request, now); next.Message != "" {
		return Decision{Next: next}
	}
	return Decision{Next: next, Gather: true, After: Lifetime}
}

// keep returns an answer without its content after Lifetime. One from the future, by a clock that was ahead, is not kept longer.
func keep(last kudo.Diagnosis, now time.Time) Decision {
	hasContent := len(last.Pods)+len(last.Events) > 0
	age := now.Sub(last.Time.Time)
	switch {
	case !hasContent:
		return Decision{Next: &last}
	case age < Lifetime && age > -maxSkew:
		return Decision{Next: &last, After: Lifetime - age}
	}
	return Decision{Next: &kudo.Diagnosis{Request: last.Request, Time: last.Time, Message: dropped}}
}

// problemOf returns why a request is not answered; empty if it is.
func problemOf(request string, now time.Time) string {
	at, err := time.Parse(time.RFC3339, request)
	switch {
	case err != nil:
		return malformed
	case at.Sub(now) > maxSkew:
		return future
	case now.Sub(at) >= Lifetime:
		return expired
	default:
		return ""
	}
}
