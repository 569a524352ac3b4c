package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// commandRuns is how often each command runs; the median counts.
const commandRuns = 5

// What a command should need on 1,000 clusters × 20 add-ons, on two cores that the API server works on too.
const (
	targetSeconds  = 2.0
	targetMemoryMB = 300.0
)

// commandResult is what a command came to: the median of the times, the least CPU time and the most memory of its process.
type commandResult struct {
	command      string
	seconds      float64
	cpuSeconds   float64
	peakMemoryMB float64
	lines        int
}

// measureCommands makes the fleet, which nobody judges, and runs the plugin's commands on it.
func measureCommands(ctx context.Context, s settings, out, progress io.Writer) error {
	return onHub(ctx, s, progress, func(b *bench) error {
		if err := b.populate(ctx); err != nil {
			return err
		}
		kubeconfig, err := b.hub.administrator(filepath.Join(b.folder, "administrator"))
		if err != nil {
			return err
		}
		var results []commandResult
		for _, arguments := range [][]string{
			{"fleet"}, {"fleet", "-o", "wide"}, {"get"}, {"get", addOnName(0)}, {"dependents", addOnName(0)},
			{"tree", "--cluster", b.fleet.namespaces()[0]}, {"why", b.fleet.leaf(), "--cluster", b.fleet.namespaces()[0]},
		} {
			b.say("kubectl addon %s", strings.Join(arguments, " "))
			r, err := runCommand(ctx, s.plugin, append(arguments, "--kubeconfig", kubeconfig, "--cache-dir", b.folder))
			if err != nil {
				return err
			}
			r.command = strings.Join(arguments, " ")
			results = append(results, r)
		}
		return printCommands(out, s.fleet, results)
	})
}

// administrator makes a user who may do everything, with the kubeconfig in a file.
func (h *hub) administrator(file string) (string, error) {
	user, err := h.server.AddUser("tandem-bench-administrator", "system:masters")
	if err != nil {
		return "", err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("making the administrator's kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the administrator's kubeconfig: %w", err)
	}
	return file, nil
}

func runCommand(ctx context.Context, program string, arguments []string) (commandResult, error) {
	var r commandResult
	var times []time.Duration
	for range commandRuns {
		var out, problems bytes.Buffer
		command := exec.CommandContext(ctx, program, arguments...)
		command.Stdout, command.Stderr = &out, &problems
		began := time.Now()
		if err := command.Run(); err != nil {
			return r, fmt.Errorf("running %s: %w", command, errors.Join(err, errors.New(problems.String())))
		}
		times = append(times, time.Since(began))
		used := (command.ProcessState.UserTime() + command.ProcessState.SystemTime()).Seconds()
		if r.cpuSeconds == 0 || used < r.cpuSeconds {
			r.cpuSeconds = used
		}
		if memory, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.peakMemoryMB = max(r.peakMemoryMB, megabytes(memory.Maxrss<<10)) // Linux counts in KiB
		}
		r.lines = bytes.Count(out.Bytes(), []byte("\n"))
	}
	slices.Sort(times)
	r.seconds = times[commandRuns/2].Seconds()
	return r, nil
}

func printCommands(out io.Writer, f fleet, results []commandResult) error {
	fmt.Fprintf(out, "%d clusters × %d add-ons; each command %d times\n\n", f.clusters, f.addOns, commandRuns)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "COMMAND\tMEDIAN s\tCPU s\tPEAK MB\tLINES\tTARGET")
	for _, r := range results {
		reached := "reached"
		if r.seconds > targetSeconds || r.peakMemoryMB > targetMemoryMB {
			reached = "missed"
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.0f\t%d\t%s\n", r.command, r.seconds, r.cpuSeconds, r.peakMemoryMB, r.lines, reached)
	}
	return w.Flush()
}
