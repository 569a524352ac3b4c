package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func testState() State {
	return State{
		PID: 10, Phase: Ready, Assets: "/assets", Ports: map[string]int{"hub/etcd": 20001},
		Clusters: []ClusterState{
			{
				Name: "hub", Server: "https://127.0.0.1:20002", Kubeconfig: "/home/kubeconfig/hub.kubeconfig", AuditLog: "/a",
				Processes: []ProcessState{{
					Name: "etcd", PID: 11, Port: 20001, Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Log: "/home/hub/etcd.log",
				}},
			},
			{
				Name: "cluster1", Kubeconfig: "/home/kubeconfig/cluster1.kubeconfig",
				Processes: []ProcessState{{Name: "kwok", Restarts: 2, Log: "/home/cluster1/kwok.log"}},
			},
		},
	}
}

func TestStateSurvivesItsFile(t *testing.T) {
	h := home(t.TempDir())
	if err := writeState(h, testState()); err != nil {
		t.Fatal(err)
	}
	got, err := readState(h)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(testState(), got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestStateOfAnEmptyHomeIsStopped(t *testing.T) {
	got, err := readState(home(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(State{Phase: Stopped}, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

func TestReadReportsAKilledSandbox(t *testing.T) {
	h := home(t.TempDir())
	if err := h.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := writeState(h, testState()); err != nil {
		t.Fatal(err)
	}
	got, err := Read(string(h))
	if err != nil {
		t.Fatal(err)
	}
	if got.Phase != Stopped {
		t.Errorf("no process holds the lock, and the phase is %s", got.Phase)
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add([]byte(`{"pid": 1, "phase": "Ready", "clusters": [{"name": "hub"}]}`))
	f.Add([]byte(`{"pid": "one"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := decodeState("state.json", data); err != nil && !strings.Contains(err.Error(), "state.json") {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}

func TestWriteTable(t *testing.T) {
	var table strings.Builder
	if err := WriteTable(&table, testState(), time.Date(2026, 3, 1, 12, 1, 30, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := `sandbox: Ready (process 10)
CLUSTER   PROGRAM  PID  PORT   UP     RESTARTS  LOG
hub       etcd     11   20001  1m30s  0         /home/hub/etcd.log
cluster1  kwok     -    -      down   2         /home/cluster1/kwok.log
`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestWriteTableOfASandboxThatFailed(t *testing.T) {
	var table strings.Builder
	if err := WriteTable(&table, State{Phase: Failed, Error: "etcd keeps ending"}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("sandbox: Failed\netcd keeps ending\n", table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestEnvironment(t *testing.T) {
	want := `export KUBECONFIG='/home/kubeconfig/hub.kubeconfig:/home/kubeconfig/cluster1.kubeconfig'
export PATH='/it'\''s here:/assets':"$PATH"
`
	if diff := cmp.Diff(want, Environment(testState(), "/it's here")); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
