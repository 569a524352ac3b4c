package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// execute runs the root command in a temporary home and returns its output.
func execute(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := newCommand(&flags{})
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append(arguments, "--home", t.TempDir()))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestMistakesAreErrors(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"a command that does not exist":          {[]string{"frobnicate"}, `unknown command "frobnicate"`},
		"an argument that no command takes":      {[]string{"status", "cluster1"}, `unknown command "cluster1"`},
		"a flag that does not exist":             {[]string{"up", "--frobnicate"}, "unknown flag: --frobnicate"},
		"an output format that does not exist":   {[]string{"status", "-o", "yaml"}, `unknown output format "yaml"`},
		"the environment of a stopped sandbox":   {[]string{"env"}, "no sandbox is running in"},
		"an assets folder without the programs":  {[]string{"up", "--assets", ".", "--without-tandem"}, "does not contain etcd"},
		"delivery of agents without OCM":         {[]string{"up", "--deliver-agents"}, "requires both OCM and Tandem"},
		"a folder of images that does not exist": {[]string{"up", "--images", "nowhere", "--without-tandem"}, `folder of images "nowhere" not found`},
		"a number of clusters that is too large": {[]string{"up", "--clusters", "51", "--without-tandem"}, "invalid number of managed clusters 51"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := execute(t, test.arguments...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestOCMThatIsNotBuiltIsAnError(t *testing.T) {
	t.Setenv("TANDEM_OCM_ASSETS", "")
	t.Setenv("TANDEM_CACHE", t.TempDir())
	if _, err := execute(t, "up", "--ocm", "--without-tandem"); err == nil || !strings.Contains(err.Error(), "make ocm") {
		t.Errorf("the error is %v, want one that says how to build OCM", err)
	}
}

func TestHelpIsNoMistake(t *testing.T) {
	for _, arguments := range [][]string{nil, {"--help"}, {"down", "--help"}} {
		out, err := execute(t, arguments...)
		if err != nil || !strings.Contains(out, "Usage:") {
			t.Errorf("%q: %v\n%s", arguments, err, out)
		}
	}
}

func TestHelpTakesNoWordOfASentenceForAValue(t *testing.T) {
	out, err := execute(t, "down", "--help")
	if err != nil || !strings.Contains(out, "--keep   ") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestCallRepeatsWhatTheUserCalled(t *testing.T) {
	for home, want := range map[string]string{
		defaultHome: os.Args[0] + " down",
		"elsewhere": os.Args[0] + " down --home elsewhere",
	} {
		if got := (&flags{home: home}).call("down"); got != want {
			t.Errorf("home %s: got %q, want %q", home, got, want)
		}
	}
}
