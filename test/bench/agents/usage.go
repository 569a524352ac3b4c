package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
)

// hubPrograms are the programs of the hub whose usage is measured.
var hubPrograms = []string{"kube-apiserver", "etcd", "kube-controller-manager", "addon-manager"}

// ocmPrograms are OCM's programs of the hub whose usage is measured too.
var ocmPrograms = []string{"ocm-placement", "ocm-addon-manager", "ocm-webhooks"}

// measuredPrograms lists the programs whose usage is measured on a hub with or without OCM.
func measuredPrograms(ocm bool) []string {
	if ocm {
		return slices.Concat(hubPrograms, ocmPrograms)
	}
	return hubPrograms
}

// ownProcess is the name of this process, in which all agents run.
const ownProcess = "agents"

// reading is the usage of a process since its start.
type reading struct {
	pid   int
	usage process.Usage
}

// usage is the usage of a program during a scenario.
type usage struct {
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakMemoryMB float64 `json:"peakMemoryMB"`
}

// sample returns the usage of the hub's programs and of this process. It waits for a program that is being restarted.
func (b *bench) sample(ctx context.Context) (map[string]reading, error) {
	samples := map[string]reading{}
	err := program.Until(ctx, "all programs of the hub run", func(context.Context) (bool, error) {
		for _, name := range measuredPrograms(b.ocm != "") {
			pid, err := b.Hub.PID(name)
			if err != nil {
				return false, nil
			}
			samples[name] = reading{pid: pid}
		}
		return true, nil
	})
	samples[ownProcess] = reading{pid: os.Getpid()}
	for name, s := range samples {
		if err == nil {
			s.usage, err = process.UsageOf(s.pid)
		}
		samples[name] = s
	}
	return samples, err
}

// clearPeaks resets the peak memory of all sampled processes.
func clearPeaks(samples map[string]reading) error {
	for _, s := range samples {
		if err := process.ClearPeak(s.pid); err != nil {
			return err
		}
	}
	return nil
}

// usageBetween returns the usage between two samples; of a program that was restarted meanwhile, since its last start.
func usageBetween(before, after map[string]reading) map[string]usage {
	between := map[string]usage{}
	for name, now := range after {
		spent := now.usage.CPU
		if before[name].pid == now.pid {
			spent -= before[name].usage.CPU
		}
		between[name] = usage{CPUSeconds: spent.Seconds(), PeakMemoryMB: now.usage.PeakMB()}
	}
	return between
}

// watches returns the number of open watches on the hub.
func (b *bench) watches(ctx context.Context) (int, error) {
	text, err := b.raw.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading the metrics of the hub's API server: %w", err)
	}
	return parseWatches(string(text))
}

// parseWatches sums the open watches in the API server's metrics.
func parseWatches(metrics string) (int, error) {
	open := 0
	for line := range strings.Lines(metrics) {
		if !strings.HasPrefix(line, "apiserver_longrunning_requests{") || !strings.Contains(line, `verb="WATCH"`) {
			continue
		}
		count, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), 64)
		if err != nil {
			return 0, fmt.Errorf("reading the number of watches: %w", err)
		}
		open += int(count)
	}
	return open, nil
}
