package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-addons/tandem/test/bench/process"
)

// stopTimeout is how long addon-manager may take to exit before it is killed.
const stopTimeout = 20 * time.Second

// manager is a running addon-manager.
type manager struct {
	command *exec.Cmd
	// metrics and profiles are the URLs of its metrics and profiles.
	metrics, profiles string
	log               string
	started           time.Time
	// ended is closed when the process has exited; err is its result.
	ended chan struct{}
	err   error
}

// startManager starts the program with the arguments and a metrics server; its log is appended to a file.
func startManager(program, log string, arguments ...string) (*manager, error) {
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	profiles, err := freeAddress()
	if err != nil {
		return nil, err
	}
	output, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening addon-manager's log: %w", err)
	}
	defer output.Close() // the process has its own copy
	m := &manager{
		metrics: "http://" + metrics + "/metrics", profiles: "http://" + profiles + "/debug/pprof", log: log, ended: make(chan struct{}),
	}
	m.command = exec.Command(program, append(arguments, "--metrics-bind-address="+metrics, "--metrics-insecure", "--pprof-bind-address="+profiles)...)
	m.command.Stdout, m.command.Stderr = output, output
	m.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only this process handles Ctrl-C
	m.started = time.Now()
	if err := m.command.Start(); err != nil {
		return nil, fmt.Errorf("starting addon-manager: %w", err)
	}
	go func() {
		m.err = m.command.Wait()
		close(m.ended)
	}()
	return m, nil
}

// freeAddress returns an unused loopback address.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	return listener.Addr().String(), listener.Close()
}

// stop terminates addon-manager and waits for its exit.
func (m *manager) stop() error {
	if err := m.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping addon-manager: %w", err)
	}
	select {
	case <-m.ended:
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("addon-manager did not end within %s", stopTimeout), m.command.Process.Kill())
	}
	if m.err != nil {
		return fmt.Errorf("stopping addon-manager: %w", m.err)
	}
	return nil
}

// exitError returns an error with the end of its log if addon-manager has exited unexpectedly.
func (m *manager) exitError() error {
	select {
	case <-m.ended:
	default:
		return nil
	}
	text, err := os.ReadFile(m.log)
	if err != nil {
		text = []byte(err.Error())
	}
	return fmt.Errorf("addon-manager ended: %v; the end of its log:\n%s", m.err, text[max(0, len(text)-4000):])
}

func (m *manager) usage() (process.Usage, error) { return process.UsageOf(m.command.Process.Pid) }

// work is addon-manager's progress, according to its metrics.
type work struct {
	leads bool
	// queued counts objects that are queued or being reconciled; reconciled counts completed reconciliations.
	queued, reconciled float64
}

// idle reports whether every object was reconciled; addOns is the number of add-ons.
func (w work) idle(addOns int) bool {
	return w.leads && w.reconciled >= float64(addOns) && w.queued == 0
}

// progress reads addon-manager's progress.
func (m *manager) progress(ctx context.Context) (work, error) {
	text, err := fetch(ctx, m.metrics)
	if err != nil {
		return work{}, fmt.Errorf("reading addon-manager's metrics: %w", err)
	}
	return parseWork(bytes.NewReader(text))
}

// profile returns a profile of addon-manager's heap, after garbage is collected.
func (m *manager) profile(ctx context.Context) ([]byte, error) {
	text, err := fetch(ctx, m.profiles+"/heap?gc=1")
	if err != nil {
		return nil, fmt.Errorf("reading a profile of addon-manager: %w", err)
	}
	return text, nil
}

// fetch returns the body at a URL.
func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// parseWork parses metrics in Prometheus' text format.
func parseWork(text io.Reader) (work, error) {
	var w work
	for lines := bufio.NewScanner(text); ; {
		if !lines.Scan() {
			return w, lines.Err()
		}
		name, _, _ := strings.Cut(lines.Text(), "{")
		value, err := strconv.ParseFloat(lines.Text()[strings.LastIndexByte(lines.Text(), ' ')+1:], 64)
		if err != nil {
			continue // a comment
		}
		switch name {
		case "leader_election_master_status":
			w.leads = value == 1
		case "workqueue_depth", "addon_queue_backlog", "controller_runtime_active_workers":
			w.queued += value
		case "controller_runtime_reconcile_total":
			w.reconciled += value
		}
	}
}
