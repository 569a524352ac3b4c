package main

import (
	"cmp"
	"path"
	"slices"
	"time"

	"github.com/tandem-addons/tandem/test/audit"
)

// traced is a request of addon-agent to the managed cluster, while it deploys one Instance.
type traced struct {
	// AtMS and TookMS are milliseconds: from the arrival of the first request, and from arrival to response.
	AtMS   float64 `json:"atMs"`
	TookMS float64 `json:"tookMs"`
	Kind   string  `json:"kind"`
	Verb   string  `json:"verb"`
	Object string  `json:"object"`
}

// trace lists requests in the order of their arrival.
func trace(log []audit.Entry) []traced {
	log = slices.SortedStableFunc(slices.Values(log), func(a, b audit.Entry) int { return a.RequestTime().Compare(b.RequestTime()) })
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	requests := make([]traced, len(log))
	for i := range log {
		e := &log[i]
		requests[i] = traced{
			AtMS:   milliseconds(e.RequestTime().Sub(log[0].RequestTime())),
			TookMS: milliseconds(max(0, e.ResponseTime().Sub(e.RequestTime()))),
			Kind:   kindOf(e),
			Verb:   e.Verb,
			Object: path.Join(cmp.Or(e.ObjectRef.Resource, e.RequestURI), e.ObjectRef.Subresource, e.ObjectRef.Name),
		}
	}
	return requests
}
