package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// Phase is the phase of a sandbox's life cycle.
type Phase string

// The phases of a sandbox. A killed sandbox leaves its last phase in the state file; Read reports it as Stopped.
const (
	Starting Phase = "Starting"
	Ready    Phase = "Ready"
	Failed   Phase = "Failed"
	Stopping Phase = "Stopping"
	Stopped  Phase = "Stopped"
)

// State is the state of a sandbox, in memory and in its state file.
type State struct {
	// PID is the process that runs the sandbox.
	PID   int   `json:"pid"`
	Phase Phase `json:"phase"`
	// Error is the reason of phase Failed.
	Error string `json:"error,omitempty"`
	// Progress has one line for each stage of the start that was reached.
	Progress []string `json:"progress,omitempty"`
	// Assets is the folder of the control plane programs.
	Assets string `json:"assets"`
	// Tandem is the folder of Tandem's programs; empty if the sandbox runs without them.
	Tandem string `json:"tandem,omitempty"`
	// OCM is the folder of OCM's programs; empty if the sandbox runs without them.
	OCM string `json:"ocm,omitempty"`
	// Images is the folder of images with programs for pods; empty if pods run no programs.
	Images string `json:"images,omitempty"`
	// DeliverAgents is set if OCM delivers Tandem's agents.
	DeliverAgents bool           `json:"deliverAgents,omitempty"`
	Clusters      []ClusterState `json:"clusters,omitempty"`
	// Ports are kept for the next start, by cluster and use.
	Ports map[string]int `json:"ports,omitempty"`
}

// ClusterState is the state of one cluster; the first of a sandbox is the hub.
type ClusterState struct {
	Name       string         `json:"name"`
	Server     string         `json:"server"`
	Kubeconfig string         `json:"kubeconfig"`
	AuditLog   string         `json:"auditLog"`
	Processes  []ProcessState `json:"processes"`
}

// ProcessState is the state of one program of a cluster.
type ProcessState struct {
	Name string `json:"name"`
	// PID is 0 while the program is not running.
	PID int `json:"pid,omitempty"`
	// Port is the loopback port that it serves on, if any.
	Port int `json:"port,omitempty"`
	// Since is the time of the last start.
	Since    time.Time `json:"since"`
	Restarts int       `json:"restarts"`
	// Held is set if it was stopped by StopProgram.
	Held bool   `json:"held,omitempty"`
	Log  string `json:"log"`
}

// readState reads the state file of a home. Without one it returns a zero state with Phase Stopped.
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

// decodeState parses the content of a state file; the file is named in errors.
func decodeState(file string, data []byte) (State, error) {
	var state State
	if err := json.Unmarshal(data, &state); err != nil {
		return State{}, fmt.Errorf("reading the sandbox's state in %s (delete the file to start over): %w", file, err)
	}
	return state, nil
}

// writeState replaces the state file atomically.
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
