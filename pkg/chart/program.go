package chart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// childArgument is the first argument of a program that renders one chart; the limits follow.
const childArgument = "render-chart"

// serves is set once this program serves as its own child. Otherwise, a child would do what the program does.
var serves atomic.Bool

// ServeChild renders or inspects a chart, and ends the program, if this is a process that a Renderer has started. Programs that use NewRenderer call it before
// anything else.
func ServeChild() {
	serves.Store(true)
	if len(os.Args) != 3 || os.Args[1] != childArgument {
		return
	}
	if err := Serve(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// processes has a value for each process that runs, at most two in a program; others wait.
var processes = make(chan struct{}, 2)

// NewRenderer returns a renderer with default limits whose processes run the program of this one.
func NewRenderer() (*Renderer, error) {
	if !serves.Load() {
		return nil, errors.New("this program cannot process charts: it does not call chart.ServeChild")
	}
	program, err := ownProgram()
	if err != nil {
		return nil, fmt.Errorf("finding the program that renders charts: %w", err)
	}
	return &Renderer{Command: []string{program, childArgument}, Limits: DefaultLimits(), slots: processes}, nil
}

// ownProgram returns the path of this program. On Linux the path also leads to it once another file has its name, as during an upgrade.
func ownProgram() (string, error) {
	const self = "/proc/self/exe"
	if _, err := os.Stat(self); err == nil {
		return self, nil
	}
	return os.Executable()
}
