package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// recipe is the version of the build recipe. Increment it when different flags or sources produce different programs from the same
// versions, so that cached programs are no longer used.
const recipe = 1

// installer installs programs into a folder of the cache.
type installer struct {
	programs []program
	source   string // the folder of the tool module. With a single module, go builds shared packages once
	cache    string
	platform string
	mirror   string        // URL of the released programs, or "off"
	bundle   string        // URL of a folder with the archives of all programs; empty for none
	stall    time.Duration // after which a server that sends nothing is not waited for
	interval time.Duration // between reports of progress
	log      func(format string, arguments ...any)
}

// install installs the programs of the given names and returns their folder.
func (i *installer) install(ctx context.Context, names []string) (string, error) {
	wanted, err := pick(i.programs, names)
	if err != nil {
		return "", err
	}
	goMod := filepath.Join(i.source, "go.mod")
	versions, err := versionsOf(goMod, i.programs)
	if err != nil {
		return "", err
	}
	folder, err := i.openFolder(goMod, versions[kubernetes])
	if err != nil {
		return "", err
	}
	unlock, err := i.lock(ctx, folder)
	if err != nil {
		return "", err
	}
	defer unlock()
	if missing := missingOf(wanted, folder); len(missing) > 0 {
		if err := i.add(ctx, missing, folder, versions); ctx.Err() != nil {
			return "", errors.New("interrupted; incomplete programs are removed")
		} else if err != nil {
			return "", err
		}
	}
	return folder, nil
}

// add downloads programs into the folder, and builds those that cannot be downloaded. Incomplete programs are in a folder of their own, which
// the next run removes if this one is killed.
func (i *installer) add(ctx context.Context, missing []program, folder string, versions map[string]string) (err error) {
	work := filepath.Join(folder, ".work")
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o755)); err != nil {
		return fmt.Errorf("creating a work folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	started := time.Now()
	if i.bundle != "" {
		if err := i.addBundle(ctx, missing, work, folder); err != nil && ctx.Err() == nil {
			i.log("the archive is not used: %v", err)
		}
		missing = missingOf(missing, folder)
	}
	if i.mirror != "off" && ctx.Err() == nil {
		i.download(ctx, missing, versions[kubernetes], work, folder)
		missing = missingOf(missing, folder)
	}
	if len(missing) > 0 && ctx.Err() == nil {
		if err := i.build(ctx, missing, versions, work, folder); err != nil {
			return fmt.Errorf("building %s: %w", strings.Join(namesOf(missing), ", "), err)
		}
	}
	i.log("complete after %s", time.Since(started).Round(time.Second))
	return nil
}

// openFolder creates the folder of these versions if it is not in the cache.
func (i *installer) openFolder(goMod, version string) (string, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return "", fmt.Errorf("reading the versions of programs: %w", err)
	}
	key := sha256.Sum256(fmt.Appendf(nil, "recipe %d for %s\n%s", recipe, i.platform, content))
	folder, err := filepath.Abs(filepath.Join(i.cache, fmt.Sprintf("controlplane-%s-%x", version, key[:6])))
	if err := errors.Join(err, os.MkdirAll(folder, 0o755)); err != nil {
		return "", fmt.Errorf("creating a folder in the cache: %w", err)
	}
	return folder, nil
}

// lock takes an exclusive lock on the folder, waiting for another run if necessary. The lock ends with the process.
func (i *installer) lock(ctx context.Context, folder string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the folder: %w", err)
	}
	for waiting := false; ; waiting = true {
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return func() { file.Close() }, nil
		} else if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", file.Name(), err), file.Close())
		}
		if !waiting {
			i.log("another run is in progress in %s, waiting for it", folder)
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, errors.Join(errors.New("interrupted while waiting for another run"), file.Close())
		}
	}
}

// missingOf returns the programs that the folder does not have.
func missingOf(programs []program, folder string) []program {
	var missing []program
	for _, p := range programs {
		if info, err := os.Stat(filepath.Join(folder, p.name)); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			missing = append(missing, p)
		}
	}
	return missing
}

// place moves a complete file to the program's final name.
func place(file, name string) error {
	if err := errors.Join(os.Chmod(file, 0o755), os.Rename(file, name)); err != nil {
		return fmt.Errorf("installing %s: %w", name, err)
	}
	return nil
}

// every calls report at each interval until stop is called.
func every(interval time.Duration, report func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(interval):
				report()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}
