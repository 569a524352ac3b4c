package main

import (
	"os"
	"testing"
)

func TestPagesAreKeptWithoutAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("README.md", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write("", nil); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat("README.md"); err != nil {
		t.Error(err)
	}
}
