// Package stage runs whole programs for measurements: a sandbox of a hub and one managed cluster in a temporary folder, with administrator
// clients and the audit logs of both. It starts and stops its clusters.
package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
)

// The names of both clusters in the sandbox; the managed cluster's name is also its namespace on the hub.
const (
	Hub     = "hub"
	Managed = "cluster1"
)

// Side is one of the two clusters.
type Side struct {
	*sandbox.Cluster
	// Client is the administrator's client.
	client.Client
	// Log is the audit log of the API server.
	Log *audit.Log
}

// Stage is a running sandbox.
type Stage struct {
	Hub, Managed Side

	box    *sandbox.Sandbox
	folder string
}

// Start starts a sandbox with the options; the stage sets its home and its number of clusters.
func Start(ctx context.Context, options sandbox.Options) (*Stage, error) {
	folder, err := os.MkdirTemp("", "tandem-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	options.Home, options.Clusters = home(folder), 1
	box, err := sandbox.Start(ctx, options)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	s := &Stage{box: box, folder: folder}
	if err := s.enter(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// home returns the folder of the sandbox.
func home(folder string) string { return filepath.Join(folder, "home") }

// StopProgram stops a program of a cluster until StartProgram is called.
func (s *Stage) StopProgram(ctx context.Context, cluster, name string) error {
	return sandbox.StopProgram(ctx, home(s.folder), cluster, name)
}

// StartProgram starts a stopped program.
func (s *Stage) StartProgram(ctx context.Context, cluster, name string) error {
	return sandbox.StartProgram(ctx, home(s.folder), cluster, name)
}

// enter creates the clients and opens the logs.
func (s *Stage) enter() error {
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	for name, side := range map[string]*Side{Hub: &s.Hub, Managed: &s.Managed} {
		side.Cluster = s.box.Cluster(name)
		if side.Client, err = client.New(side.Config(), client.Options{Scheme: scheme}); err != nil {
			return fmt.Errorf("connecting to %s: %w", name, err)
		}
		if side.Log, err = audit.Open(side.AuditLog()); err != nil {
			return err
		}
	}
	return nil
}

// Close stops everything and deletes the folder.
func (s *Stage) Close() error {
	s.box.Stop()
	var failed error
	for _, log := range []*audit.Log{s.Hub.Log, s.Managed.Log} {
		if log != nil {
			failed = errors.Join(failed, log.Close())
		}
	}
	return errors.Join(failed, os.RemoveAll(s.folder))
}

// PID returns the process ID of a program on the cluster.
func (s Side) PID(program string) (int, error) {
	for _, p := range s.State().Processes {
		if p.Name == program && p.PID != 0 {
			return p.PID, nil
		}
	}
	return 0, fmt.Errorf("%s of %s does not run", program, s.Name())
}
