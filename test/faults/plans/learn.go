// Package plans runs the real programs between real API servers with one planned fault at a time: at every distinct write that a scenario
// makes, the program stops before or after it, starts again with a stale view, or loses events. The outcome must equal that of a run
// without faults.
package plans

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/test/faults/proxy"
)

// Pattern is what happens at a write.
type Pattern string

const (
	// Before and After stop the program before the write is forwarded, or after it was executed and before the answer arrives.
	Before Pattern = "before"
	After  Pattern = "after"
	// Stale is After, and the program starts with the view of the time before the user's last action.
	Stale Pattern = "stale"
	// Lost holds all events of the program from the write on until it does nothing more; then they are lost, and it lists again.
	Lost Pattern = "lost"
	// Refused refuses the write: a conflict, an overloaded API server, an internal error, or a timeout of a write that was executed. Cut
	// closes all connections after the write, and Slow delays it.
	Refused Pattern = "refused"
	Cut     Pattern = "cut"
	Slow    Pattern = "slow"
)

// patterns lists the patterns that every write gets; the others of a write are drawn by the seed.
var patterns, drawn = []Pattern{Before, After, Stale, Lost}, []Pattern{Refused, Refused, Cut, Slow}

// Place is a distinct write of a scenario.
type Place struct {
	// Scenario and Action are where in the scenario the write is made.
	Scenario, Action string
	// Link is the program and its API server.
	Link string
	// Write is the normalised write.
	Write string
}

func (p Place) String() string {
	return strings.Join([]string{p.Scenario, p.Action, p.Link, p.Write}, "/")
}

// Plan is one fault.
type Plan struct {
	Place   Place
	Pattern Pattern
	// Code is the status code of a Refused write.
	Code int
}

func (p Plan) String() string {
	if p.Code != 0 {
		return fmt.Sprintf("%s/%s-%d", p.Place, p.Pattern, p.Code)
	}
	return fmt.Sprintf("%s/%s", p.Place, p.Pattern)
}

// codes are those of a Refused write. The last one answers a write that was executed.
var codes = []int{409, 429, 500, 504}

// Plans returns the plans of places: all patterns of each, and one that the seed draws.
func Plans(places []Place, seed uint64) []Plan {
	var plans []Plan
	for _, place := range places {
		if place.ofCommand() {
			plans = append(plans, commandPlans(place)...)
			continue
		}
		for _, pattern := range patterns {
			plans = append(plans, Plan{Place: place, Pattern: pattern})
		}
		chance := rand.New(rand.NewPCG(seed, sum(place.String())))
		more := Plan{Place: place, Pattern: drawn[chance.IntN(len(drawn))]}
		if more.Pattern == Refused {
			more.Code = codes[chance.IntN(len(codes))]
		}
		plans = append(plans, more)
	}
	return plans
}

// ofCommand reports whether the write is made by a command, which has no view that could be stale, and no events to lose.
func (p Place) ofCommand() bool { return strings.HasPrefix(p.Link, "kubectl-addon@") }

// commandPlans returns the plans of a write of a command: all faults that it can have.
func commandPlans(place Place) []Plan {
	var plans []Plan
	for _, pattern := range []Pattern{Before, After, Cut, Slow} {
		plans = append(plans, Plan{Place: place, Pattern: pattern})
	}
	for _, code := range codes {
		plans = append(plans, Plan{Place: place, Pattern: Refused, Code: code})
	}
	return plans
}

// Shuffle returns the plans in an order that depends on the seed only.
func Shuffle(plans []Plan, seed uint64) []Plan {
	return slices.SortedFunc(slices.Values(plans), func(a, b Plan) int { return cmp.Compare(position(seed, a.String()), position(seed, b.String())) })
}

// position returns a number by which names can be sorted in an order that depends on the seed only.
func position(seed uint64, name string) uint64 {
	return rand.New(rand.NewPCG(seed, sum(name))).Uint64()
}

// Part returns the k-th of n parts of the plans. The part to which a plan belongs depends only on its name and n.
func Part(plans []Plan, k, n uint64) []Plan {
	return slices.DeleteFunc(slices.Clone(plans), func(p Plan) bool { return sum(p.String())%n != k-1 })
}

// Batches divides plans into batches that one run tries: plans of one scenario, at most one for each action.
func Batches(plans []Plan) [][]Plan {
	var batches [][]Plan
	for _, p := range plans {
		fits := func(batch []Plan) bool {
			return batch[0].Place.Scenario == p.Place.Scenario &&
				!slices.ContainsFunc(batch, func(other Plan) bool { return other.Place.Action == p.Place.Action })
		}
		if i := slices.IndexFunc(batches, fits); i >= 0 {
			batches[i] = append(batches[i], p)
		} else {
			batches = append(batches, []Plan{p})
		}
	}
	return batches
}

// sum returns a number that depends on the text only.
func sum(text string) uint64 {
	total := uint64(14695981039346656037)
	for _, b := range []byte(text) {
		total = (total ^ uint64(b)) * 1099511628211
	}
	return total
}

// Distinct returns the distinct places of writes in their order.
func Distinct(writes []Place) []Place {
	var places []Place
	seen := map[Place]bool{}
	for _, w := range writes {
		if !seen[w] {
			seen[w] = true
			places = append(places, w)
		}
	}
	return places
}

// What differs between two runs: names of the run, uids, times, parts of uids in the names of mirrored versions, hashes of the Instance's
// name in the names of what a Pipe task creates, hashes of configs, which name the namespace of the run, those of what charts render and of archives, which
// are named like the run, and ports of this machine.
var (
	uids     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	times    = regexp.MustCompile(`\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?Z)?`) // those of windows have minutes
	versions = regexp.MustCompile(`(\d\.\d\.\d)-[0-9a-f]{8}\b`)
	hashes   = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	signed   = regexp.MustCompile(`\bv[0-9]+\.[0-9A-Za-z_-]{43}`) // they cover uids
	kept     = regexp.MustCompile(`\b(tandem-rendering-UID)-[0-9a-f]{20}\b`)
	parts    = regexp.MustCompile(`\b(X-\d\.\d\.\d)\.[0-9a-f]{16}\b`)
	hosts    = regexp.MustCompile(`\b127\.0\.0\.1:\d+`)
	piped    = regexp.MustCompile(`\b(X[a-z-]+)-[0-9a-f]{8}\b`)
)

// Normal removes what differs between two runs from a text. run is the name of the run.
func Normal(text, run string) string {
	text = strings.ReplaceAll(text, run, "X")
	text = uids.ReplaceAllString(text, "UID")
	text = signed.ReplaceAllString(text, "SIGNATURE")
	text = times.ReplaceAllString(text, "TIME")
	text = hashes.ReplaceAllString(text, "HASH")
	text = kept.ReplaceAllString(text, "$1-HASH")
	text = parts.ReplaceAllString(text, "$1.HASH")
	text = hosts.ReplaceAllString(text, "HOST")
	text = piped.ReplaceAllString(text, "$1-HASH")
	return versions.ReplaceAllString(text, "$1-UID")
}

// Describe returns a normalised description of a write, in which the progress of a plan distinguishes writes of a status.
func Describe(w *proxy.Write, run string) string {
	text := fmt.Sprintf("%s %s %s", w.Verb, w.Kind(), w.Name)
	if by := strings.TrimPrefix(strings.TrimPrefix(w.Manager, "addon-manager-"), "addon-agent-"); by != "" {
		text += " by " + by
	}
	if progress := progress(w.Body); progress != "" {
		text += " (" + progress + ")"
	}
	return Normal(text, run)
}

// progress returns the plan of the execution in the status of an Instance, its state and the states of its steps; empty if there is none.
func progress(body map[string]any) string {
	status, _ := body["status"].(map[string]any)
	execution, _ := status["execution"].(map[string]any)
	name, _ := execution["plan"].(string)
	if name == "" {
		return ""
	}
	all, _ := status["planStatus"].(map[string]any)
	plan, _ := all[name].(map[string]any)
	text := fmt.Sprintf("%s %v", name, plan["status"])
	for _, phase := range list(plan["phases"]) {
		for _, step := range list(phase["steps"]) {
			if state := step["status"]; state != "PENDING" {
				text += fmt.Sprintf(", %v %v", step["name"], state)
			}
		}
	}
	return strings.NewReplacer("IN_PROGRESS", "runs", "COMPLETE", "done").Replace(text)
}

// list returns the objects of a list.
func list(of any) []map[string]any {
	var objects []map[string]any
	items, _ := of.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// work are the metrics of a program that are zero while its controllers have nothing to do.
var work = []string{"workqueue_depth{", "controller_runtime_active_workers{", "addon_queue_backlog{"}

// IsWorking reports whether the metrics of a program show that its controllers are started and have something to do.
func IsWorking(metrics string) bool {
	for line := range strings.Lines(metrics) {
		value := line[strings.LastIndex(line, " ")+1:]
		if slices.ContainsFunc(work, func(name string) bool { return strings.HasPrefix(line, name) }) && strings.TrimSpace(value) != "0" {
			return true
		}
	}
	return false
}

// Tally counts the objects that were created and deleted, and the executions of plans that were recorded, by their normalised names. An object
// that is deleted again while a finalizer holds it counts once, and a dry run does not count.
func Tally(writes []*proxy.Write, run string) map[string]int {
	counts := map[string]int{}
	executions, deleted := map[string]bool{}, map[string]bool{}
	for _, w := range writes {
		if !w.IsSuccess() || w.IsDryRun || w.Periodic() {
			continue
		}
		switch {
		case isCreation(w):
			counts[Normal(fmt.Sprintf("create %s %s", w.Resource, w.Name), run)]++
		case isDeletion(w) && (w.UID == "" || !deleted[w.UID]):
			deleted[w.UID] = true
			counts[Normal(fmt.Sprintf("delete %s %s", w.Resource, w.Name), run)]++
		}
		if started := startedBy(w); started != "" && !executions[started] {
			executions[started] = true
			name, _, _ := strings.Cut(started, " of ")
			counts[Normal(fmt.Sprintf("start %s of %s", name, w.Name), run)]++
		}
	}
	return counts
}

// isCreation reports whether a creation counts. That of a rendering does not: an execution that is interrupted before it has recorded one renders
// the chart again, and what is random in it is then different.
func isCreation(w *proxy.Write) bool {
	return w.Code == 201 && w.Subresource == "" && w.Manager != "addon-agent-rendering"
}

// isDeletion reports whether a deletion counts. That of a ManifestWork does not: if its add-on is deleted, Kubernetes' garbage collector may be
// faster than addon-manager.
func isDeletion(w *proxy.Write) bool { return w.Verb == "delete" && w.Resource != "manifestworks" }

// startedBy returns the plan and uid of the execution in the status of a mirror; empty if there is none.
func startedBy(w *proxy.Write) string {
	if w.Kind() != "instances/status" || w.Verb != "update" {
		return ""
	}
	status, _ := w.Body["status"].(map[string]any)
	execution, _ := status["execution"].(map[string]any)
	if execution == nil {
		return ""
	}
	return fmt.Sprintf("%v of %v", execution["plan"], execution["uid"])
}

// Differences lists the entries in which two tallies differ.
func Differences(want, got map[string]int) []string {
	all := maps.Clone(want)
	maps.Copy(all, got)
	var different []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if want[key] != got[key] {
			different = append(different, fmt.Sprintf("%s: %d times, want %d", key, got[key], want[key]))
		}
	}
	return different
}
