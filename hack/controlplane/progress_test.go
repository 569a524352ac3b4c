package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOutputOfGoIsCounted(t *testing.T) {
	o := &output{packages: map[string]bool{"fmt": true, "example.com/a": true, "example.com/b": true}}
	for _, part := range []string{"fmt\nexam", "ple.com/a\ngo: downloading example.com/c v1.0.0\n", "# example.com/b\nb.go:1:2: wrong\n", "exit"} {
		if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	if o.compiled != 2 || o.downloaded != 1 {
		t.Errorf("%d packages and %d modules", o.compiled, o.downloaded)
	}
	if diff := cmp.Diff("# example.com/b\nb.go:1:2: wrong\nexit", o.failure()); diff != "" {
		t.Errorf("the failure (-want +got):\n%s", diff)
	}
}

func TestOnlyTheEndOfALongFailureIsShown(t *testing.T) {
	o := &output{}
	for n := range 100 {
		fmt.Fprintf(o, "line %d\n", n)
	}
	lines := strings.Split(o.failure(), "\n")
	if len(lines) != tail || lines[tail-1] != "line 99" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestProgressIsSaidInWords(t *testing.T) {
	o := &output{packages: map[string]bool{}, compiled: 812, downloaded: 1234}
	for n := range 2310 {
		o.packages[fmt.Sprint(n)] = true
	}
	took := 90*time.Second + 300*time.Millisecond
	for want, got := range map[string]string{
		"1,234 Go modules downloaded (1m30s)": o.listing(took),
		"812 of at most 2,310 packages compiled (1m30s); not linked yet: kube-apiserver, kubectl": o.compiling([]string{"kube-apiserver", "kubectl"}, took),
		"812 of at most 2,310 packages compiled (1m30s)":                                              o.compiling(nil, took),
		"built kubectl, kwok in 1m30s: 812 packages compiled, 1,498 taken from Go's build cache":      o.built([]string{"kubectl", "kwok"}, took),
		"123 MB downloaded (1m30s); not complete yet: kubectl, kwok":                                  receiving(123_456_789, []string{"kubectl", "kwok"}, took),
	} {
		if got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestSummary(t *testing.T) {
	is := func(name, version string, from origin) *item {
		return &item{program: program{name: name}, version: version, from: from}
	}
	cost := costs{download: 12 * time.Second, build: 118 * time.Second, all: 131 * time.Second, bytes: 310_000_000}
	for name, test := range map[string]struct {
		items []*item
		want  string
	}{
		"nothing is said of what was there": {[]*item{is("etcd", "v3", fromCache), is("kwok", "v0", fromCache)}, ""},
		"one of each": {
			[]*item{is("a", "v1", fromCache), is("b", "v1", fromGiven), is("c", "v1", fromPath), is("d", "v1", fromRelease), is("e", "v1", fromRelease), is("f", "v1", fromModules)},
			"already installed: a; linked from KUBEBUILDER_ASSETS: b; linked from PATH: c; downloaded: d, e (310 MB in 12s); built: f (in 1m58s); 2m11s in total",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summary(test.items, cost); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestVersionsAreSaidOnce(t *testing.T) {
	items := []*item{
		{program: program{name: "etcd"}, version: "v3.6.16"}, {program: program{name: "kubectl"}, version: "v1.36.3"},
		{program: program{name: "kube-apiserver"}, version: "v1.36.3"},
	}
	if got, want := versioned(items), "etcd v3.6.16, kubectl, kube-apiserver v1.36.3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 12345: "12,345", 1234567: "1,234,567"} {
		if got := count(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
