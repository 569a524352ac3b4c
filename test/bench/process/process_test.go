package process

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	const stat = "42 (addon) manager) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 100 25 20 0 9 0 1 1 1\n"
	const status = "Name:\taddon-manager\nVmPeak:\t  999 kB\nVmHWM:\t   65536 kB\nVmRSS:\t    2048 kB\nThreads:\t9\n"
	got, err := parse(stat, status)
	if err != nil {
		t.Fatal(err)
	}
	want := Usage{CPU: 3 * time.Second, ChildrenCPU: 1250 * time.Millisecond, Peak: 64 << 20, Resident: 2 << 20}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := parse("42 (x) S 1", status); err == nil {
		t.Error("a line that ends too soon is accepted")
	}
}

func TestMeasure(t *testing.T) {
	used, err := Measure([]int{os.Getpid()}, func() error {
		before, err := UsageOf(os.Getpid())
		for now := before; err == nil && now.CPU == before.CPU; { // reading uses enough CPU time
			now, err = UsageOf(os.Getpid())
		}
		return err
	})
	if err != nil || len(used) != 1 {
		t.Fatalf("used %v, error %v", used, err)
	}
	whole, err := UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if used[0].CPU <= 0 || used[0].CPU > whole.CPU || used[0].Peak <= 0 {
		t.Errorf("used %+v meanwhile, and %+v in all", used[0], whole)
	}
	broken := errors.New("broken")
	if _, err := Measure(nil, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestChildren(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = child.Process.Kill(), child.Wait() }()
	got, err := Children(os.Getpid())
	if err != nil || got["sleep"] != child.Process.Pid {
		t.Errorf("children %v, error %v, want sleep with %d", got, err, child.Process.Pid)
	}
	alone, err := UsageOf(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if both, err := Resident(os.Getpid()); err != nil || alone.Resident <= 0 || both <= alone.Resident {
		t.Errorf("%d bytes of both, error %v, %d of the child", both, err, alone.Resident)
	}
}

func TestParseParent(t *testing.T) {
	type parent struct {
		Name        string
		PID, Parent int
		OK          bool
	}
	for stat, want := range map[string]parent{
		"42 (addon) manager) S 7 42 42 0": {"addon) manager", 42, 7, true},
		"42 addon-manager S 7":            {},
		"42 (addon-manager)":              {Name: "addon-manager", PID: 42},
	} {
		var got parent
		if got.Name, got.PID, got.Parent, got.OK = parseParent(stat); got != want {
			t.Errorf("%q: %+v, want %+v", stat, got, want)
		}
	}
}
