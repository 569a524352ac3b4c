package sourcing

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// newSource returns a source of a range of versions.
func newSource(change ...func(*kudo.PackageSource)) *kudo.PackageSource {
	s := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1", Generation: 3}}
	s.Spec.Package = &kudo.SourcePackage{Reference: "oci://registry.example.com/packages/web", Version: ">=1.0.0"}
	for _, c := range change {
		c(s)
	}
	return s
}

func newStored(version string) Outcome {
	return Outcome{Artifact: &kudo.SourceArtifact{
		Reference: "oci://registry.example.com/packages/web:" + version + "@sha256:1", Version: version, OperatorVersion: "web-" + version,
	}}
}

func newFailed(reason, version, message string) Outcome {
	return Outcome{Failure: &Failure{Reason: reason, Version: version, Err: errors.New(message)}}
}

func TestStatusAfterAttempts(t *testing.T) {
	const suspended = "suspended"
	for sentence, test := range map[string]struct {
		outcomes []Outcome
		suspend  bool
		// want is the status, reason and message of Ready, whether it is stalled, and the refused versions.
		want string
	}{
		"a version is stored": {outcomes: []Outcome{newStored("1.0.0")},
			want: "True Stored OperatorVersion web-1.0.0 is stored, from oci://registry.example.com/packages/web:1.0.0@sha256:1"},
		"a failure to read is not final, and keeps what is stored": {
			outcomes: []Outcome{newStored("1.0.0"), newFailed(kudo.ReasonPullFailed, "", "connecting to h: refused")},
			want:     "False PullFailed connecting to h: refused web-1.0.0"},
		"an unsigned version is final, and refused": {outcomes: []Outcome{newStored("1.0.0"), newFailed(kudo.ReasonVerificationFailed, "1.1.0", "it has no signature")},
			want: "False VerificationFailed version 1.1.0: it has no signature web-1.0.0 stalled 1.1.0"},
		"a version that is stored after all is no longer refused": {
			outcomes: []Outcome{newFailed(kudo.ReasonVerificationFailed, "1.1.0", "a"), newStored("1.1.0")},
			want:     "True Stored OperatorVersion web-1.1.0 is stored, from oci://registry.example.com/packages/web:1.1.0@sha256:1 web-1.1.0"},
		"a lower version names the higher one, which is gone": {outcomes: []Outcome{newStored("1.2.0"), newStored("1.1.0")},
			want: "True Stored OperatorVersion web-1.1.0 is stored, from oci://registry.example.com/packages/web:1.1.0@sha256:1; version 1.2.0, which was stored before, is no longer there"},
		"and still does after the next attempt": {outcomes: []Outcome{newStored("1.2.0"), newStored("1.1.0"), newStored("1.1.0")},
			want: "True Stored OperatorVersion web-1.1.0 is stored, from oci://registry.example.com/packages/web:1.1.0@sha256:1; version 1.2.0, which was stored before, is no longer there"},
		"but not once a higher one is stored": {outcomes: []Outcome{newStored("1.2.0"), newStored("1.1.0"), newStored("1.3.0")},
			want: "True Stored OperatorVersion web-1.3.0 is stored, from oci://registry.example.com/packages/web:1.3.0@sha256:1"},
		"the port of a connection does not make a message another one": {
			outcomes: []Outcome{newFailed(kudo.ReasonPullFailed, "", "read udp 10.0.0.5:41234->10.0.0.1:53: i/o timeout")},
			want:     "False PullFailed read udp 10.0.0.1:53: i/o timeout"},
		"control characters are visible": {outcomes: []Outcome{newFailed(kudo.ReasonPullFailed, "", "\x1b[31m")}, want: `False PullFailed ^[[31m`},
		"a suspended source keeps its status": {outcomes: []Outcome{newStored("1.0.0")}, suspend: true,
			want: "True Suspended suspended by spec.suspend; the last attempt that succeeded: OperatorVersion web-1.0.0 is stored, from oci://registry.example.com/packages/web:1.0.0@sha256:1"},
		suspended: {suspend: true, want: "Unknown Suspended suspended by spec.suspend; nothing was stored"},
	} {
		t.Run(sentence, func(t *testing.T) {
			source := newSource()
			for _, outcome := range test.outcomes {
				source.Status = Status(source, outcome)
			}
			if test.suspend {
				source.Status = Suspended(source)
			}
			got := summary(source.Status)
			if !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if len(test.outcomes) == 0 || test.suspend {
				return
			}
			again := Status(source, test.outcomes[len(test.outcomes)-1])
			if diff := cmp.Diff(source.Status, again); diff != "" {
				t.Errorf("the same outcome changes the status:\n%s", diff)
			}
		})
	}
}

// summary returns the parts of a status that a table compares.
func summary(status kudo.PackageSourceStatus) string {
	ready := meta.FindStatusCondition(status.Conditions, kudo.ConditionReady)
	parts := []string{string(ready.Status), ready.Reason, ready.Message}
	if status.Artifact != nil {
		parts = append(parts, status.Artifact.OperatorVersion)
	}
	if meta.IsStatusConditionTrue(status.Conditions, kudo.ConditionStalled) {
		parts = append(parts, "stalled")
	}
	for _, r := range status.Refused {
		parts = append(parts, r.Version)
	}
	return strings.Join(parts, " ")
}

func TestRefusedVersionsAreBounded(t *testing.T) {
	source := newSource()
	for i := range 30 {
		source.Status = Status(source, newFailed(kudo.ReasonInvalidPackage, fmt.Sprintf("1.%d.0", i%15), strings.Repeat("é", 5000)))
	}
	if got := len(source.Status.Refused); got != maxRefused {
		t.Errorf("%d versions", got)
	}
	if first := source.Status.Refused[0]; first.Version != "1.14.0" || len(first.Message) > maxRefusedMessage {
		t.Errorf("got %s with %d bytes", first.Version, len(first.Message))
	}
	source.Generation++
	if next := Status(source, newStored("2.0.0")); len(next.Refused) > 0 || next.ObservedGeneration != source.Generation {
		t.Errorf("a changed spec keeps %v", next.Refused)
	}
}

func TestNothingIsMutated(t *testing.T) {
	source := newSource()
	source.Status = Status(source, newFailed(kudo.ReasonInvalidPackage, "1.0.0", "a"))
	before, outcome := source.DeepCopy(), newStored("0.9.0")
	Status(source, newFailed(kudo.ReasonInvalidPackage, "1.1.0", "b"))
	Status(source, outcome)
	Suspended(source)
	if diff := cmp.Diff(before, source) + cmp.Diff(newStored("0.9.0"), outcome); diff != "" {
		t.Error(diff)
	}
}

func TestWait(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	interval := func(d time.Duration) func(*kudo.PackageSource) {
		return func(s *kudo.PackageSource) { s.Spec.Interval = &metav1.Duration{Duration: d} }
	}
	memory := func(age time.Duration, failures int, final bool) Memory {
		return Memory{UID: "1", Generation: 3, At: now.Add(-age), Failures: failures, IsFinal: final}
	}
	between := func(low, high time.Duration) [2]time.Duration { return [2]time.Duration{low, high} }
	for sentence, test := range map[string]struct {
		source *kudo.PackageSource
		memory Memory
		want   [2]time.Duration
	}{
		"a source that is not known is due":           {newSource(), Memory{}, between(0, 0)},
		"another one of that name is due":             {newSource(func(s *kudo.PackageSource) { s.UID = "2" }), memory(0, 0, false), between(0, 0)},
		"one with another spec is due in two seconds": {newSource(func(s *kudo.PackageSource) { s.Generation++ }), memory(0, 0, false), between(minDelay, minDelay)},
		"and at once if nothing was attempted since":  {newSource(func(s *kudo.PackageSource) { s.Generation++ }), memory(minDelay, 9, true), between(0, 0)},
		"a request is due": {newSource(func(s *kudo.PackageSource) {
			s.Annotations = map[string]string{kudo.AnnotationReconcileAt: "now"}
		}), memory(time.Minute, 0, false), between(0, 0)},
		"one that succeeded waits for the interval, and a tenth at most": {newSource(interval(time.Hour)), memory(0, 0, false), between(time.Hour, 66*time.Minute)},
		"the interval has a default":                                     {newSource(), memory(0, 0, false), between(10*time.Minute, 11*time.Minute)},
		"one that failed waits for 15 seconds":                           {newSource(), memory(0, 1, false), between(15*time.Second, 15*time.Second)},
		"and for twice as long after the next failure":                   {newSource(), memory(0, 2, false), between(30*time.Second, 30*time.Second)},
		"but for the interval at most":                                   {newSource(interval(time.Minute)), memory(0, 1_000_000, false), between(time.Minute, time.Minute)},
		"a final failure waits for the interval at once":                 {newSource(interval(time.Hour)), memory(0, 1, true), between(time.Hour, 66*time.Minute)},
		"one whose time has passed is due":                               {newSource(), memory(24*time.Hour, 0, false), between(0, 0)},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := Wait(test.source, test.memory, now); got < test.want[0] || got > test.want[1] {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	now, source := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), newSource()
	transient := &Failure{Reason: kudo.ReasonPullFailed, Err: errors.New("a")}
	m := Memory{}.Note(source, transient, now, now).Note(source, transient, now.Add(-time.Hour), now)
	if m.Failures != 2 || m.IsFinal {
		t.Errorf("got %+v", m)
	}
	if got := Wait(source, m, now); got != 2*time.Hour {
		t.Errorf("after an attempt that took an hour, it rests for %s", got)
	}
	if next := m.Note(newSource(func(s *kudo.PackageSource) { s.Generation++ }), transient, now, now); next.Failures != 1 {
		t.Errorf("another spec counts the failures of the former one: %+v", next)
	}
	if next := m.Note(source, nil, now, now); next.Failures != 0 || !next.At.Equal(now) {
		t.Errorf("got %+v", next)
	}
}

func TestChoose(t *testing.T) {
	versions := []string{"20261129", "v9.0.0", "1.11.0-rc.1", "1.10.0+3.1", "1.0.0", "1.10.0+3.2", "1.9.0", "2.0.0-rc.1", "latest", "sha256-00.sig", "3.0.0"}
	for wanted, want := range map[string]string{
		">=1.0.0 <2":   "1.10.0+3.2",
		"*":            "3.0.0",
		">=2.0.0-0 <3": "2.0.0-rc.1",
		"1.9":          "1.9.0",
		">=4":          `VersionNotFound: no version is in the range ">=4": the highest are 3.0.0, 2.0.0-rc.1, 1.11.0-rc.1, 1.10.0+3.2, 1.10.0+3.1`,
		"latest":       `InvalidSource: the version "latest" is not a range of versions, such as >=1.0.0 <2`,
	} {
		got, err := Choose(wanted, versions)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", wanted, got, want)
		}
	}
	if _, err := Choose("*", []string{"latest"}); FailureOf(err).Reason != kudo.ReasonVersionNotFound {
		t.Error(err)
	}
}

func TestHosts(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec kudo.PackageSourceSpec
		host string
		ok   bool
	}{
		"the host of the source":           {newSource().Spec, "Registry.Example.com", true},
		"with the port of https":           {newSource().Spec, "registry.example.com:443", true},
		"with another port":                {newSource().Spec, "registry.example.com:8443", false},
		"another one":                      {newSource().Spec, "registry.example.com.evil.example", false},
		"an allowed one":                   {kudo.PackageSourceSpec{Chart: &kudo.SourceChart{Repository: "https://a.example/x"}, AllowedHosts: []string{"b.example:5000"}}, "b.example:5000", true},
		"an allowed one, but another port": {kudo.PackageSourceSpec{Chart: &kudo.SourceChart{Repository: "https://a.example/x"}, AllowedHosts: []string{"b.example:5000"}}, "b.example", false},
		"the server of Docker Hub":         {kudo.PackageSourceSpec{Package: &kudo.SourcePackage{Reference: "oci://docker.io/a/b"}}, "registry-1.docker.io", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			hosts, err := HostsOf(&test.spec)
			if err != nil {
				t.Fatal(err)
			}
			if err := hosts.Check(test.host); (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	hosts, err := HostsOf(&kudo.PackageSourceSpec{Chart: &kudo.SourceChart{Repository: "https://a.example"}, AllowedHosts: []string{"b.example"}})
	if err != nil || hosts.IsOwn("b.example") {
		t.Errorf("an allowed host gets the credentials: %v", err)
	}
	if _, err := HostsOf(&kudo.PackageSourceSpec{}); FailureOf(err).Reason != kudo.ReasonInvalidSource {
		t.Error(err)
	}
}

func TestAddresses(t *testing.T) {
	for _, refused := range []string{
		"127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "fe80::1", "fe80::1%eth0", "224.0.0.1", "ff02::1", "255.255.255.255",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::127.0.0.1", "100.100.100.200", "fd00:ec2::254", "168.63.129.16",
	} {
		if err := CheckAddress("h.example", netip.MustParseAddr(refused)); err == nil {
			t.Errorf("%s is allowed", refused)
		}
	}
	for _, allowed := range []string{"10.0.0.1", "192.168.1.1", "8.8.8.8", "100.64.0.1", "2001:db8::1", "fd00::1", "64:ff9b::808:808"} {
		if err := CheckAddress("h.example", netip.MustParseAddr(allowed)); err != nil {
			t.Error(err)
		}
	}
	if err := CheckAddress("h.example", netip.Addr{}); err == nil {
		t.Error("no address is allowed")
	}
}

func TestFailures(t *testing.T) {
	host := &HostError{Host: "evil.example\x1b", Own: "a.example"}
	about := &Failure{Reason: kudo.ReasonInvalidPackage, Version: "1.0.0", Digest: "sha256:1", Err: fmt.Errorf("task a: %w", host)}
	got := FailureOf(fmt.Errorf("b: %w", about))
	if got.Reason != kudo.ReasonHostNotAllowed || got.Version != "1.0.0" || !strings.Contains(got.message(), `evil.example^[`) || !got.IsFinal() {
		t.Errorf("got %+v", got)
	}
	if got := FailureOf(errors.New("a")); got.Reason != kudo.ReasonPullFailed || got.IsFinal() {
		t.Errorf("got %+v", got)
	}
	if err := Failed(kudo.ReasonPullFailed, nil); err != nil {
		t.Error(err)
	}
	if err := Failed(kudo.ReasonPullFailed, about); FailureOf(err).Reason == kudo.ReasonPullFailed {
		t.Error("a failure gets another reason")
	}
}
