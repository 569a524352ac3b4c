package plans

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/sandbox/port"
	"github.com/tandem-addons/tandem/test/faults/proxy"
)

// binaries is the folder of the programs built by `make build`.
const binaries = "../../../bin"

// program is one of Tandem's programs, connected to its API servers by proxies.
type program struct {
	name    string
	args    []string
	metrics string // HOST:PORT
	log     *os.File
	links   map[string]*proxy.Proxy // by the name of the API server

	// command is true if it runs only when it is called, to its end.
	command bool

	mutex   sync.Mutex
	running *process
}

// process is a running program, and ended is closed when it has ended.
type process struct {
	*exec.Cmd
	ended chan struct{}
	err   error // why it has ended
}

// newProgram starts a program. upstreams are its API servers by name, with its identity on each; each is passed as a flag with the path of a
// kubeconfig.
func newProgram(t *testing.T, w *world, name string, upstreams map[string]apiServer, args ...string) *program {
	t.Helper()
	reserved, err := port.Find()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reserved.Release)
	p := &program{name: name, metrics: reserved.Address(), args: append(args, "--metrics-bind-address="+reserved.Address(), "--metrics-insecure")}
	p.connect(t, w, upstreams)
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// newCommand returns a program that runs only when it is called. Other arguments are the same as of newProgram.
func newCommand(t *testing.T, w *world, name string, upstreams map[string]apiServer) *program {
	t.Helper()
	p := &program{name: name, command: true}
	p.connect(t, w, upstreams)
	return p
}

// connect creates the program's proxies and its log.
func (p *program) connect(t *testing.T, w *world, upstreams map[string]apiServer) {
	t.Helper()
	p.links = map[string]*proxy.Proxy{}
	for server, up := range upstreams {
		link, err := proxy.Start(up.config, func(written *proxy.Write) proxy.Fault { return w.decide(p, server, written) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(link.Stop)
		kubeconfig, err := link.Kubeconfig()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), server)
		if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
			t.Fatal(err)
		}
		p.links[server], p.args = link, append(p.args, "--"+up.flag+"="+file)
	}
	var err error
	if p.log, err = os.Create(filepath.Join(logs(), w.name+"-"+p.name+".log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(); _ = p.log.Close() })
}

// apiServer is an API server of a program, and the flag of the kubeconfig for it.
type apiServer struct {
	flag   string
	config *rest.Config
}

// start starts the program, unless it is a command.
func (p *program) start() error {
	if p.command {
		return nil
	}
	_, err := p.launch()
	return err
}

// launch starts the program with more arguments.
func (p *program) launch(more ...string) (*process, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	started := &process{Cmd: exec.Command(filepath.Join(binaries, p.name), slices.Concat(p.args, more)...), ended: make(chan struct{})}
	started.Stdout, started.Stderr = p.log, p.log
	if err := started.Start(); err != nil {
		return nil, fmt.Errorf("starting %s (`make build` builds it): %w", p.name, err)
	}
	go func() { started.err = started.Wait(); close(started.ended) }()
	p.running = started
	return started, p.guard(started.Process.Pid)
}

// call runs a command to its end.
func (p *program) call(arguments ...string) error {
	fmt.Fprintf(p.log, "=== %s\n", strings.Join(arguments, " "))
	started, err := p.launch(arguments...)
	if err != nil {
		return err
	}
	<-started.ended
	return started.err
}

// afterwards waits until the process $1 or $2 has exited, and kills $2.
const afterwards = `while kill -0 "$1" && kill -0 "$2"; do sleep 1; done 2>/dev/null; kill -9 "$2" 2>/dev/null`

// guard starts a process that kills the program after this process has exited, because a killed test cannot stop it.
func (p *program) guard(pid int) error {
	guard := exec.Command("sh", "-c", afterwards, "sh", strconv.Itoa(os.Getpid()), strconv.Itoa(pid))
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // signals for the test do not reach it
	if err := guard.Start(); err != nil {
		return fmt.Errorf("guarding %s: %w", p.name, err)
	}
	go func() { _ = guard.Wait() }() // it ends after the program
	return nil
}

// stop kills the program, and returns when the API servers have answered all of its writes.
func (p *program) stop() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.running == nil {
		return
	}
	_ = p.running.Process.Kill() // fails if it has ended
	<-p.running.ended
	p.running = nil
	for _, link := range p.links {
		link.AwaitWrites()
	}
}

// idle reports whether the program is connected, has neither sent a request nor received an answer or an event for a while, and has no work.
func (p *program) idle(ctx context.Context, while time.Duration) bool {
	if p.command {
		return true // it has ended
	}
	for _, link := range p.links {
		if !link.Idle(while) {
			return false
		}
	}
	text, err := p.fetchMetrics(ctx)
	return err == nil && !IsWorking(text)
}

// isConnected reports whether the program watches all of its API servers.
func (p *program) isConnected() bool {
	for _, link := range p.links {
		if link.Watches() == 0 {
			return false
		}
	}
	return true
}

// fetchMetrics returns the program's metrics.
func (p *program) fetchMetrics(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of %s: %w", p.name, err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", fmt.Errorf("reading the metrics of %s: %w", p.name, err)
	}
	return string(text), nil
}

// ofObjects are the gauges of add-ons and of package sources.
var ofObjects = []string{"addon_available{", "addon_dependency_unsatisfied{", "addon_rollout_unfinished{", "addon_package_source_failing{"}

// gauges returns the program's gauges of objects whose names begin with that of the run.
func (p *program) gauges(ctx context.Context, run string) (string, error) {
	if p.command {
		return "", nil
	}
	text, err := p.fetchMetrics(ctx)
	if err != nil {
		return "", err
	}
	var gauges []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, run) && slices.ContainsFunc(ofObjects, func(name string) bool { return strings.HasPrefix(line, name) }) {
			gauges = append(gauges, line)
		}
	}
	return strings.Join(gauges, ""), nil
}
