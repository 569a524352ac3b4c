package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// recipe is the version of the build recipe. Increment it when different flags or sources produce different programs from the same
// versions, so that cached programs are no longer used.
const recipe = 1

// workPattern matches the working folders of runs. Files in them do not count as programs.
const workPattern = ".work-*"

// pins holds the versions of programs by module, and the cache key of everything that determines the programs.
type pins struct {
	versions map[string]string
	key      string
}

// readPins reads the go.mod of the tool module.
func (g *getter) readPins() (pins, error) {
	file := filepath.Join(g.source, "go.mod")
	content, err := os.ReadFile(file)
	if err != nil {
		return pins{}, fmt.Errorf("reading the versions of programs: %w", err)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "recipe %d for %s\n%s", recipe, g.on, content))
	found := pins{versions: map[string]string{}, key: fmt.Sprintf("%x", key[:6])}
	for _, p := range g.programs {
		version, err := requiredVersion(string(content), p.pin)
		if err != nil {
			return pins{}, fmt.Errorf("reading the version of %s in %s: %w", p.name, file, err)
		}
		found.versions[p.pin] = version
	}
	return found, nil
}

// openFolder creates the folder of these versions if it is not in the cache. Links to KUBEBUILDER_ASSETS are created in a separate folder,
// so that they are not used after the variable is unset.
func (g *getter) openFolder(pins pins) (string, error) {
	name := "controlplane-" + pins.versions[kubernetesPin] + "-" + pins.key
	if g.given != "" {
		given, err := filepath.Abs(g.given)
		if err != nil {
			return "", fmt.Errorf("finding KUBEBUILDER_ASSETS: %w", err)
		}
		name += fmt.Sprintf("-%x", sha256.Sum256([]byte(given)))[:13]
	}
	folder, err := filepath.Abs(filepath.Join(g.cache, name))
	if err != nil {
		return "", fmt.Errorf("finding the cache: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("creating a folder in the cache: %w", err)
	}
	return folder, nil
}

// lock takes an exclusive lock on the folder, waiting for another run if necessary, and removes files left by an interrupted run.
func (g *getter) lock(ctx context.Context, folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the folder: %w", err)
	}
	err = flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		g.log.say("another run is in progress in %s, waiting for it", folder)
		locked := make(chan error, 1)
		go func() { locked <- flock(file, syscall.LOCK_EX) }()
		select {
		case err = <-locked:
		case <-ctx.Done(): // the waiting goroutine ends with the process
			return nil, errors.New("interrupted while waiting for another run")
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	left, _ := filepath.Glob(filepath.Join(folder, workPattern))
	for _, work := range left {
		if err := os.RemoveAll(work); err != nil {
			g.log.say("removing the files of an interrupted run: %v", err)
		}
	}
	return func() { file.Close() }, nil
}

// flock locks a file, and retries if a signal interrupts it.
func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// link creates or replaces the folder's link to a program.
func link(program, name string) error {
	fresh := filepath.Join(filepath.Dir(name), ".link-"+filepath.Base(name))
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the files of an interrupted run: %w", err)
	}
	if err := os.Symlink(program, fresh); err != nil {
		return fmt.Errorf("linking %s: %w", program, err)
	}
	if err := os.Rename(fresh, name); err != nil {
		return fmt.Errorf("linking %s: %w", program, err)
	}
	return nil
}

// place moves a finished file from the working folder to the program's final name.
func place(file, name string) error {
	if err := os.Chmod(file, 0o755); err != nil {
		return fmt.Errorf("making %s executable: %w", name, err)
	}
	if err := os.Rename(file, name); err != nil {
		return fmt.Errorf("installing %s: %w", name, err)
	}
	return nil
}

// isProgram reports whether the file, or its link target, is executable.
func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
