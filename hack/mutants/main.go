// Command mutants measures what the tests are worth: it applies known mistakes to a temporary copy of the repository, one after the other,
// runs only the tests that should catch each, and prints a table. It fails if a mistake is not caught.
//
//	go run ./hack/mutants [-run REGEXP] [-folder test/faults/mutants]
//
// A mistake is a patch with a header:
//
//	Mistake: what a developer may get wrong, in one sentence
//	Test: the command that should fail, run by bash in the copy
//
// Specs require the programs of a control plane in KUBEBUILDER_ASSETS.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run applies the selected mutants one after the other, and prints the table.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	folder := flags.String("folder", "test/faults/mutants", "folder of the patches")
	which := flags.String("run", "", "regular expression that selects patches by name")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := regexp.Compile(*which)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	mutants, err := load(*folder)
	if err != nil {
		return err
	}
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !selected.MatchString(m.name) })
	if len(mutants) == 0 {
		return fmt.Errorf("no mutant in %s is selected", *folder)
	}
	dir, err := os.MkdirTemp("", "tandem-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyTo(ctx, dir); err != nil {
		return fmt.Errorf("copying the repository: %w", err)
	}
	return try(ctx, dir, mutants, out)
}

// try runs the tests without a mutant, which must pass, and then with each.
func try(ctx context.Context, dir string, mutants []mutant, out io.Writer) error {
	passed := map[string]bool{}
	for _, m := range mutants {
		if passed[m.test] {
			continue
		}
		if result := test(ctx, dir, m.test); result.failed {
			return fmt.Errorf("the tests fail without a mutant: %s\n%s", m.test, result.output)
		}
		passed[m.test] = true
	}
	width := len("MUTANT")
	for _, m := range mutants {
		width = max(width, len(m.name))
	}
	row := func(name, folder, seconds, by string) {
		fmt.Fprintf(out, "%-*s  %-18s  %7s  %s\n", width, name, folder, seconds, by)
	}
	row("MUTANT", "PACKAGE", "SECONDS", "CAUGHT BY")
	var missed []string
	for _, m := range mutants {
		result, err := m.try(ctx, dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", m.name, err)
		}
		if !result.failed {
			missed = append(missed, m.name)
		}
		row(m.name, strings.Join(m.packages, ", "), fmt.Sprintf("%.1f", result.took.Seconds()), result.caughtBy())
	}
	fmt.Fprintf(out, "%d of %d mutants are caught\n", len(mutants)-len(missed), len(mutants))
	if len(missed) > 0 {
		return fmt.Errorf("not caught: %s", strings.Join(missed, ", "))
	}
	return nil
}

// mutant is a patch that makes a mistake.
type mutant struct {
	name, mistake, test string
	packages            []string
	patch               []byte
}

// load reads all patches of a folder.
func load(folder string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, file := range files {
		patch, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(file), ".patch"), patch)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		mutants = append(mutants, m)
	}
	return mutants, nil
}

// changed matches the names of changed files in a patch.
var changed = regexp.MustCompile(`(?m)^\+\+\+ b/(.+)$`)

// parse reads the header of a patch.
func parse(name string, patch []byte) (mutant, error) {
	m := mutant{name: name, patch: patch}
	header, _, _ := bytes.Cut(patch, []byte("\n--- a/"))
	for line := range strings.Lines(string(header)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Mistake":
			m.mistake = value
		case "Test":
			m.test = value
		}
	}
	for _, file := range changed.FindAllStringSubmatch(string(patch), -1) {
		if folder := filepath.Dir(file[1]); !slices.Contains(m.packages, folder) {
			m.packages = append(m.packages, folder)
		}
	}
	switch {
	case m.mistake == "" || m.test == "":
		return m, errors.New(`the header requires the lines "Mistake: TEXT" and "Test: COMMAND"`)
	case len(m.packages) == 0:
		return m, errors.New("the patch changes no file")
	}
	return m, nil
}

// try applies the mutant, runs its test, and reverts it.
func (m mutant) try(ctx context.Context, dir string) (outcome, error) {
	if err := m.apply(ctx, dir); err != nil {
		return outcome{}, err
	}
	defer func() { _ = m.apply(context.WithoutCancel(ctx), dir, "--reverse") }()
	var folders []string
	for _, folder := range m.packages {
		folders = append(folders, "./"+folder)
	}
	if output, err := command(ctx, dir, "go", append([]string{"build"}, folders...)...).CombinedOutput(); err != nil {
		return outcome{}, fmt.Errorf("it does not compile: %w\n%s", err, output)
	}
	return test(ctx, dir, m.test), nil
}

func (m mutant) apply(ctx context.Context, dir string, options ...string) error {
	git := command(ctx, dir, "git", append([]string{"apply"}, options...)...)
	git.Stdin = bytes.NewReader(m.patch)
	if output, err := git.CombinedOutput(); err != nil {
		return fmt.Errorf("it does not apply, adapt it to the code: %w\n%s", err, output)
	}
	return nil
}

// outcome is the outcome of a test command.
type outcome struct {
	failed bool
	output []byte
	took   time.Duration
}

// test runs a test command.
func test(ctx context.Context, dir, line string) outcome {
	started := time.Now()
	output, err := command(ctx, dir, "bash", "-c", line).CombinedOutput()
	return outcome{failed: err != nil, output: output, took: time.Since(started)}
}

// failure matches the names of failed tests and specs.
var failure = regexp.MustCompile(`(?m)^\s*(?:--- FAIL: (\S+)|\[FAIL\] (.+))`)

// caughtBy returns the names of the tests that failed.
func (o outcome) caughtBy() string {
	if !o.failed {
		return "NOT CAUGHT"
	}
	var names []string
	for _, found := range failure.FindAllStringSubmatch(string(o.output), -1) {
		name := found[1] + found[2]
		if parent, _, sub := strings.Cut(name, "/"); sub && slices.Contains(names, parent) {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "a failure without a name"
	}
	return strings.Join(names, ", ")
}

// copyTo copies all files that git does not ignore.
func copyTo(ctx context.Context, dir string) error {
	listed, err := command(ctx, "", "git", "ls-files", "-co", "--exclude-standard", "-z").Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		content, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, content, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// command returns a command that ends, with all processes that it starts, when ctx does. It runs with the lowest priority.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "nice", append([]string{"-n", "19", name}, args...)...)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	return c
}
