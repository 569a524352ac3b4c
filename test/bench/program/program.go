// Package program is the main loop of a benchmark: it parses flags, prints progress, waits, runs functions concurrently, and prints and
// saves the report. It touches no cluster.
package program

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Benchmark is a measurement configured by flags.
type Benchmark interface {
	// Bind adds the flags, and Check validates them.
	Bind(fs *flag.FlagSet)
	Check() error
	// Measure runs the benchmark and writes its progress. After an error, the report has what was measured before; it is nil if nothing was.
	Measure(ctx context.Context, progress io.Writer) (Report, error)
}

// Report is the result of a benchmark. It can be encoded as JSON.
type Report interface {
	Print(out io.Writer)
	// Violations returns the violated invariants. Speed is not an invariant.
	Violations() error
}

// Main runs a benchmark with the command line, until it ends or is interrupted, and exits.
func Main(b Benchmark) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, b, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, b Benchmark, arguments []string, out, progress io.Writer) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(progress)
	b.Bind(fs)
	file := fs.String("out", "", "file to write the report to, as JSON")
	switch err := fs.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case fs.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: %s takes flags only", fs.Arg(0), fs.Name())
	}
	if err := b.Check(); err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	measured, err := b.Measure(ctx, progress)
	if measured == nil {
		return err
	}
	measured.Print(out)
	return errors.Join(err, save(*file, measured), measured.Violations())
}

// Progress returns a function that prints progress, in lines that begin with the seconds since the call.
func Progress(out io.Writer) (say func(format string, arguments ...any)) {
	began := time.Now()
	return func(format string, arguments ...any) {
		fmt.Fprintf(out, "bench: %5.0fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, arguments...))
	}
}

const (
	// poll is the polling interval of waits. Of the measured times, only that of a removal depends on it.
	poll = 100 * time.Millisecond
	// waitTimeout is the timeout of waits.
	waitTimeout = 10 * time.Minute
)

// Until waits for a condition, described by done.
func Until(ctx context.Context, done string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, poll, waitTimeout, true, condition); err != nil {
		return fmt.Errorf("waiting until %s: %w", done, err)
	}
	return nil
}

// Each calls do for every item, with at most the given concurrency, or with all items at once if it is negative. After an error it starts
// no further calls.
func Each[T any](ctx context.Context, limit int, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(limit)
	for _, item := range items {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return do(ctx, item)
		})
	}
	return group.Wait()
}

// save writes a report as JSON, if a file is given.
func save(file string, report Report) error {
	if file == "" {
		return nil
	}
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
