// Package process reads the resource usage of a process on this machine from /proc. It touches no cluster.
package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage is the resource usage of a process.
type Usage struct {
	CPU time.Duration
	// ChildrenCPU is the CPU time of children that have ended.
	ChildrenCPU time.Duration
	// Peak is the peak memory in bytes; Resident is the current memory.
	Peak, Resident int64
}

// PeakMB returns Peak in megabytes.
func (u Usage) PeakMB() float64 { return float64(u.Peak) / (1 << 20) }

// ClearPeak resets the peak memory of a process.
func ClearPeak(pid int) error {
	if err := os.WriteFile(file(pid, "clear_refs"), []byte("5"), 0); err != nil {
		return fmt.Errorf("beginning a new peak of a process's memory: %w", err)
	}
	return nil
}

// UsageOf returns the usage of a process since its start.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the CPU time of a process: %w", err)
	}
	status, err := os.ReadFile(file(pid, "status"))
	if err != nil {
		return Usage{}, fmt.Errorf("reading the memory of a process: %w", err)
	}
	return parse(string(stat), string(status))
}

// Measure returns the usage of processes during do, each with its peak memory in that time.
func Measure(pids []int, do func() error) ([]Usage, error) {
	before := make([]Usage, len(pids))
	for i, pid := range pids {
		if err := ClearPeak(pid); err != nil {
			return nil, err
		}
		var err error
		if before[i], err = UsageOf(pid); err != nil {
			return nil, err
		}
	}
	if err := do(); err != nil {
		return nil, err
	}
	used := make([]Usage, len(pids))
	for i, pid := range pids {
		var err error
		if used[i], err = UsageOf(pid); err != nil {
			return nil, err
		}
		used[i].CPU -= before[i].CPU
		used[i].ChildrenCPU -= before[i].ChildrenCPU
	}
	return used, nil
}

// Children returns the processes that a process has started, by the names of their programs, which Linux shortens to 15 bytes.
func Children(pid int) (map[string]int, error) {
	found := map[string]int{}
	err := eachChild(pid, func(name string, child int) { found[name] = child })
	return found, err
}

// Resident returns the current memory in bytes of a process and of the processes that it has started.
func Resident(pid int) (int64, error) {
	used, err := UsageOf(pid)
	if err != nil {
		return 0, err
	}
	all := used.Resident
	err = eachChild(pid, func(_ string, child int) {
		used, _ := UsageOf(child) // zero if the process has ended meanwhile
		all += used.Resident
	})
	return all, err
}

// eachChild calls do for each process that a process has started.
func eachChild(pid int, do func(name string, child int)) error {
	folders, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return fmt.Errorf("listing processes: %w", err)
	}
	for _, folder := range folders {
		stat, err := os.ReadFile(folder)
		if err != nil {
			continue // the process has ended meanwhile
		}
		if name, child, parent, ok := parseParent(string(stat)); ok && parent == pid {
			do(name, child)
		}
	}
	return nil
}

// parseParent parses the beginning of /proc/PID/stat: the number, the program's name in parentheses, the state, and the parent's number.
func parseParent(stat string) (name string, pid, parent int, ok bool) {
	from, to := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if from < 0 || to < from {
		return "", 0, 0, false
	}
	if _, err := fmt.Sscan(stat[:from], &pid); err != nil {
		return "", 0, 0, false
	}
	var state string
	_, err := fmt.Sscan(stat[to+1:], &state, &parent)
	return stat[from+1 : to], pid, parent, err == nil
}

func file(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// tick is the unit of times in /proc: 1/100 s on every architecture that Go knows.
const tick = 10 * time.Millisecond

// parse parses /proc/PID/stat and /proc/PID/status (man 5 proc).
func parse(stat, status string) (Usage, error) {
	var used Usage
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // after the program's name, which may contain any characters
	if len(fields) < 15 {
		return used, fmt.Errorf("reading CPU time: %q has too few fields", stat)
	}
	for i, into := range []*time.Duration{&used.CPU, &used.CPU, &used.ChildrenCPU, &used.ChildrenCPU} { // utime, stime, cutime, cstime
		ticks, err := strconv.ParseInt(fields[11+i], 10, 64)
		if err != nil {
			return used, fmt.Errorf("reading CPU time: %w", err)
		}
		*into += time.Duration(ticks) * tick
	}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		into := map[string]*int64{"VmHWM": &used.Peak, "VmRSS": &used.Resident}[name]
		if into == nil {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return used, fmt.Errorf("reading memory: %w", err)
		}
		*into = kilobytes << 10
	}
	return used, nil
}
