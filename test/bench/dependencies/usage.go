package main

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tandem-addons/tandem/test/bench/process"
)

// benchmark is the name of this process.
const benchmark = "benchmark"

// usage is addon-manager's resource usage, and the CPU time of the other programs in the same time, by name.
type usage struct {
	process.Usage
	cpuOf map[string]time.Duration
}

// with returns the usage with more CPU time of other programs.
func (u usage) with(cpuOf map[string]time.Duration) usage {
	all := maps.Clone(u.cpuOf)
	if all == nil {
		all = map[string]time.Duration{}
	}
	for name, cpu := range cpuOf {
		all[name] += cpu
	}
	u.cpuOf = all
	return u
}

// seconds returns the CPU time of the other programs in seconds.
func (u usage) seconds() map[string]float64 {
	found := map[string]float64{}
	for name, cpu := range u.cpuOf {
		found[name] = cpu.Seconds()
	}
	return found
}

// measureUsage returns the usage during do.
func (b *bench) measureUsage(do func() error) (usage, error) {
	var used usage
	others, err := b.measureOthers(func() error {
		found, err := process.Measure([]int{b.manager.command.Process.Pid}, do)
		if err == nil {
			used.Usage = found[0]
		}
		return err
	})
	return used.with(others), err
}

// measureOthers returns the CPU time of the API server, of etcd and of this process during do.
func (b *bench) measureOthers(do func() error) (map[string]time.Duration, error) {
	programs, err := process.Children(os.Getpid())
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(programs, func(name string, _ int) bool { return !slices.Contains([]string{"kube-apiserver", "etcd"}, name) })
	programs[benchmark] = os.Getpid()
	names := slices.Collect(maps.Keys(programs))
	pids := make([]int, 0, len(names))
	for _, name := range names {
		pids = append(pids, programs[name])
	}
	used, err := process.Measure(pids, do)
	if err != nil {
		return nil, err
	}
	cpuOf := map[string]time.Duration{}
	for i, name := range names {
		cpuOf[name] = used[i].CPU
	}
	return cpuOf, nil
}
