package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// home is the folder of a sandbox: state, kubeconfigs, and one folder per cluster.
type home string

func (h home) lockFile() string         { return filepath.Join(string(h), "lock") }
func (h home) stateFile() string        { return filepath.Join(string(h), "state.json") }
func (h home) logFile() string          { return filepath.Join(string(h), "sandbox.log") }
func (h home) kubeconfigFolder() string { return filepath.Join(string(h), "kubeconfig") }
func (h home) cluster(name string) clusterFolder {
	return clusterFolder(filepath.Join(string(h), name))
}

// kubeconfig returns the path of the administrator's kubeconfig for the cluster.
func (h home) kubeconfig(cluster string) string {
	return filepath.Join(h.kubeconfigFolder(), cluster+".kubeconfig")
}

// identity returns the path of another client's kubeconfig for a cluster, such as "cluster1-addon-agent-hub".
func (h home) identity(name string) string {
	return filepath.Join(h.kubeconfigFolder(), "identities", name+".kubeconfig")
}

// clusterFolder is the folder of one cluster in the home.
type clusterFolder string

func (c clusterFolder) path(name string) string { return filepath.Join(string(c), name) }
func (c clusterFolder) pki(name string) string  { return filepath.Join(string(c), "pki", name) }
func (c clusterFolder) log(program string) string {
	return filepath.Join(string(c), program+".log")
}

// hold returns the file that holds a program as long as it exists.
func (c clusterFolder) hold(program string) string {
	return filepath.Join(string(c), program+".hold")
}

// errRunning is returned if another process runs the sandbox of this home.
var errRunning = errors.New("a sandbox is running in this home")

// lock gives the calling process ownership of the sandbox of this home until release is called or the process ends. It returns errRunning
// if another process owns it. It retries briefly, because running takes the lock too.
func (h home) lock() (release func(), err error) {
	const tries = 10
	for range tries {
		if release, err = h.tryLock(); !errors.Is(err, errRunning) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return release, err
}

func (h home) tryLock() (release func(), err error) {
	file, err := os.OpenFile(h.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the sandbox: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errRunning
		}
		return nil, fmt.Errorf("locking %s: %w", h.lockFile(), err)
	}
	return func() { _ = file.Close() }, nil
}

// isRunning reports whether a process runs the sandbox of this home.
func (h home) isRunning() (bool, error) {
	if _, err := os.Stat(h.lockFile()); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	release, err := h.tryLock()
	if errors.Is(err, errRunning) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	release()
	return false, nil
}

// prepare creates the home and its lock file, which marks it. It rejects a folder with other content, because Down removes a home.
func (h home) prepare() error {
	entries, err := os.ReadDir(string(h))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the sandbox's home: %w", err)
	}
	if _, err := os.Stat(h.lockFile()); err != nil && len(entries) > 0 {
		return fmt.Errorf("the folder %q is not empty and not the home of a sandbox; set --home to an empty or a new folder",
			string(h))
	}
	if err := os.MkdirAll(filepath.Dir(h.identity("any")), 0o700); err != nil {
		return fmt.Errorf("creating the sandbox's home: %w", err)
	}
	mark, err := os.OpenFile(h.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("marking the sandbox's home: %w", err)
	}
	return mark.Close()
}

// remove deletes the files of sandboxes in the home, and the home itself if it is empty then.
func (h home) remove() error {
	clusters, err := filepath.Glob(filepath.Join(string(h), "*", "pki"))
	if err != nil {
		return fmt.Errorf("finding the sandbox's data: %w", err)
	}
	targets := []string{h.kubeconfigFolder(), h.stateFile(), h.logFile()}
	for _, keys := range clusters {
		targets = append(targets, filepath.Dir(keys))
	}
	for _, target := range append(targets, h.lockFile()) {
		if err := os.RemoveAll(target); err != nil {
			return fmt.Errorf("removing the sandbox's data: %w", err)
		}
	}
	if entries, err := os.ReadDir(string(h)); err == nil && len(entries) == 0 {
		return os.Remove(string(h))
	}
	return nil
}
