package soak

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Pods is what was read of the pods of an Instance.
type Pods struct {
	// Latest is the latest restart of a container.
	Latest Restart

	// Restarts are the restarts of each container that has any, by the uid of its pod and its name.
	Restarts map[string]int64

	// byContainer are the latest restarts of these.
	byContainer map[string]Restart

	// Problem is why the pods could not be read; empty if they were.
	Problem string
}

// Restart is the last restart of a container, by the clock of its node. Message names the container and its pod.
type Restart struct {
	Time    time.Time
	Message string
}

// PodsOf returns what matters of pods. A pod that was created or evicted has no restart, but its containers may.
func PodsOf(pods []unstructured.Unstructured) *Pods {
	found := &Pods{Restarts: map[string]int64{}, byContainer: map[string]Restart{}}
	for i := range pods {
		for _, c := range health.Restarts(&pods[i]) {
			key := string(pods[i].GetUID()) + "/" + c.Container
			found.Restarts[key] = c.Count
			restart := Restart{Time: c.Time, Message: text.OneLine(fmt.Sprintf("container %s of Pod %s/%s has restarted: %s",
				c.Container, pods[i].GetNamespace(), pods[i].GetName(), c.Cause))}
			found.byContainer[key] = restart
			if restart.Time.After(found.Latest.Time) {
				found.Latest = restart
			}
		}
	}
	return found
}

func (p *Pods) isKnown() bool { return p != nil && p.Problem == "" }

// since returns the latest restart after the last one that is recorded, or that the process does not remember; nil if there is none. Clocks of nodes may be
// set: a process that remembers the number of restarts does not need them.
func (p *Pods) since(recorded *metav1.Time, m Memory) *Restart {
	var latest *Restart
	for key, count := range p.Restarts {
		restart := p.byContainer[key]
		isLater := !restart.Time.IsZero() && (recorded == nil || restart.Time.After(recorded.Time))
		isMore := m.restarts != nil && count > m.restarts[key]
		isPreferred := latest == nil || restart.Time.After(latest.Time) || restart.Time.Equal(latest.Time) && restart.Message < latest.Message
		if (isLater || isMore) && isPreferred {
			latest = &restart
		}
	}
	return latest
}

// Interval is the time between two looks at the pods of an Instance.
const Interval = 15 * time.Second

// minReadDelay is the minimum time between two reads of the pods of an Instance, whatever happens.
const minReadDelay = time.Second

// Memory is what a process remembers of the last look at an Instance. It is zero in a process that has just started, or has forgotten the look:
// the recorded times are then compared with the clock as it is.
type Memory struct {
	// start is the recorded start of what is measured, and elapsed what had elapsed of it when the process had run for uptime.
	start   time.Time
	elapsed time.Duration
	uptime  time.Duration

	// wasRead means that the pods were read at readAt, or that this failed because of a problem. restarts are the restarts of each container that has any.
	wasRead  bool
	readAt   time.Duration
	problem  string
	restarts map[string]int64
}

// withPods returns the memory with what was read of the pods; nil if they were not.
func (m Memory) withPods(uptime time.Duration, pods *Pods) Memory {
	if pods == nil {
		return m
	}
	m.wasRead, m.readAt, m.problem = true, uptime, pods.Problem
	if pods.isKnown() {
		m.restarts = pods.Restarts
	}
	return m
}

// age returns how long ago the pods were read; a long time if they were not.
func (m Memory) age(uptime time.Duration) time.Duration {
	if !m.wasRead {
		return Interval
	}
	return uptime - m.readAt
}
