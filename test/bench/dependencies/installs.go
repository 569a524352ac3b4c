package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/spread"
)

// installsReport holds what the first installations of a fleet cost.
type installsReport struct {
	Clusters int `json:"clusters"`
	AddOns   int `json:"addons"`
	// Ordered is true if each add-on requires a version of another one.
	Ordered bool `json:"ordered"`
	// Installed is the number of Instances that addon-manager created.
	Installed int `json:"installed"`
	// Seconds is the time from the arrival of the first creation of an Instance to the response to the last one.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is the CPU time of addon-manager, and CPUSecondsOf of the other programs.
	CPUSeconds   float64            `json:"cpuSeconds"`
	CPUSecondsOf map[string]float64 `json:"cpuSecondsOf"`
	Requests     []requestCount     `json:"requests"`
}

// requestCount is the number of requests of a kind, with their durations in the API server.
type requestCount struct {
	Request string `json:"request"`
	Count   int    `json:"count"`
	// Failed is the number of those that failed, such as a live read of an object that does not exist.
	Failed  int     `json:"failed"`
	Seconds float64 `json:"seconds"`
	spread.Spread
}

// installs creates a fleet of add-ons that run a package and require the first add-on, which is available, and measures how addon-manager, a leader that has just started,
// creates all Instances.
func (b *bench) installs(ctx context.Context) (program.Report, error) {
	versions, err := versionsOf(examplePackage)
	if err != nil {
		return nil, err
	}
	if err := b.hub.admin.Create(ctx, versions[0]); err != nil {
		return nil, fmt.Errorf("storing OperatorVersion %q: %w", versions[0].Name, err)
	}
	if err := b.populate(ctx); err != nil {
		return nil, err
	}
	if err := b.runPackage(ctx, versions[0]); err != nil {
		return nil, err
	}
	if err := b.hub.admit(ctx); err != nil {
		return nil, err
	}
	measured := &installsReport{Clusters: b.fleet.clusters, AddOns: b.fleet.addOns, Ordered: b.fleet.selective}
	var entries []audit.Entry
	others, err := b.measureOthers(func() error {
		b.say("addon-manager starts %d first installations", b.fleet.clusters*(b.fleet.addOns-1))
		if err := b.start(); err != nil {
			return err
		}
		entries, err = b.awaitInstalls(ctx, b.fleet.clusters*(b.fleet.addOns-1))
		return err
	})
	if err != nil {
		return nil, err
	}
	own, err := b.manager.usage()
	if err != nil {
		return nil, err
	}
	measured.CPUSeconds, measured.CPUSecondsOf = own.CPU.Seconds(), usage{cpuOf: others}.seconds()
	measured.count(entries)
	return measured, nil
}

// runPackage makes all add-ons but the first one run a package and require the first one, in a version if the fleet is selective.
func (b *bench) runPackage(ctx context.Context, version *kudo.OperatorVersion) error {
	for i, name := range b.fleet.names() {
		definition := &addonv1alpha1.ClusterManagementAddOn{}
		if err := b.hub.admin.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			return fmt.Errorf("reading ClusterManagementAddOn %q: %w", name, err)
		}
		if definition.Spec.Dependencies = nil; i > 0 {
			needed := need(addOnName(0), addonv1alpha1.DependencyTypeRequired)
			if b.fleet.selective {
				needed.Version = ">=1 <2"
			}
			definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{needed}
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
				ConfigGroupResource: upstream.ConfigGroupResource{Group: kudo.GroupVersion.Group, Resource: addonv1alpha1.ResourceOperatorVersions},
				DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
			}}
		}
		if err := b.hub.admin.Update(ctx, definition); err != nil {
			return fmt.Errorf("updating ClusterManagementAddOn %q: %w", name, err)
		}
	}
	return nil
}

// awaitInstalls returns the requests of addon-manager up to the creation of the last Instance, and as long as it writes.
func (b *bench) awaitInstalls(ctx context.Context, count int) ([]audit.Entry, error) {
	var found []audit.Entry
	created, last := 0, time.Now()
	err := b.until(ctx, poll, func() (bool, bool, error) {
		entries, err := b.hub.log.Next()
		nearer := false
		for i := range entries {
			if isInstallation(&entries[i]) {
				created, nearer = created+1, true
			}
			if entries[i].Verb != "get" && entries[i].Verb != "list" {
				last = time.Now()
			}
		}
		found = append(found, entries...)
		return created >= count && time.Since(last) >= quiet, nearer, err
	})
	if err != nil {
		return nil, fmt.Errorf("%d of %d Instances are created: %w", created, count, err)
	}
	return found, nil
}

// isInstallation reports whether a request created an Instance: an apply that is answered with "created".
func isInstallation(e *audit.Entry) bool {
	return e.Is("instances", "") && e.ResponseStatus.Code == http.StatusCreated
}

// count counts requests by verb and resource, the most frequent ones first.
func (r *installsReport) count(entries []audit.Entry) {
	durations, failed := map[string][]time.Duration{}, map[string]int{}
	var first, last time.Time
	for i := range entries {
		e := &entries[i]
		name := strings.TrimSuffix(e.Verb+" "+e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		if e.Verb == "list" && e.ObjectRef.Namespace == "" {
			name += " of all namespaces"
		}
		durations[name] = append(durations[name], e.ResponseTime().Sub(e.RequestTime()))
		if !e.IsSuccess() {
			failed[name]++
		}
		if isInstallation(e) {
			r.Installed++
			if first.IsZero() || e.RequestTime().Before(first) {
				first = e.RequestTime()
			}
			if e.ResponseTime().After(last) {
				last = e.ResponseTime()
			}
		}
	}
	r.Seconds = last.Sub(first).Seconds()
	for _, name := range slices.Sorted(maps.Keys(durations)) {
		counted := requestCount{Request: name, Count: len(durations[name]), Failed: failed[name], Spread: spread.Of(durations[name])}
		for _, d := range durations[name] {
			counted.Seconds += d.Seconds()
		}
		r.Requests = append(r.Requests, counted)
	}
	slices.SortStableFunc(r.Requests, func(a, b requestCount) int { return cmp.Compare(b.Count, a.Count) })
}

// Print writes the report as a table.
func (r *installsReport) Print(out io.Writer) {
	fmt.Fprintf(out, "%d clusters × %d add-ons, ordered by versions: %t; %d Instances in %.1f s; CPU seconds: addon-manager %.1f",
		r.Clusters, r.AddOns, r.Ordered, r.Installed, r.Seconds, r.CPUSeconds)
	for _, name := range slices.Sorted(maps.Keys(r.CPUSecondsOf)) {
		fmt.Fprintf(out, ", %s %.1f", name, r.CPUSecondsOf[name])
	}
	fmt.Fprint(out, "\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "REQUEST\tCOUNT\tFAILED\tSECONDS\tP50 ms\tP99 ms\tMAX ms")
	for _, c := range r.Requests {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\n", c.Request, c.Count, c.Failed, c.Seconds, c.P50, c.P99, c.Max)
	}
	w.Flush()
}

// Violations returns an error unless each add-on was installed once.
func (r *installsReport) Violations() error {
	if want := r.Clusters * (r.AddOns - 1); r.Installed != want {
		return fmt.Errorf("%d Instances were created, want %d", r.Installed, want)
	}
	return nil
}
