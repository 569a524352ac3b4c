// Package program is the frame of a benchmark: how it begins and ends, reads flags, does things side by side and saves its report. It
// touches no cluster.
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

	"golang.org/x/sync/errgroup"
)

// Main runs a benchmark with the command line, until it ends or is interrupted, and ends the process.
func Main(run func(ctx context.Context, arguments []string, out, progress io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Parse reads the flags. helped says that somebody wanted to know what they are, and no more.
func Parse(fs *flag.FlagSet, arguments []string) (helped bool, err error) {
	switch err := fs.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return true, nil
	case err != nil:
		return false, err
	case fs.NArg() > 0:
		return false, fmt.Errorf("unexpected argument %q: %s takes flags only", fs.Arg(0), fs.Name())
	}
	return false, nil
}

// Each does something for every item, most of them at a time at the most, or all where that is below zero. Once one has failed, no other
// is begun.
func Each[T any](ctx context.Context, most int, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(most)
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

// Save writes a report as JSON.
func Save(file string, report any) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the report: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
