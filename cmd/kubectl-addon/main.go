// Command kubectl-addon is a kubectl plugin: installed in the PATH, it runs as `kubectl addon`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// version is set by the linker (see the Makefile).
var version = "devel"

func main() {
	chart.ServeChild()
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The library that follows the hub logs through controller-runtime, which prints a warning after 30 seconds if no logger is set.
	log.SetLogger(logr.Discard())
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	err := cli.New(streams, version).ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(terminal.Guard(os.Stderr), cli.ErrorText(err))
	}
	return cli.ExitCode(err)
}
