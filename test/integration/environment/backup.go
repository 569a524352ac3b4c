package environment

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Restorable makes an environment keep its data in a folder, for Backup and Restore. The caller deletes the folder afterwards.
func Restorable(folder string) func(*envtest.Environment) {
	return func(server *envtest.Environment) {
		server.ControlPlane.Etcd.DataDir = filepath.Join(folder, "etcd")
		api := server.ControlPlane.GetAPIServer()
		api.CertDir = folder
		// By default it waits a minute for the clients to end their watches.
		api.Configure().Set("shutdown-watch-termination-grace-period", "1s")
	}
}

// Backup copies the API server's data to a folder, which it replaces. etcd stops in the meantime.
func (e *Environment) Backup(to string) error {
	if err := e.server.ControlPlane.Etcd.Stop(); err != nil {
		return fmt.Errorf("backing up: %w", err)
	}
	if err := replace(to, e.server.ControlPlane.Etcd.DataDir); err != nil {
		return fmt.Errorf("backing up: %w", err)
	}
	return e.renewWatchdog(e.server.ControlPlane.Etcd.Start())
}

// Restore replaces the API server's data by a copy of a backup, as if it had been the last: resource versions continue from there. The API
// server and etcd stop in the meantime.
func (e *Environment) Restore(from string) error {
	programs := &e.server.ControlPlane
	if err := programs.APIServer.Stop(); err != nil {
		return fmt.Errorf("restoring: %w", err)
	}
	if err := programs.Etcd.Stop(); err != nil {
		return fmt.Errorf("restoring: %w", err)
	}
	if err := replace(programs.Etcd.DataDir, from); err != nil {
		return fmt.Errorf("restoring: %w", err)
	}
	if err := programs.Etcd.Start(); err != nil {
		return fmt.Errorf("restoring: %w", err)
	}
	return e.renewWatchdog(programs.APIServer.Start())
}

// renewWatchdog renews the watchdog after programs were started again.
func (e *Environment) renewWatchdog(err error) error {
	if err != nil {
		return fmt.Errorf("starting again: %w", err)
	}
	if err := callOff(e.watchdog); err != nil {
		return err
	}
	e.watchdog, err = watch()
	return err
}

// replace replaces a folder by a copy of another one.
func replace(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}
