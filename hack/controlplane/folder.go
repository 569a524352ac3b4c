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

// recipe is the number of the way in which programs are made from the modules. Raise it if other flags or other sources make other
// programs of the same versions, so that those in the cache are not used any more.
const recipe = 1

// workPattern is how the folders are called in which a run works. Nothing in them counts as a program.
const workPattern = ".work-*"

// pins are the versions of programs, by the modules that they come from, and the key of all that makes them what they are.
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

// openFolder makes the folder of these versions if the cache lacks it. Links to KUBEBUILDER_ASSETS go to a folder of their own, so that
// they do not outlive the variable.
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
		return "", fmt.Errorf("making a folder in the cache: %w", err)
	}
	return folder, nil
}

// lock lets one run at a time work in the folder, waits for another one, and removes what an interrupted one left.
func (g *getter) lock(ctx context.Context, folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the folder: %w", err)
	}
	err = flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		g.log.say("another run works in %s, waiting for it", folder)
		locked := make(chan error, 1)
		go func() { locked <- flock(file, syscall.LOCK_EX) }()
		select {
		case err = <-locked:
		case <-ctx.Done(): // what waits ends with the process
			return nil, errors.New("interrupted while another run was waited for")
		}
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("locking %s: %w", file.Name(), err)
	}
	left, _ := filepath.Glob(filepath.Join(folder, workPattern))
	for _, work := range left {
		if err := os.RemoveAll(work); err != nil {
			g.log.say("removing what an interrupted run left: %v", err)
		}
	}
	return func() { file.Close() }, nil
}

// flock locks a file, and tries again if a signal interrupts it.
func flock(file *os.File, how int) error {
	for {
		if err := syscall.Flock(int(file.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// link puts a link to a program into the folder, in place of what is there.
func link(program, name string) error {
	fresh := filepath.Join(filepath.Dir(name), ".link-"+filepath.Base(name))
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing what an interrupted run left: %w", err)
	}
	if err := os.Symlink(program, fresh); err != nil {
		return fmt.Errorf("linking %s: %w", program, err)
	}
	if err := os.Rename(fresh, name); err != nil {
		return fmt.Errorf("linking %s: %w", program, err)
	}
	return nil
}

// place makes a finished file of the working folder the program of that name.
func place(file, name string) error {
	if err := os.Chmod(file, 0o755); err != nil {
		return fmt.Errorf("making %s executable: %w", name, err)
	}
	if err := os.Rename(file, name); err != nil {
		return fmt.Errorf("putting %s in place: %w", name, err)
	}
	return nil
}

// isProgram tells whether a file can be run, itself or what it links to.
func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
