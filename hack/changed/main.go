// Command changed prints the packages whose tests depend on files changed since a git revision, including uncommitted changes. `make
// test-changed` tests these packages. It runs git and go list, and does not connect to a cluster.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	base := flag.String("base", "HEAD", "git revision to compare with")
	flag.Parse()
	if err := run(os.Stdout, *base); err != nil {
		log.Fatalf("changed: %v", err)
	}
}

// run prints the packages to test, one per line. The working directory must be the root of the module.
func run(out io.Writer, base string) error {
	files, err := changedFiles(base)
	if err != nil {
		return err
	}
	packages, err := listPackages()
	if err != nil {
		return err
	}
	for _, p := range affected(files, packages) {
		if _, err := fmt.Fprintln(out, p); err != nil {
			return err
		}
	}
	return nil
}

// changedFiles returns the paths that differ from base, including deleted files and files that git does not track yet.
func changedFiles(base string) ([]string, error) {
	changed, err := output("git", "diff", "--name-only", "--no-renames", base)
	if err != nil {
		return nil, fmt.Errorf("comparing the working tree with %q: %w", base, err)
	}
	untracked, err := output("git", "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, fmt.Errorf("listing untracked files: %w", err)
	}
	return strings.Fields(changed + untracked), nil
}

// listPackages reads the packages of the module, with the dependencies of their tests.
func listPackages() ([]goPackage, error) {
	module, err := output("go", "list", "-m")
	if err != nil {
		return nil, fmt.Errorf("reading the module's name: %w", err)
	}
	listed, err := output("go", "list", "-test", "-json=ImportPath,ForTest,Deps,TestGoFiles,XTestGoFiles,Dir", "./...")
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	decoder := json.NewDecoder(strings.NewReader(listed))
	var all []listing
	for {
		var l listing
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("parsing the list of packages: %w", err)
		}
		all = append(all, l)
	}
	return packagesOf(strings.TrimSpace(module), all, func(file string) (string, error) {
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil // deleted since go list ran
		}
		return string(content), err
	})
}

// output runs a program and returns what it prints on standard output.
func output(program string, arguments ...string) (string, error) {
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	printed, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", filepath.Base(program), strings.Join(arguments, " "), err)
	}
	return string(printed), nil
}
