package plans

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// reconnects is the number of times that TestReconnects cuts the link to the hub.
	reconnects = "FAULTS_RECONNECTS"
	// warmUp is the number of reconnects after which the caches of the agent are as large as they get.
	warmUp = 10
	// samples is the number of reconnects after which the usage is read; the lowest usage counts.
	samples = 5
	// lasting is how long a watch must last for client-go to begin it again without a pause. Pauses grow to 30 seconds.
	lasting = 1100 * time.Millisecond
)

// TestReconnects cuts the agent's connections to the hub repeatedly, and compares its goroutines and memory before and after.
func TestReconnects(t *testing.T) {
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv(reconnects), "20"))
	if err != nil || rounds < warmUp+2*samples {
		t.Fatalf("%s must be at least %d, got %q", reconnects, warmUp+2*samples, os.Getenv(reconnects))
	}
	w := newWorld(t, "reconnects", false)
	agent := w.programs[1]
	hub := agent.links["hub"]
	if err := eventually(t.Context(), settleTimeout, func(context.Context) error {
		if !hub.Idle(lasting) {
			return fmt.Errorf("the agent is not at rest")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	watches := hub.Watches()
	var before, after usage
	for round := range rounds {
		last := hub.StartedWatches()
		hub.Cut()
		hub.Mend()
		if err := eventually(t.Context(), settleTimeout, func(context.Context) error {
			if now := hub.Watches(); now != watches || hub.StartedWatches() < last+watches || !hub.Idle(lasting) {
				return fmt.Errorf("%d of %d watches are open again after cut %d", now, watches, round+1)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		switch {
		case round >= warmUp && round < warmUp+samples:
			before = before.min(usageOf(t, agent))
		case round >= rounds-samples:
			after = after.min(usageOf(t, agent))
		}
	}
	t.Logf("%d reconnects of %d watches: %v before, %v after", rounds, watches, before, after)
	if after.goroutines > before.goroutines+rounds/100+2 {
		t.Errorf("goroutines grew from %v to %v", before, after)
	}
	if after.resident > before.resident*5/4 {
		t.Errorf("memory grew from %v to %v", before, after)
	}
}

// usage is what a program uses.
type usage struct{ goroutines, resident int }

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d MiB", u.goroutines, u.resident>>20)
}

// min returns the lower values of both; zero is none.
func (u usage) min(other usage) usage {
	if u.goroutines == 0 {
		return other
	}
	return usage{goroutines: min(u.goroutines, other.goroutines), resident: min(u.resident, other.resident)}
}

// usageOf returns what a program uses now.
func usageOf(t *testing.T, p *program) usage {
	t.Helper()
	metrics, err := p.fetchMetrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return usage{goroutines: metric(t, metrics, "go_goroutines"), resident: metric(t, metrics, "process_resident_memory_bytes")}
}

// metric returns the value of a metric without labels.
func metric(t *testing.T, metrics, name string) int {
	t.Helper()
	for line := range strings.Lines(metrics) {
		text, found := strings.CutPrefix(line, name+" ")
		if !found {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			t.Fatalf("metric %s: %v", name, err)
		}
		return int(value)
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
