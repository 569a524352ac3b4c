package plans

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

	mutex   sync.Mutex
	running *exec.Cmd
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
	p := &program{name: name, metrics: reserved.Address(), args: append(args, "--metrics-bind-address="+reserved.Address()), links: map[string]*proxy.Proxy{}}
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
	if p.log, err = os.Create(filepath.Join(logs(), w.name+"-"+name+".log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(); _ = p.log.Close() })
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// apiServer is an API server of a program, and the flag of the kubeconfig for it.
type apiServer struct {
	flag   string
	config *rest.Config
}

// start starts the program.
func (p *program) start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	command := exec.Command(filepath.Join(binaries, p.name), p.args...)
	command.Stdout, command.Stderr = p.log, p.log
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting %s (`make build` builds it): %w", p.name, err)
	}
	p.running = command
	return p.guard(command.Process.Pid)
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
	_ = p.running.Wait()         // reports that it was killed
	p.running = nil
	for _, link := range p.links {
		link.Landed()
	}
}

// idle reports whether the program is connected, has neither sent a request nor received an answer or an event for a while, and has no work.
func (p *program) idle(ctx context.Context, while time.Duration) bool {
	for _, link := range p.links {
		if !link.Idle(while) {
			return false
		}
	}
	text, err := p.exposed(ctx)
	return err == nil && !Working(text)
}

// connected reports whether the program watches all of its API servers.
func (p *program) connected() bool {
	for _, link := range p.links {
		if link.Watches() == 0 {
			return false
		}
	}
	return true
}

// exposed returns the program's metrics.
func (p *program) exposed(ctx context.Context) (string, error) {
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

// gauges returns the program's gauges of add-ons whose names begin with that of the run.
func (p *program) gauges(ctx context.Context, run string) (string, error) {
	text, err := p.exposed(ctx)
	if err != nil {
		return "", err
	}
	var gauges []string
	for line := range strings.Lines(text) {
		gauge := strings.HasPrefix(line, "addon_available{") || strings.HasPrefix(line, "addon_dependency_unsatisfied{")
		if gauge && strings.Contains(line, run) {
			gauges = append(gauges, line)
		}
	}
	return strings.Join(gauges, ""), nil
}
