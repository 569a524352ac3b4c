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

	"github.com/tandem-addons/tandem/test/bench/program"
)

// commandRuns is the number of runs of each command; the median is reported.
const commandRuns = 5

// Targets of a command on 1,000 clusters × 20 add-ons, on two cores shared with the API server.
const (
	targetSeconds  = 2.0
	targetMemoryMB = 300.0
)

// commandsReport holds the results of the plugin's commands.
type commandsReport struct {
	Clusters int             `json:"clusters"`
	AddOns   int             `json:"addons"`
	Commands []commandResult `json:"commands"`
}

// commandResult is the result of a command: the median time, and the least CPU time and the most memory of its process.
type commandResult struct {
	Command      string  `json:"command"`
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakMemoryMB float64 `json:"peakMemoryMB"`
	Lines        int     `json:"lines"`
}

// commands creates the fleet, without addon-manager, and runs the plugin's commands on it.
func (b *bench) commands(ctx context.Context) (program.Report, error) {
	if err := b.populate(ctx); err != nil {
		return nil, err
	}
	stored, err := versionsOf(examplePackage)
	if err != nil {
		return nil, err
	}
	if err := b.store(ctx, stored); err != nil {
		return nil, err
	}
	repository, err := b.publish(stored)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := b.hub.administrator(filepath.Join(b.folder, "administrator"))
	if err != nil {
		return nil, err
	}
	measured := &commandsReport{Clusters: b.fleet.clusters, AddOns: b.fleet.addOns}
	for _, arguments := range [][]string{
		{"fleet"}, {"fleet", "-o", "wide"}, {"get"}, {"get", addOnName(0)}, {"dependents", addOnName(0)},
		{"tree", "--cluster", b.fleet.namespaces()[0]}, {"why", b.fleet.leaf(), "--cluster", b.fleet.namespaces()[0]},
		{"package", "list"}, {"package", "list", "--repository", repository}, {"package", "show", stored[0].Spec.Operator.Name},
	} {
		b.say("kubectl addon %s", strings.Join(arguments, " "))
		r, err := runCommand(ctx, b.plugin, append(arguments, "--kubeconfig", kubeconfig, "--cache-dir", b.folder))
		if err != nil {
			return nil, err
		}
		r.Command = strings.ReplaceAll(strings.Join(arguments, " "), repository, "DIR")
		measured.Commands = append(measured.Commands, r)
	}
	return measured, nil
}

// administrator creates a user with all permissions and writes its kubeconfig to a file.
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
		if r.CPUSeconds == 0 || used < r.CPUSeconds {
			r.CPUSeconds = used
		}
		if memory, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
			r.PeakMemoryMB = max(r.PeakMemoryMB, float64(memory.Maxrss)/(1<<10)) // Linux reports KiB
		}
		r.Lines = bytes.Count(out.Bytes(), []byte("\n"))
	}
	slices.Sort(times)
	r.Seconds = times[commandRuns/2].Seconds()
	return r, nil
}

// Print writes the report as a table.
func (c *commandsReport) Print(out io.Writer) {
	fmt.Fprintf(out, "%d clusters × %d add-ons; %d versions of a package; each command %d times\n\n",
		c.Clusters, c.AddOns, versionsStored, commandRuns)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "COMMAND\tMEDIAN s\tCPU s\tPEAK MB\tLINES\tTARGET")
	for _, r := range c.Commands {
		reached := "reached"
		if r.Seconds > targetSeconds || r.PeakMemoryMB > targetMemoryMB {
			reached = "missed"
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.0f\t%d\t%s\n", r.Command, r.Seconds, r.CPUSeconds, r.PeakMemoryMB, r.Lines, reached)
	}
	w.Flush()
}

// Violations returns nil: a failed command has no report.
func (c *commandsReport) Violations() error { return nil }
