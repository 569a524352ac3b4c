package plans

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// result is the result of a plan.
type result string

const (
	passed  result = "passed"
	failed  result = "failed"
	unmet   result = "not reached" // the write did not happen in its runs
	untried result = "not tried"   // the budget was spent before, or an earlier fault of the run failed
	// attempts is how often a plan whose write does not happen is tried.
	attempts = 2
	// interruptions is how often a plan whose runs fail before its write is planned.
	interruptions = 10
)

// queue holds the plans that are not tried yet, and the results of the others.
type queue struct {
	began    time.Time
	end      time.Time // no run starts after it; zero if there is no limit
	selected []Plan

	mutex    sync.Mutex
	batches  [][]Plan
	again    []Plan // because their writes did not happen
	attempts map[Plan]int
	results  map[Plan]result
}

func newQueue(selected []Plan, end time.Time) *queue {
	return &queue{
		began: time.Now(), end: end, selected: selected, batches: Batches(selected), attempts: map[Plan]int{}, results: map[Plan]result{},
	}
}

// next returns the plans of the next run; nil if there are no more, or the budget is spent.
func (q *queue) next() []Plan {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if !q.end.IsZero() && time.Now().After(q.end) {
		return nil
	}
	if len(q.batches) == 0 {
		q.batches, q.again = Batches(q.again), nil
	}
	if len(q.batches) == 0 {
		return nil
	}
	batch := q.batches[0]
	q.batches = q.batches[1:]
	return batch
}

// record records the results of a run. Plans that were not tried, and those whose write did not happen, are tried again.
func (q *queue) record(batch []Plan, results map[Plan]result) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, p := range batch {
		got, tried := results[p]
		limit := interruptions
		if tried {
			q.results[p], limit = got, attempts
		}
		if q.attempts[p]++; (!tried || got == unmet) && q.attempts[p] < limit {
			q.again = append(q.again, p)
		}
	}
}

// report returns the places of writes with their results, and a summary by program and pattern.
func (q *queue) report() string {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	places := map[string][]string{}
	rows := map[string]map[result]int{}
	total := map[result]int{}
	for _, p := range q.selected {
		got, tried := q.results[p]
		if !tried {
			got = untried
		}
		add := func(row string) {
			if rows[row] == nil {
				rows[row] = map[result]int{}
			}
			rows[row][got]++
		}
		total[got]++
		add(p.Place.Link + "\t" + string(p.Pattern))
		add("scenario\t" + p.Place.Scenario)
		if tried {
			pattern := strings.TrimPrefix(p.String(), p.Place.String()+"/")
			if got != passed {
				pattern += " (" + string(got) + ")"
			}
			places[p.Place.String()] = append(places[p.Place.String()], pattern)
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "writes that were tried: %d\n", len(places))
	for _, place := range slices.Sorted(maps.Keys(places)) {
		slices.Sort(places[place])
		fmt.Fprintf(&text, "%s: %s\n", place, strings.Join(places[place], ", "))
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	kinds := []result{passed, failed, unmet, untried}
	fmt.Fprintf(table, "\nprogram\tpattern\t%s\t%s\t%s\t%s\n", passed, failed, unmet, untried)
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprint(table, row)
		for _, kind := range kinds {
			fmt.Fprintf(table, "\t%d", rows[row][kind])
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // a string cannot fail
	fmt.Fprintf(&text, "%d plans selected, in %s:", len(q.selected), time.Since(q.began).Round(time.Second))
	for _, kind := range kinds {
		fmt.Fprintf(&text, " %d %s", total[kind], kind)
	}
	return text.String()
}

// names returns the names of plans.
func names(plans []Plan) string {
	var names []string
	for _, p := range plans {
		names = append(names, p.String())
	}
	return strings.Join(names, ";")
}
