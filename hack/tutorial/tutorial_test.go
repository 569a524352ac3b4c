package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded records a page in which ~ is replaced by `.
func recorded(t *testing.T, page string) (string, error) {
	t.Helper()
	sh, err := startShell()
	if err != nil {
		t.Fatal(err)
	}
	defer sh.close()
	got, err := record(strings.ReplaceAll(page, "~", "`"), sh, io.Discard)
	return strings.ReplaceAll(got, "`", "~"), err
}

func TestPagesHaveWhatTheirCommandsPrint(t *testing.T) {
	for sentence, test := range map[string]struct{ page, want string }{
		"no commands": {"# Title\n\n~~~go\ncode\n~~~\n", "# Title\n\n~~~go\ncode\n~~~\n"},
		"a first recording": {"Say:\n\n~~~sh\necho \"it's\"\n~~~\n\nThen go on.\n",
			"Say:\n\n~~~sh\necho \"it's\"\n~~~\n\n~~~text\nit's\n~~~\n\nThen go on.\n"},
		"another output than before":     {"~~~sh\necho new\n~~~\n\n~~~text\nold\nlines\n~~~\n\nGo on.\n", "~~~sh\necho new\n~~~\n\n~~~text\nnew\n~~~\n\nGo on.\n"},
		"an output no more":              {"~~~sh\ntrue\n~~~\n\n~~~text\nold\n~~~\n\nGo on.\n", "~~~sh\ntrue\n~~~\n\nGo on.\n"},
		"a shell that remembers":         {"~~~sh\nx=1\n~~~\n\n~~~sh\necho $x\n~~~", "~~~sh\nx=1\n~~~\n\n~~~sh\necho $x\n~~~\n\n~~~text\n1\n~~~"},
		"both streams, in order":         {"~~~sh\necho a; echo b >&2; echo c\n~~~", "~~~sh\necho a; echo b >&2; echo c\n~~~\n\n~~~text\na\nb\nc\n~~~"},
		"no newline in the end":          {"~~~sh\nprintf a\n~~~", "~~~sh\nprintf a\n~~~\n\n~~~text\na\n~~~"},
		"a failure that is meant":        {"~~~sh fails\necho no; false\n~~~", "~~~sh fails\necho no; false\n~~~\n\n~~~text\nno\n~~~"},
		"a failure that is handled":      {"~~~sh\nfalse || echo no; if false; then :; fi\n~~~", "~~~sh\nfalse || echo no; if false; then :; fi\n~~~\n\n~~~text\nno\n~~~"},
		"the last lines alone":           {"~~~sh tail=2\nprintf '1\\n2\\n3\\n'\n~~~", "~~~sh tail=2\nprintf '1\\n2\\n3\\n'\n~~~\n\n~~~text\n…\n2\n3\n~~~"},
		"fewer than the last lines":      {"~~~sh tail=2\necho 1\n~~~", "~~~sh tail=2\necho 1\n~~~\n\n~~~text\n1\n~~~"},
		"a file that is written":         {"~~~sh\ncat <<EOF\n$((1 + 1))\nEOF\n~~~", "~~~sh\ncat <<EOF\n$((1 + 1))\nEOF\n~~~\n\n~~~text\n2\n~~~"},
		"commands that read their input": {"~~~sh\ncat; echo end\n~~~", "~~~sh\ncat; echo end\n~~~\n\n~~~text\nend\n~~~"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := recorded(t, test.page)
			if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
				t.Fatal(err, diff)
			}
			again, err := recorded(t, got)
			if diff := cmp.Diff(got, again); err != nil || diff != "" {
				t.Error("the second recording differs:", err, diff)
			}
		})
	}
}

func TestPagesThatAreNotTrueAreRefused(t *testing.T) {
	for sentence, test := range map[string]struct{ page, want string }{
		"a command that fails":              {"Do:\n~~~sh\n(exit 3)\n~~~", "line 2: exit code 3"},
		"a command that fails, and another": {"Do:\n~~~sh\n(exit 3)\nfalse\ntrue\n~~~", "line 2: exit code 3"},
		"a command that does not":           {"~~~sh fails\ntrue\n~~~", "line 1: exit code 0"},
		"a block without an end":            {"~~~sh\ntrue\n", "line 1: unterminated block"},
		"an output without an end":          {"~~~sh\ntrue\n~~~\n\n~~~text\nold\n", "unterminated block"},
		"an unknown option":                 {"~~~sh quietly\ntrue\n~~~", `line 1: "quietly": must be fails or tail=N`},
		"a number that is none":             {"~~~sh tail=x\ntrue\n~~~", `line 1: "tail=x"`},
		"a shell that is ended":             {"~~~sh\nexit\n~~~", "line 1: reading the shell's output"},
		"commands that are no script":       {"~~~sh\nif\n~~~", "line 1: exit code"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := recorded(t, test.page); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestCheckSaysWhatIsNotTrue(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	const text = "```sh\necho 2\n```\n\n```text\n1\n```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	if err := run(page, true, &log); err == nil || !strings.Contains(log.String(), "\n-1\n+2\n") {
		t.Errorf("got %v: %s", err, &log)
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("the page was changed: %s, %v", got, err)
	}
	if err := run(page, false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := run(page, true, io.Discard); err != nil {
		t.Errorf("what was recorded is not true: %v", err)
	}
}

func TestOutputsOfTwoRunsAreTheSame(t *testing.T) {
	for sentence, test := range map[string]struct{ output, want string }{
		"times":                  {"[COMPLETE], last updated 2026-11-21T10:28:59Z", "[COMPLETE], last updated 2026-01-02T03:04:05Z"},
		"uids":                   {"uid 0b6ab2f1-4a6e-4f5c-9e1d-0a4b8f3c2d1e.", "uid 00000000-0000-0000-0000-000000000000."},
		"ages":                   {"NAME   AGE\nkafka  12s\nweb    2m3s", "NAME   AGE\nkafka  9s\nweb    9s"},
		"a column of ages":       {"update   12s    done\ndeploy   3s     done", "update   9s     done\ndeploy   9s     done"},
		"the start of a sandbox": {"The sandbox is ready after 14 s: a hub", "The sandbox is ready after 9 s: a hub"},
		"a timeout":              {"Step server, at most 10m0s: server", "Step server, at most 10m0s: server"},
		"a quantity":             {"CPU   string   250m   Memory", "CPU   string   250m   Memory"},
		"pods of a Deployment":   {"hello-6c9f7b5d8c-x2x4q   1/1", "hello-0123456789-abcde   1/1"},
		"a ReplicaSet":           {`ReplicaSet "web-5846779f47" has timed out`, `ReplicaSet "web-0123456789" has timed out`},
		"a leader":               {`leader "addon-manager-6567c78455-f9bjx_5903a715-ed9d-465e-82c1-00d1c"… renews`, `leader "addon-manager-0123456789-abcde_00000000-0000-0000-0000-00000"… renews`},
		"a running plan":         {"Running      70s so far   -", "Running      9s so far    -"},
		"pods of a StatefulSet":  {"kafka-0   1/1", "kafka-0   1/1"},
		"progress":               {"a\nkafka on cluster1: plan \"deploy\": IN_PROGRESS: 1 of 3\nb", "a\nb"},
		"what is waited for":     {"waiting for hello on cluster1: Removing\nwaiting: hello\ndeleted", "deleted"},
		"clusters side by side": {"a: x on cluster1\nb: y on cluster2\nb: y on cluster1\na: x on cluster1",
			"a: x on cluster1\nb: y on cluster1\nb: y on cluster2\na: x on cluster1"},
		"a sentence on a cluster": {"on cluster cluster1: zookeeper is missing", "on cluster cluster1: zookeeper is missing"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, stable(test.output)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
