package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/spread"
	users "github.com/tandem-addons/tandem/test/dashboard"
)

const (
	// loads is how often page Fleet is loaded; the median is reported.
	loads = 9
	// watched is how long the viewers of a fleet at rest are measured.
	watched = 20 * time.Second
)

// dashboardReport holds what the dashboard of a hub costs.
type dashboardReport struct {
	Clusters int `json:"clusters"`
	AddOns   int `json:"addons"`
	Viewers  int `json:"viewers"`
	Cores    int `json:"cores"`
	// ReadySeconds is the time from the start of the server until it has read the hub.
	ReadySeconds float64 `json:"readySeconds"`
	PageBytes    int     `json:"pageBytes"`
	// PaintMilliseconds is the time from the request of page Fleet to its first contentful paint in chromium.
	PaintMilliseconds spread.Range `json:"paintMilliseconds"`
	MemoryMB          float64      `json:"memoryMB"`
	PeakMemoryMB      float64      `json:"peakMemoryMB"`
	RestCPUPercent    float64      `json:"restCPUPercent"`
	Flip              flipViewed   `json:"flip"`
}

// flipViewed is what a change of an add-on on every cluster costs while viewers have page Fleet open.
type flipViewed struct {
	WriteSeconds float64 `json:"writeSeconds"`
	CPUSeconds   float64 `json:"cpuSeconds"`
	// Updates and Bytes are the most that one viewer has received; LateMilliseconds is from the end of the last write to the last update.
	Updates          int     `json:"updates"`
	Bytes            int     `json:"bytes"`
	LateMilliseconds float64 `json:"lateMilliseconds"`
}

// dashboard creates the fleet, without controllers, and measures `addon-manager ui` on it.
func (b *bench) dashboard(ctx context.Context) (_ program.Report, err error) {
	if err := b.populate(ctx); err != nil {
		return nil, err
	}
	if err := b.break10(ctx); err != nil {
		return nil, err
	}
	account, err := users.NewAccount(ctx, b.hub.admin, "tandem-bench-viewer", "", users.Reading)
	if err != nil {
		return nil, err
	}
	measured := &dashboardReport{Clusters: b.fleet.clusters, AddOns: b.fleet.addOns, Viewers: b.viewers, Cores: runtime.NumCPU()}
	s, err := b.startDashboard(ctx, measured)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.signIn(ctx, account.Token); err != nil {
		return nil, err
	}
	b.say("loading page Fleet %d times", loads)
	if err := s.paint(ctx, measured); err != nil {
		return nil, err
	}
	return measured, b.view(ctx, s, measured)
}

// break10 makes one add-on unavailable on every tenth cluster, another one each time.
func (b *bench) break10(ctx context.Context) error {
	for i := 3; i < b.fleet.clusters; i += 10 {
		if err := b.setAvailable(ctx, []string{addOnName(i / 10 % b.fleet.addOns)}, b.fleet.namespaces()[i:i+1], metav1.ConditionFalse); err != nil {
			return err
		}
	}
	return nil
}

// dashboardServer is a running `addon-manager ui`.
type dashboardServer struct {
	command *exec.Cmd
	address string
	session *http.Cookie
}

// startDashboard starts the server, and waits until it has read the hub.
func (b *bench) startDashboard(ctx context.Context, measured *dashboardReport) (*dashboardServer, error) {
	kubeconfig, err := b.hub.administrator(filepath.Join(b.folder, "administrator"))
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	command := exec.Command(b.program, "ui", "--read-only", "--kubeconfig="+kubeconfig, "--bind-address="+address)
	s := &dashboardServer{address: "http://" + address, command: command}
	s.command.Stderr = os.Stderr
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // only this process handles Ctrl-C
	began := time.Now()
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the dashboard: %w", err)
	}
	err = b.until(ctx, 10*time.Millisecond, func() (bool, bool, error) {
		response, err := http.Get(s.address + "/healthz")
		if err != nil {
			return false, false, nil
		}
		return response.StatusCode == http.StatusOK, false, response.Body.Close()
	})
	measured.ReadySeconds = time.Since(began).Seconds()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for the dashboard: %w", err), s.stop())
	}
	return s, nil
}

func (s *dashboardServer) stop() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping the dashboard: %w", err)
	}
	if err := s.command.Wait(); err != nil {
		return fmt.Errorf("stopping the dashboard: %w", err)
	}
	return nil
}

// signIn starts a session.
func (s *dashboardServer) signIn(ctx context.Context, token string) error {
	form := strings.NewReader(url.Values{"bearer": {token}}.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+"/session/enter", form)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("signing in: %w", err)
	}
	defer response.Body.Close()
	if len(response.Cookies()) != 1 {
		return fmt.Errorf("signing in: %s", response.Status)
	}
	s.session = response.Cookies()[0]
	return nil
}

// paint loads page Fleet in chromium.
func (s *dashboardServer) paint(ctx context.Context, measured *dashboardReport) error {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return fmt.Errorf("measuring the first paint: %w", err)
	}
	allocated, closing := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)...)
	defer closing()
	page, end := chromedp.NewContext(allocated)
	defer end()
	signedIn := chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.SetCookie, network.SetCookieParams{Name: s.session.Name, Value: s.session.Value, URL: s.address})
		return err
	})
	var times []float64
	for range loads {
		if err := chromedp.Do(page, signedIn, chromedp.Navigate(s.address+"/"), chromedp.WaitVisible(".matrix")); err != nil {
			return fmt.Errorf("loading page Fleet: %w", err)
		}
		found, err := chromedp.Run(page, chromedp.Evaluate[[]float64](firstPaint, chromedp.EvalAwaitPromise))
		if err != nil {
			return fmt.Errorf("reading the first paint: %w", err)
		}
		times, measured.PageBytes = append(times, found[0]), int(found[1])
	}
	measured.PaintMilliseconds = spread.Over(times)
	return nil
}

// firstPaint returns the time of the first contentful paint, and the size of the page.
const firstPaint = `new Promise((done) => new PerformanceObserver((list) =>
  done([list.getEntriesByName("first-contentful-paint")[0].startTime, performance.getEntriesByType("navigation")[0].decodedBodySize]))
  .observe({type: "paint", buffered: true}))`

// view measures the server while viewers have page Fleet open: at rest, and while the leaf changes on every cluster.
func (b *bench) view(ctx context.Context, s *dashboardServer, measured *dashboardReport) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	viewers := make([]*viewer, b.viewers)
	for i := range viewers {
		var err error
		if viewers[i], err = s.watch(ctx); err != nil {
			return err
		}
	}
	b.say("%d viewers at rest", b.viewers)
	pid := []int{s.command.Process.Pid}
	used, err := process.Measure(pid, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(watched):
			return nil
		}
	})
	if err != nil {
		return err
	}
	measured.RestCPUPercent, measured.MemoryMB = used[0].CPU.Seconds()/watched.Seconds()*100, float64(used[0].Resident)/(1<<20)
	b.say("%s changes on %d clusters", b.fleet.leaf(), b.fleet.clusters)
	began := time.Now()
	for _, v := range viewers {
		v.reset()
	}
	var written time.Time
	used, err = process.Measure(pid, func() error {
		if err := b.setAvailable(ctx, []string{b.fleet.leaf()}, b.fleet.namespaces(), metav1.ConditionFalse); err != nil {
			return err
		}
		written = time.Now()
		return b.until(ctx, poll, func() (bool, bool, error) {
			return time.Since(latest(viewers, written)) > quiet, true, nil
		})
	})
	if err != nil {
		return err
	}
	measured.PeakMemoryMB = used[0].PeakMB()
	measured.Flip = flipViewed{WriteSeconds: written.Sub(began).Seconds(), CPUSeconds: used[0].CPU.Seconds(),
		LateMilliseconds: float64(latest(viewers, written).Sub(written).Milliseconds())}
	for _, v := range viewers {
		v.lock.Lock()
		measured.Flip.Updates, measured.Flip.Bytes = max(measured.Flip.Updates, v.updates), max(measured.Flip.Bytes, v.bytes)
		v.lock.Unlock()
	}
	return nil
}

// viewer is an open stream of page Fleet, with what it has received.
type viewer struct {
	lock           sync.Mutex
	updates, bytes int
	last           time.Time
}

// latest returns the time of the last update of any viewer, or the given time if that is later.
func latest(viewers []*viewer, at time.Time) time.Time {
	for _, v := range viewers {
		v.lock.Lock()
		at = slices.MaxFunc([]time.Time{at, v.last}, time.Time.Compare)
		v.lock.Unlock()
	}
	return at
}

func (v *viewer) reset() {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.updates, v.bytes = 0, 0
}

func (v *viewer) receive(line string) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.bytes += len(line)
	if strings.HasPrefix(line, "event: change") {
		v.updates++
		v.last = time.Now()
	}
}

// watch opens the stream of page Fleet until the context ends.
func (s *dashboardServer) watch(ctx context.Context) (*viewer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	request.AddCookie(s.session)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("opening a stream: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("opening a stream: %s", response.Status), response.Body.Close())
	}
	v := &viewer{}
	go func() {
		defer response.Body.Close()
		for lines := bufio.NewReader(response.Body); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			v.receive(line)
		}
	}()
	return v, nil
}

// Print writes the report as a table.
func (r *dashboardReport) Print(out io.Writer) {
	fmt.Fprintf(out, "%d clusters × %d add-ons, %d viewers of page Fleet, %d cores\n\n", r.Clusters, r.AddOns, r.Viewers, r.Cores)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "server ready\t%.1f s\n", r.ReadySeconds)
	fmt.Fprintf(w, "page Fleet\t%d kB\n", r.PageBytes/1000)
	fmt.Fprintf(w, "first contentful paint\t%.0f ms (%.0f to %.0f)\n", r.PaintMilliseconds.Median, r.PaintMilliseconds.Min, r.PaintMilliseconds.Max)
	fmt.Fprintf(w, "memory\t%.0f MB\n", r.MemoryMB)
	fmt.Fprintf(w, "CPU at rest\t%.1f %% of a core\n", r.RestCPUPercent)
	fmt.Fprintf(w, "%d verdicts change\twritten in %.1f s\n", r.Clusters, r.Flip.WriteSeconds)
	fmt.Fprintf(w, "  CPU\t%.1f s\n", r.Flip.CPUSeconds)
	fmt.Fprintf(w, "  peak memory\t%.0f MB\n", r.PeakMemoryMB)
	fmt.Fprintf(w, "  per viewer\t%d updates, %d kB\n", r.Flip.Updates, r.Flip.Bytes/1000)
	fmt.Fprintf(w, "  last update\t%.0f ms after the last write\n", r.Flip.LateMilliseconds)
	w.Flush()
}

// Violations returns an error if viewers have not seen the change.
func (r *dashboardReport) Violations() error {
	if r.Flip.Updates == 0 {
		return errors.New("no viewer has received an update")
	}
	return nil
}
