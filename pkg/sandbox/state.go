package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Phase is where a sandbox is in its life.
type Phase string

// The phases of a sandbox. A sandbox that was killed leaves the phase that it had; Read tells such a one as Stopped.
const (
	Starting Phase = "Starting"
	Ready    Phase = "Ready"
	Failed   Phase = "Failed"
	Stopping Phase = "Stopping"
	Stopped  Phase = "Stopped"
)

// State is what a sandbox tells about itself, in memory and in its state file.
type State struct {
	// PID is the process that runs the sandbox.
	PID   int   `json:"pid"`
	Phase Phase `json:"phase"`
	// Error says why the sandbox Failed.
	Error string `json:"error,omitempty"`
	// Progress has one line for each stage of the start that was reached.
	Progress []string `json:"progress,omitempty"`
	// Assets is the folder with the control plane's programs.
	Assets string `json:"assets"`
	// Tandem is the folder with Tandem's programs; empty if the sandbox runs without them.
	Tandem string `json:"tandem,omitempty"`
	// OCM is the folder with OCM's programs; empty if the sandbox runs without them.
	OCM string `json:"ocm,omitempty"`
	// Images is the folder of images whose programs pods run; empty if they run none.
	Images string `json:"images,omitempty"`
	// DeliverAgents says that OCM brings Tandem's agents.
	DeliverAgents bool           `json:"deliverAgents,omitempty"`
	Clusters      []ClusterState `json:"clusters,omitempty"`
	// Ports are kept for the next start, by cluster and use.
	Ports map[string]int `json:"ports,omitempty"`
}

// ClusterState tells about one cluster; the first of a sandbox is the hub.
type ClusterState struct {
	Name       string         `json:"name"`
	Server     string         `json:"server"`
	Kubeconfig string         `json:"kubeconfig"`
	AuditLog   string         `json:"auditLog"`
	Processes  []ProcessState `json:"processes"`
}

// ProcessState tells about one program of a cluster.
type ProcessState struct {
	Name string `json:"name"`
	// PID is 0 while the program does not run.
	PID int `json:"pid,omitempty"`
	// Port is the loopback port that it serves on, if it does.
	Port int `json:"port,omitempty"`
	// Since is when it was last started.
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	// Held says that it does not run because StopProgram has ended it.
	Held bool   `json:"held,omitempty"`
	Log  string `json:"log"`
}

// readState reads the state file of a home; without one the state is zero, with Phase Stopped.
func readState(h home) (State, error) {
	data, err := os.ReadFile(h.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return State{Phase: Stopped}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("reading the sandbox's state: %w", err)
	}
	return decodeState(h.stateFile(), data)
}

// decodeState parses the content of a state file, which is named in the error.
func decodeState(file string, data []byte) (State, error) {
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		return State{}, fmt.Errorf("reading the sandbox's state in %s (remove that file to start anew): %w", file, err)
	}
	return state, nil
}

// writeState replaces the state file in one step, so that a reader never sees half of it.
func writeState(h home, state State) error {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the sandbox's state: %w", err)
	}
	next := h.stateFile() + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	if err := os.Rename(next, h.stateFile()); err != nil {
		return fmt.Errorf("writing the sandbox's state: %w", err)
	}
	return nil
}
