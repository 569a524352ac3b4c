package stage

import (
	"os"
	"path"

	"github.com/tandem-addons/tandem/test/bench/process"
)

// benchmark is the name of this process.
const benchmark = "benchmark"

// CPU is the CPU time in seconds of the programs of both clusters with their children that have ended, as CLUSTER/PROGRAM, and of this process.
type CPU map[string]float64

// Total returns the CPU time of all programs except for this process.
func (c CPU) Total() float64 {
	total := 0.0
	for name, seconds := range c {
		if name != benchmark {
			total += seconds
		}
	}
	return total
}

// MeasureCPU returns the CPU time of each program during do.
func (s *Stage) MeasureCPU(do func() error) (CPU, error) {
	before, err := s.cpuTimes()
	if err != nil {
		return nil, err
	}
	if err := do(); err != nil {
		return nil, err
	}
	used, err := s.cpuTimes()
	for name := range used {
		used[name] -= before[name]
	}
	return used, err
}

// cpuTimes returns the CPU time of each program since its start.
func (s *Stage) cpuTimes() (CPU, error) {
	pids := map[string]int{benchmark: os.Getpid()}
	for _, side := range []Side{s.Hub, s.Managed} {
		for _, p := range side.State().Processes {
			if p.PID != 0 {
				pids[path.Join(side.Name(), p.Name)] = p.PID
			}
		}
	}
	spent := CPU{}
	for name, pid := range pids {
		usage, err := process.UsageOf(pid)
		if err != nil {
			return nil, err
		}
		spent[name] = usage.CPU.Seconds()
		if name != benchmark {
			spent[name] += usage.ChildrenCPU.Seconds()
		}
	}
	return spent, nil
}
