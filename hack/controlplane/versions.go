package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// installVersion installs the programs of the given names with the Kubernetes version that a tool module in the folder of modules pins, such as
// 1.34, and returns their folder. The other programs are those of i, to which the folder has links. Without a version it is install.
func (i *installer) installVersion(ctx context.Context, modules, version string, names []string) (string, error) {
	if version == "" {
		return i.install(ctx, names)
	}
	source, err := findVersion(modules, version)
	if err != nil {
		return "", err
	}
	wanted, err := pick(i.programs, names)
	if err != nil {
		return "", err
	}
	own := slices.DeleteFunc(slices.Clone(wanted), isShared)
	if len(own) == 0 {
		return i.install(ctx, names)
	}
	pinned := *i
	pinned.source = source
	pinned.programs = slices.DeleteFunc(slices.Clone(i.programs), isShared)
	folder, err := pinned.install(ctx, namesOf(own))
	if err != nil {
		return "", err
	}
	shared := slices.DeleteFunc(wanted, func(p program) bool { return !isShared(p) })
	if len(shared) == 0 {
		return folder, nil
	}
	others, err := i.install(ctx, namesOf(shared))
	if err != nil {
		return "", err
	}
	return folder, link(shared, others, folder)
}

// isShared reports whether all versions of Kubernetes use the same version of a program.
func isShared(p program) bool { return p.module != kubernetes }

// findVersion returns the folder of the tool module that pins a version of Kubernetes.
func findVersion(modules, version string) (string, error) {
	entries, err := os.ReadDir(modules)
	if err != nil {
		return "", fmt.Errorf("reading the versions of Kubernetes: %w", err)
	}
	var known []string
	for _, entry := range entries {
		if entry.Name() == version {
			return filepath.Join(modules, version), nil
		}
		known = append(known, entry.Name())
	}
	return "", fmt.Errorf("TANDEM_KUBERNETES: %q is none of %s", version, strings.Join(known, ", "))
}

// link makes links to the programs in another folder. Another run may do the same.
func link(programs []program, from, folder string) error {
	for _, p := range programs {
		target, name := filepath.Join(from, p.name), filepath.Join(folder, p.name)
		if existing, err := os.Readlink(name); err == nil && existing == target {
			continue
		}
		temporary := fmt.Sprintf("%s.%d", name, os.Getpid())
		if err := errors.Join(os.Symlink(target, temporary), os.Rename(temporary, name)); err != nil {
			return fmt.Errorf("linking %s: %w", p.name, err)
		}
	}
	return nil
}
