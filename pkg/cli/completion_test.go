package cli

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestArgumentsOf(t *testing.T) {
	for use, want := range map[string][]string{
		"list":                           nil,
		"tree [ADDON] --cluster CLUSTER": {"ADDON"},
		"run NAME PLAN --cluster C":      {"NAME", "PLAN"},
		"diff FROM TO":                   {"FROM", "TO"},
		"drift [NAME...] [--cluster C]":  {"NAME"},
	} {
		if diff := cmp.Diff(want, argumentsOf(&cobra.Command{Use: use})); diff != "" {
			t.Errorf("%s: %s", use, diff)
		}
	}
}

func TestCompletionWithoutTheHub(t *testing.T) {
	for sentence, test := range map[string]struct{ words, want string }{
		"folders and tarballs are files":        {"package verify ", ":0\n"},
		"a path is a file":                      {"package show ./", ":0\n"},
		"a folder for a new package":            {"package new web ", ":16\n"},
		"formats":                               {"package show web -o ", "table\nwide\nname\njson\nyaml\n:4\n"},
		"nothing more than there are arguments": {"package diff a b ", ":4\n"},
		"commands":                              {"package sho", "show\n:4\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, code := run(append([]string{"__completeNoDesc"}, strings.Split(test.words, " ")...)...)
			choices, _, _ := strings.Cut(output, "Completion ended")
			if code != ExitOK || choices != test.want {
				t.Errorf("exit code %d, got %q, want %q", code, choices, test.want)
			}
		})
	}
}

// TestCompletionOfASilentHub uses a hub that accepts connections and never responds.
func TestCompletionOfASilentHub(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	ended := make(chan string, 1)
	go func() {
		output, _ := run("__completeNoDesc", "dependents", "--server", "http://"+listener.Addr().String(), "--cache-dir", t.TempDir(), "")
		ended <- output
	}()
	select {
	case output := <-ended:
		if !strings.HasPrefix(output, ":4\n") {
			t.Errorf("got %q", output)
		}
	case <-time.After(30 * completionTimeout):
		t.Error("it waits for ever")
	}
}
