// Package clitest has helpers for the tests of the command-line packages: golden files and factories.
package clitest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

var update = flag.Bool("update", false, "write testdata/*.golden instead of comparing with it")

// testdata is the path of pkg/cli/testdata, valid also after a test changes its working directory.
var testdata, errTestdata = findTestdata()

// findTestdata finds the folder from pkg/cli and its subfolders.
func findTestdata() (string, error) {
	if _, err := os.Stat("testdata"); err == nil {
		return filepath.Abs("testdata")
	}
	return filepath.Abs("../testdata")
}

// Golden compares got with testdata/NAME.golden.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	if errTestdata != nil {
		t.Fatal(errTestdata)
	}
	file := filepath.Join(testdata, name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// StreamsOf returns streams with the typed text as input, which discard all output.
func StreamsOf(typed string) genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: bytes.NewBufferString(typed), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
}

// ErrorText returns the message of an error; empty for nil.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
