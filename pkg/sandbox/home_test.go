package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOneSandboxForAHome(t *testing.T) {
	h := home(filepath.Join(t.TempDir(), "home"))
	if err := h.prepare(); err != nil {
		t.Fatal(err)
	}
	release, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.lock(); !errors.Is(err, errRunning) {
		t.Errorf("a second lock gave %v, want errRunning", err)
	}
	if err := Remove(string(h)); !errors.Is(err, errRunning) {
		t.Errorf("removing a home in use gave %v, want errRunning", err)
	}
	release()
	running, err := h.isRunning()
	if err != nil || running {
		t.Errorf("after the release running is %t, %v", running, err)
	}
}

func TestPrepareRefusesAFolderOfSomethingElse(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "thesis.txt"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := home(folder).prepare(); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("prepare gave %v, want an error that names the folder", err)
	}
}

func TestRemoveDeletesNothingButTheSandbox(t *testing.T) {
	h := home(filepath.Join(t.TempDir(), "home"))
	if err := h.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(h.cluster("cluster1").path("pki"), 0o700); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(string(h), "note.txt")
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Remove(string(h)); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(string(h))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || left[0].Name() != "note.txt" {
		t.Errorf("left are %v, want the note only", left)
	}
	if err := os.Remove(note); err != nil {
		t.Fatal(err)
	}
	if err := Remove(string(h)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(h)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the empty home is still there: %v", err)
	}
}

func TestFewerClustersThanTheDataHasAreRefused(t *testing.T) {
	h := home(t.TempDir())
	two := State{Clusters: []ClusterState{{Name: "hub"}, {Name: "cluster1"}, {Name: "cluster2"}}}
	if err := writeState(h, two); err != nil {
		t.Fatal(err)
	}
	for clusters, allowed := range map[int]bool{1: false, 2: true, 3: true} {
		if _, err := previousState(h, Options{Clusters: clusters}); (err == nil) != allowed {
			t.Errorf("%d clusters on data of two: %v", clusters, err)
		}
	}
}

func TestDataOfAHubWithOtherDefinitionsIsRefused(t *testing.T) {
	for had, asked := range map[string]string{"": "ocm", "ocm": ""} {
		h := home(t.TempDir())
		previous := State{OCM: had, Clusters: []ClusterState{{Name: "hub"}}}
		if err := writeState(h, previous); err != nil {
			t.Fatal(err)
		}
		if _, err := previousState(h, Options{OCM: asked}); err == nil || !strings.Contains(err.Error(), previous.ocmText()) {
			t.Errorf("data of a sandbox that %s: %v", previous.ocmText(), err)
		}
		if _, err := previousState(h, Options{OCM: had}); err != nil {
			t.Errorf("its own data: %v", err)
		}
	}
}
