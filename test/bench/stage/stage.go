// Package stage runs whole programs for measurements: a sandbox of a hub and one managed cluster in a temporary folder, with administrator
// clients and the audit logs of both. It starts and stops its clusters.
package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
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
	options.Home, options.Clusters = filepath.Join(folder, "home"), 1
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

// enter creates the clients and opens the logs.
func (s *Stage) enter() error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kudo.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("registering API types: %w", err)
	}
	for name, side := range map[string]*Side{Hub: &s.Hub, Managed: &s.Managed} {
		var err error
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
