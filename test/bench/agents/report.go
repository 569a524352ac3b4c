package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tandem-addons/tandem/test/bench/spread"
	"github.com/tandem-addons/tandem/test/bench/version"
)

// report holds the results of a run.
type report struct {
	Agents   int      `json:"agents"`
	AddOns   int      `json:"addOnsEach"`
	Cores    int      `json:"cores"`
	Versions versions `json:"versions"`

	Scenarios []*scenario `json:"scenarios"`
	// Left lists the objects that remain on the managed clusters after the removal.
	Left []string `json:"left"`
}

type versions struct {
	Tandem     string `json:"tandem"`
	Kubernetes string `json:"kubernetes"`
	OCM        string `json:"ocm,omitempty"`
}

// scenario holds the results of a change of the fleet.
type scenario struct {
	Name string `json:"name"`
	// Seconds is the time until the last write by agents, addon-manager or OCM, without leases and events; Observed the time until the next
	// scenario.
	Seconds  float64 `json:"seconds"`
	Observed float64 `json:"observedSeconds"`
	// Agents are the requests of all agents to the hub; Manager and OCM those of addon-manager and of OCM's controllers that write.
	Agents  load `json:"agents"`
	Manager load `json:"addonManager"`
	OCM     load `json:"ocm"`
	// Waves are the waves of a rollout by OCM, and Early the clusters that began before all earlier waves had ended.
	Waves []wave   `json:"waves,omitempty"`
	Early []string `json:"early,omitempty"`
	// Programs holds the usage of the hub's programs, and of the process with all agents.
	Programs map[string]usage `json:"programs"`
	// SentKBEach and ReceivedKBEach are what an agent exchanges with the hub, with TLS and HTTP/2, on average.
	SentKBEach     float64 `json:"sentKBEach"`
	ReceivedKBEach float64 `json:"receivedKBEach"`
	// Watches is the number of all open watches on the hub at the end.
	Watches int `json:"watches"`
	// Connected is the time until an agent has opened its watches, Renewed until it renews its lease, Reported until it first reports.
	Connected spread.Spread `json:"connected"`
	Renewed   spread.Spread `json:"renewed"`
	Reported  spread.Spread `json:"reported"`
	// ReadySeconds is how long the hub's API server took to start, after an outage.
	ReadySeconds float64 `json:"readySeconds,omitempty"`
	// WatchTimeoutSeconds is the average time that the watches last that agents have opened.
	WatchTimeoutSeconds float64 `json:"watchTimeoutSeconds"`
}

// load holds requests to the hub.
type load struct {
	Requests      int            `json:"requests"`
	RequestsEach  float64        `json:"requestsEach"`
	PeakPerSecond int            `json:"peakPerSecond"`
	ByKind        map[string]int `json:"byKind"`
	Conflicts     int            `json:"conflicts"`
	// Throttled are answered with 429; Failed with 401, 403 or 5xx.
	Throttled int           `json:"throttled"`
	Failed    int           `json:"failed"`
	Latency   spread.Spread `json:"latency"`
}

// newScenario returns the results of an observation, except for the programs, the bytes and the open watches.
func newScenario(name string, o *observation, agents int, now time.Time) *scenario {
	s := &scenario{
		Name: name, Observed: now.Sub(o.began).Seconds(), Agents: o.agents.load(agents), Manager: o.manager.load(1), OCM: o.ocm.load(1),
		Connected: spread.Of(o.connectTimes(watchesEach)), Renewed: spread.Of(o.renewed.since(o.began)),
		Reported: spread.Of(o.reported.since(o.began)), ReadySeconds: o.ready.Seconds(),
	}
	if !o.ended.IsZero() {
		s.Seconds = o.ended.Sub(o.began).Seconds()
	}
	if o.progress != nil {
		s.Waves, s.Early = o.progress.results(o.began)
	}
	for _, timeout := range o.timeouts {
		s.WatchTimeoutSeconds += timeout.Seconds() / float64(len(o.timeouts))
	}
	return s
}

// hourly is what one agent at rest costs the hub in an hour.
type hourly struct {
	// requests are counted, except watches: those follow from the time that they last.
	requests, watches  float64
	sentKB, receivedKB float64
}

// hourly returns the cost of one agent at rest.
func (r *report) hourly() hourly {
	rest, connect := r.of(restScenario), r.of(connectScenario)
	times := 3600 / rest.Observed
	counted := 0
	for kind, count := range rest.Agents.ByKind {
		if !strings.HasPrefix(kind, "watch ") {
			counted += count
		}
	}
	return hourly{
		requests: float64(counted) / float64(r.Agents) * times, watches: watchesEach * 3600 / connect.WatchTimeoutSeconds,
		sentKB: rest.SentKBEach * times, receivedKB: rest.ReceivedKBEach * times,
	}
}

// of returns the scenario of that name; nil if it was skipped.
func (r *report) of(name string) *scenario {
	for _, s := range r.Scenarios {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// describe adds the measured versions and the machine.
func (b *bench) describe(r *report) (err error) {
	r.Agents, r.AddOns, r.Cores = len(b.clusters), b.addons, runtime.NumCPU()
	if r.Versions.Tandem, err = version.Of(filepath.Join(b.programs, "addon-manager")); err != nil {
		return err
	}
	if b.ocm != "" {
		said, err := version.Of(filepath.Join(b.ocm, "addon"))
		if err != nil {
			return err
		}
		r.Versions.OCM = strings.TrimPrefix(said, "version ")
	}
	r.Versions.Kubernetes, err = version.OfServer(b.Hub.Config())
	return err
}

// Print writes the report as tables.
func (r *report) Print(out io.Writer) {
	fmt.Fprintf(out, "%d agents with %d add-ons each; %d cores; Tandem %s, Kubernetes %s\n\n",
		r.Agents, r.AddOns, r.Cores, r.Versions.Tandem, r.Versions.Kubernetes)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tseconds\trequests each\tpeak/s\tp50 ms\tp99 ms\tconflicts\t429\tfailed\tsent KB\treceived KB\twatches\taddon-manager\tconflicts\t")
	for _, s := range r.Scenarios {
		a := s.Agents
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%d\t%.1f\t%.0f\t%d\t%d\t%d\t%.1f\t%.1f\t%d\t%d\t%d\t\n", s.Name, s.Seconds, a.RequestsEach, a.PeakPerSecond,
			a.Latency.P50, a.Latency.P99, a.Conflicts, a.Throttled, a.Failed, s.SentKBEach, s.ReceivedKBEach, s.Watches, s.Manager.Requests, s.Manager.Conflicts)
	}
	w.Flush()
	fmt.Fprintln(out, "\nCPU seconds and peak MB:")
	programs := append(slices.Clone(measuredPrograms(r.Versions.OCM != "")), ownProcess)
	fmt.Fprintf(w, "\t%s\t\n", strings.Join(programs, "\t"))
	for _, s := range r.Scenarios {
		fmt.Fprintf(w, "%s\t", s.Name)
		for _, name := range programs {
			fmt.Fprintf(w, "%.1f, %.0f\t", s.Programs[name].CPUSeconds, s.Programs[name].PeakMemoryMB)
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	r.printRequests(out)
	for _, name := range []string{connectScenario, outageScenario} {
		if s := r.of(name); s != nil {
			fmt.Fprintf(out, "%s, in s: API server ready %.1f; watches p50 %.1f, max %.1f; lease p50 %.1f, max %.1f; first report p50 %.1f, max %.1f\n", name,
				s.ReadySeconds, s.Connected.P50/1000, s.Connected.Max/1000, s.Renewed.P50/1000, s.Renewed.Max/1000, s.Reported.P50/1000, s.Reported.Max/1000)
		}
	}
	if r.of(restScenario) != nil {
		hour := r.hourly()
		fmt.Fprintf(out, "one agent at rest, in an hour: %.1f requests and %.1f watches, %.1f KB sent, %.1f KB received\n",
			hour.requests, hour.watches, hour.sentKB, hour.receivedKB)
	}
	if r.of(removalScenario) != nil {
		fmt.Fprintf(out, "removal: %d objects left\n", len(r.Left))
	}
}

// printRequests writes the requests of all agents by kind; with OCM, also the writes of addon-manager and of OCM, and the waves.
func (r *report) printRequests(out io.Writer) {
	fmt.Fprintln(out, "\nrequests of all agents:")
	for _, s := range r.Scenarios {
		fmt.Fprintf(out, "%s: %s\n", s.Name, s.Agents.kinds())
	}
	if r.Versions.OCM == "" {
		return
	}
	fmt.Fprintf(out, "\nwrites of addon-manager, and of OCM %s:\n", r.Versions.OCM)
	for _, s := range r.Scenarios {
		fmt.Fprintf(out, "%s: %s; OCM: %s\n", s.Name, s.Manager.kinds(), s.OCM.kinds())
		for i, w := range s.Waves {
			fmt.Fprintf(out, "%s, wave %d: %d clusters, from %.1f s to %.1f s\n", s.Name, i+1, w.Clusters, w.Began, w.Ended)
		}
	}
}

// String summarizes the scenario.
func (s *scenario) String() string {
	server := s.Programs["kube-apiserver"]
	return fmt.Sprintf("%s took %.1fs: %.1f requests an agent, %d in one second at most, 99 of 100 within %.0fms; kube-apiserver used %.1fs CPU, %.0f MB",
		s.Name, s.Seconds, s.Agents.RequestsEach, s.Agents.PeakPerSecond, s.Agents.Latency.P99, server.CPUSeconds, server.PeakMemoryMB)
}

// kinds lists the numbers of requests by kind, the largest first.
func (l *load) kinds() string {
	kinds := slices.SortedFunc(maps.Keys(l.ByKind), func(a, b string) int {
		if l.ByKind[a] != l.ByKind[b] {
			return l.ByKind[b] - l.ByKind[a]
		}
		return strings.Compare(a, b)
	})
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", l.ByKind[kind], kind)
	}
	return strings.Join(kinds, ", ")
}

// shownLeft is the number of remaining objects that are printed.
const shownLeft = 5

// Violations returns the violated invariants: no request fails while the hub serves, nothing but leases is written at rest, a rollout keeps
// the order of its waves, the removal leaves nothing. Speed is not an invariant.
func (r *report) Violations() error {
	var broken []error
	for _, s := range r.Scenarios {
		if s.Agents.Failed > 0 && s.Name != outageScenario {
			broken = append(broken, fmt.Errorf("%s: %d requests of agents failed", s.Name, s.Agents.Failed))
		}
		if s.Name == restScenario && s.Seconds > 0 {
			broken = append(broken, fmt.Errorf("rest: something was written: %s; %s; %s", s.Agents.kinds(), s.Manager.kinds(), s.OCM.kinds()))
		}
		if len(s.Early) > 0 {
			broken = append(broken, fmt.Errorf("%s: %d clusters began before all earlier waves had ended, such as %s", s.Name, len(s.Early), s.Early[0]))
		}
	}
	for _, object := range r.Left[:min(shownLeft, len(r.Left))] {
		broken = append(broken, fmt.Errorf("removal: left %s", object))
	}
	return errors.Join(broken...)
}
