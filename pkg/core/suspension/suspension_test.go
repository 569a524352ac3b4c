package suspension_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

var (
	everything = suspension.Origin{Kind: suspension.KindEverything, Name: "tandem-system/tandem-suspend", Reason: "storage fails"}
	cluster    = suspension.Origin{Kind: suspension.KindCluster, Name: "cluster1"}
	addOn      = suspension.Origin{Kind: suspension.KindAddOn, Name: "kafka", Reason: `a "bad" release`}
)

func TestDescribe(t *testing.T) {
	for name, test := range map[string]struct {
		origins []suspension.Origin
		want    string
	}{
		"nothing":                    {nil, ""},
		"without a reason":           {[]suspension.Origin{cluster}, "ManagedCluster cluster1"},
		"the widest one first, once": {[]suspension.Origin{addOn, cluster, everything, cluster}, `ConfigMap tandem-system/tandem-suspend ("storage fails"), ManagedCluster cluster1, ClusterManagementAddOn kafka ("a \"bad\" release")`},
		"control characters": {[]suspension.Origin{{Kind: suspension.KindCluster, Name: "c", Reason: "a\x1b[2J\u202eb"}},
			`ManagedCluster c ("a\x1b[2J\u202eb")`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, suspension.Describe(test.origins)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		description string
		want        []suspension.Origin
	}{
		"nothing":                        {"", nil},
		"all":                            {suspension.Describe([]suspension.Origin{everything, cluster, addOn}), []suspension.Origin{everything, cluster, addOn}},
		"an unknown kind":                {"Pod x", nil},
		"a name with an option":          {"ManagedCluster --force", nil},
		"a name with a command":          {"ManagedCluster c;reboot", []suspension.Origin{{Kind: suspension.KindCluster, Name: "c"}}},
		"a reason without an end":        {`ManagedCluster c ("x`, []suspension.Origin{{Kind: suspension.KindCluster, Name: "c"}}},
		"a text after a reason":          {`ManagedCluster c ("x" or so), ManagedCluster d`, []suspension.Origin{{Kind: suspension.KindCluster, Name: "c"}}},
		"an unknown one after a known":   {"ManagedCluster c, Pod x", []suspension.Origin{{Kind: suspension.KindCluster, Name: "c"}}},
		"a reason that names an origin":  {`ManagedCluster c ("x\"), ClusterManagementAddOn y")`, []suspension.Origin{{Kind: suspension.KindCluster, Name: "c", Reason: `x"), ClusterManagementAddOn y`}}},
		"a reason that is one rune only": {`ManagedCluster c ('x')`, []suspension.Origin{{Kind: suspension.KindCluster, Name: "c", Reason: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, suspension.Parse(test.description)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnyValueOfTheAnnotationSuspends(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "false": "false", " a\n b ": "a b", strings.Repeat("é", 300): strings.Repeat("é", 200) + "…", "\xff": "\xff",
	} {
		reason, suspended := suspension.ReasonOf(&metav1.ObjectMeta{Annotations: map[string]string{kudo.AnnotationSuspend: value}})
		if !suspended || reason != want {
			t.Errorf("%q: got %q, %t", value, reason, suspended)
		}
	}
	if reason, suspended := suspension.ReasonOf(&metav1.ObjectMeta{Annotations: map[string]string{"other": "x"}}); suspended || reason != "" {
		t.Errorf("without the annotation: %q, %t", reason, suspended)
	}
}

func TestDenialNamesTheWayOut(t *testing.T) {
	for name, test := range map[string]struct {
		origin suspension.Origin
		want   string
	}{
		"a reason": {addOn, ""},
		"none":     {cluster, ""},
		"an annotation": {suspension.Origin{Kind: suspension.KindCluster, Name: "cluster1", Reason: "False"},
			`annotation kudo.dev/suspend of ManagedCluster cluster1 is "False", and suspends regardless of its value: remove the annotation to resume ` +
				`(kubectl addon resume --all --cluster cluster1)`},
		"the ConfigMap": {suspension.Origin{Kind: suspension.KindEverything, Name: "tandem-system/tandem-suspend", Reason: "no"},
			`ConfigMap tandem-system/tandem-suspend has reason "no", and suspends: delete the ConfigMap to resume (kubectl addon resume --all --everywhere)`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.origin.Denial()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResumeCommand(t *testing.T) {
	for want, origin := range map[string]suspension.Origin{
		"kubectl addon resume --all --everywhere":                   everything,
		"kubectl addon resume --all --everywhere --namespace other": {Kind: suspension.KindEverything, Name: "other/tandem-suspend"},
		"kubectl addon resume --all --cluster cluster1":             cluster,
		"kubectl addon resume kafka --everywhere":                   addOn,
	} {
		if got := origin.ResumeCommand(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestByNamesAllThatSuspends(t *testing.T) {
	for want, spec := range map[string]kudo.InstanceSpec{
		"":                                  {Suspend: true},
		"ManagedCluster c":                  {SuspendedBy: "ManagedCluster c"},
		"ManagedCluster c and spec.suspend": {SuspendedBy: "ManagedCluster c", Suspend: true},
	} {
		if got := suspension.By(spec); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// FuzzDescribe checks that a reason names no other origin, whatever it is, that it survives, and that the description is bounded and has one line.
func FuzzDescribe(f *testing.F) {
	for _, reason := range []string{"", "false", `"), ManagedCluster x ("`, "\x1b[2J\xff", strings.Repeat("\U0010ffff", 500)} {
		f.Add(reason)
	}
	f.Fuzz(func(t *testing.T, reason string) {
		origins := []suspension.Origin{everything, cluster, addOn}
		for i := range origins {
			origins[i].Reason = suspension.Bound(reason)
		}
		description := suspension.Describe(origins)
		if diff := cmp.Diff(origins, suspension.Parse(description)); diff != "" {
			t.Error(diff)
		}
		if !utf8.ValidString(description) || strings.ContainsAny(description, "\n\x1b") || len(description) > 8192 {
			t.Errorf("it has %d bytes: %q", len(description), description)
		}
	})
}

// FuzzParse checks that anything that another writer leaves there is read without a command that does more.
func FuzzParse(f *testing.F) {
	f.Add(`ManagedCluster c ("x"), ClusterManagementAddOn kafka`)
	f.Fuzz(func(t *testing.T, description string) {
		for _, origin := range suspension.Parse(description) {
			if strings.ContainsAny(origin.ResumeCommand(), ";&|$`'\"\n<>()") {
				t.Errorf("got %q", origin.ResumeCommand())
			}
		}
	})
}
