package dependency

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// running returns an Instance with a whole OperatorVersion, and an execution of one.
func running(whole *kudo.WholeVersion, started types.UID, version string) *kudo.Instance {
	instance := &kudo.Instance{}
	instance.Status.Whole = whole
	if started != "" {
		instance.Status.Execution = &kudo.Execution{
			OperatorVersion: corev1.ObjectReference{Name: "kafka-next", UID: started}, DependencyVersion: version,
		}
	}
	return instance
}

func wholeOf(dependencyVersion, appVersion, version string) *kudo.WholeVersion {
	return &kudo.WholeVersion{
		OperatorVersion: corev1.ObjectReference{Name: "kafka", UID: "whole"},
		Version:         version, AppVersion: appVersion, DependencyVersion: dependencyVersion,
	}
}

func TestMismatch(t *testing.T) {
	labelled := func(version string) Versions {
		definition := &addonv1alpha1.ClusterManagementAddOn{}
		definition.Labels = map[string]string{"app.kubernetes.io/version": version}
		return LabelledVersion(definition)
	}
	for name, test := range map[string]struct {
		versions         Versions
		constraint, want string
	}{
		"a version of a package":                       {InstalledVersions(running(wholeOf("", "", "3.8.1"), "", "")), ">=3.8 <5", ""},
		"the version of the application first":         {InstalledVersions(running(wholeOf("", "3.8.1", "1.0.0"), "", "")), ">=3.8 <5", ""},
		"the version for dependencies before it":       {InstalledVersions(running(wholeOf("3.8.1", "2024-03", "1.0.0"), "", "")), ">=3.8 <5", ""},
		"another version":                              {InstalledVersions(running(wholeOf("", "3.7.0", ""), "", "")), ">=3.8 <5", "runs version 3.7.0, which does not satisfy >=3.8 <5"},
		"a plan of the same version":                   {InstalledVersions(running(wholeOf("", "3.8.0", ""), "whole", "")), ">=3.8 <5", ""},
		"a change between two that satisfy it":         {InstalledVersions(running(wholeOf("", "3.8.0", ""), "next", "3.9.0")), ">=3.8 <5", ""},
		"a change to one that does not":                {InstalledVersions(running(wholeOf("", "3.8.0", ""), "next", "5.0.0")), ">=3.8 <5", "is changing to version 5.0.0, which does not satisfy >=3.8 <5"},
		"a change from one that does not":              {InstalledVersions(running(wholeOf("", "3.7.0", ""), "next", "3.8.0")), ">=3.8 <5", "runs version 3.7.0, which does not satisfy >=3.8 <5"},
		"a change by an earlier agent":                 {InstalledVersions(running(wholeOf("", "3.8.0", ""), "next", "")), ">=3.8 <5", `runs an unknown version, and >=3.8 <5 is required: the agent has not reported that of OperatorVersion "kafka-next", which it applies`},
		"no Instance":                                  {InstalledVersions(nil), ">=1", "runs an unknown version, and >=1 is required: none has been applied completely"},
		"a first installation that has not completed":  {InstalledVersions(running(nil, "next", "3.8.0")), ">=1", "runs an unknown version, and >=1 is required: none has been applied completely"},
		"a package without a version":                  {InstalledVersions(running(wholeOf("", "", ""), "", "")), ">=1", `runs an unknown version, and >=1 is required: OperatorVersion "kafka" has none`},
		"a label":                                      {labelled("v1.2"), "^1.2", ""},
		"another label":                                {labelled("2.0.0"), "^1.2", "runs version 2.0.0, which does not satisfy ^1.2"},
		"no label":                                     {labelled(""), "^1.2", "runs an unknown version, and ^1.2 is required: its ClusterManagementAddOn has no label app.kubernetes.io/version"},
		"no definition":                                {LabelledVersion(nil), "^1.2", "runs an unknown version, and ^1.2 is required: its ClusterManagementAddOn has no label app.kubernetes.io/version"},
		"a version that is none":                       {labelled("latest"), "^1.2", `runs version "latest", which is not a semantic version, and ^1.2 is required`},
		"a version that would break the message":       {InstalledVersions(running(wholeOf("1\n2' runs ", "", ""), "", "")), ">=1", `runs version "1\n2' runs ", which is not a semantic version, and >=1 is required`},
		"a very long version":                          {labelled(strings.Repeat("9", 999)), ">=1", `runs version "` + strings.Repeat("9", 60) + `"…, which is not a semantic version, and >=1 is required`},
		"a prerelease":                                 {labelled("3.9.0-rc1"), ">=3.8", "runs version 3.9.0-rc1, which does not satisfy >=3.8"},
		"a prerelease that the constraint allows":      {labelled("3.9.0-rc1"), ">=3.8-0", ""},
		"alternatives":                                 {labelled("5.1.0"), "3.x || 5.x", ""},
		"a constraint that is none, and is not judged": {labelled("5.1.0"), "new", `runs a version that cannot be compared with "new"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.versions.mismatch(test.constraint); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestEvaluateVersions(t *testing.T) {
	const (
		old     = "Required addon 'a' runs version 3.7.0, which does not satisfy >=3.8. No orders."
		changed = "Required addon 'a' is changing to version 5.0.0, which does not satisfy >=3.8. No orders."
		missing = "Required addon 'a' is not installed or not available. No orders."
	)
	of := func(seen Seen, versions Versions) Seen {
		seen.Versions = versions
		return seen
	}
	last := func(line string) *metav1.Condition { return degradedCondition("RequiredDependencyNotSatisfied", line) }
	for name, test := range map[string]struct {
		seen          Seen
		previous      *metav1.Condition
		message, text string // of the condition, and of the event
	}{
		"the right version":                          {seen: of(available, Versions{Installed: "3.8.0"})},
		"another version":                            {of(available, Versions{Installed: "3.7.0"}), nil, old, "Required a (VersionMismatch: it runs version 3.7.0, which does not satisfy >=3.8)"},
		"a change to another":                        {of(updating, Versions{Installed: "3.8.0", Starting: "3.7.0"}), nil, "Required addon 'a' is changing to version 3.7.0, which does not satisfy >=3.8. No orders.", "Required a (VersionMismatch: it is changing to version 3.7.0, which does not satisfy >=3.8)"},
		"one that is not available is only that":     {of(unavailable, Versions{Installed: "3.7.0"}), nil, missing, "Required a (NotAvailable)"},
		"out of reach after a mismatch":              {of(cutOff, Versions{Installed: "3.8.0"}), last(old), missing, "Required a (Unknown)"},
		"out of reach while satisfied":               {seen: of(cutOff, Versions{Installed: "3.7.0"})},
		"unread after a mismatch":                    {of(available, Versions{Unread: true}), last(old), old, "Required a (VersionMismatch: it runs version 3.7.0, which does not satisfy >=3.8)"},
		"unread after a change":                      {of(available, Versions{Unread: true}), last(changed), changed, "Required a (VersionMismatch: it is changing to version 5.0.0, which does not satisfy >=3.8)"},
		"unread after it was missing":                {seen: of(available, Versions{Unread: true}), previous: last(missing)},
		"unread while satisfied":                     {seen: of(available, Versions{Unread: true})},
		"a mismatch that has passed":                 {seen: of(available, Versions{Installed: "3.8.0"}), previous: last(old)},
		"an add-on on a cycle has no other verdict":  {onCycle(of(available, Versions{Installed: "3.7.0"}), "x", "a", "x"), nil, "circular dependency: x -> a -> x", "Required a (Circular)"},
		"an unknown version of one that is released": {of(available, Versions{}), nil, `Required addon 'a' runs version "", which is not a semantic version, and >=3.8 is required. No orders.`, `Required a (VersionMismatch: it runs version "", which is not a semantic version, and >=3.8 is required)`},
	} {
		t.Run(name, func(t *testing.T) {
			need := addonv1alpha1.AddonDependency{Name: "a", Version: ">=3.8", Message: "No orders."}
			verdict := Evaluate([]addonv1alpha1.AddonDependency{need}, map[string]Seen{"a": test.seen}, test.previous)
			if got := verdict.Message(); got != test.message {
				t.Errorf("message %q, want %q", got, test.message)
			}
			if got := Summary(verdict.Unmet()); got != test.text {
				t.Errorf("summary %q, want %q", got, test.text)
			}
			if unmet := UnmetFrom(verdict.Condition()); len(unmet) != len(verdict.Unmet()) || len(unmet) > 0 && unmet[0].Name != "a" {
				t.Errorf("%q has the unmet dependencies %v", verdict.Message(), unmet)
			}
			blocks := len(verdict.NotReady()) > 0
			if want := test.text != "" || test.seen.outOfReach() || test.seen.Reason == addonv1alpha1.ReasonUpdating; blocks != want {
				t.Errorf("blocks the installation: %v", blocks)
			}
		})
	}
}
