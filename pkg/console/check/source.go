package check

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// attemptedAfter is the age at which a PackageSource that was not attempted is reported.
const attemptedAfter = time.Minute

// sources lists the PackageSources that do not store new versions, by cause, so that the number of findings does not depend on their number. A hub without
// PackageSources has no finding.
func sources(o Observations) []Finding {
	const subject = "sources"
	if o.Sources.Problem != nil {
		return []Finding{unreadable(subject, "PackageSources", o.Sources.Problem)}
	}
	var waiting, failing, suspended []Source
	for _, s := range slices.SortedFunc(slices.Values(o.Sources.Sources), compareSources) {
		switch {
		case s.Suspended:
			suspended = append(suspended, s)
		case s.isWaiting(o.Now):
			waiting = append(waiting, s)
		case s.reason() != "":
			failing = append(failing, s)
		}
	}
	var findings []Finding
	if len(waiting) > 0 {
		findings = append(findings, warning(subject, countText(len(waiting), "PackageSource")+" not attempted yet, or not since the last change: "+listSources(waiting)+
			": if that stays, check whether package-controller runs, and with --namespaces that include theirs", "kubectl get pods -A -l app.kubernetes.io/name=package-controller")...)
	}
	if len(failing) > 0 {
		findings = append(findings, warning(subject, countText(len(failing), "PackageSource")+" not ready: "+listSources(failing), describe(failing[0]))...)
	}
	if len(suspended) > 0 {
		findings = append(findings, warning(subject, countText(len(suspended), "PackageSource")+" suspended by spec.suspend: "+listSources(suspended),
			describe(suspended[0]))...)
	}
	if len(findings) == 0 && len(o.Sources.Sources) > 0 {
		return ok(subject, text.Plural(len(o.Sources.Sources), "PackageSource")+" without problems")
	}
	return findings
}

func compareSources(a, b Source) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// isWaiting reports whether the spec of a source has not been attempted yet.
func (s Source) isWaiting(now time.Time) bool {
	ready := meta.FindStatusCondition(s.Conditions, kudo.ConditionReady)
	return (ready == nil || ready.ObservedGeneration != s.Generation) && now.Sub(s.Created) > attemptedAfter
}

// reason returns why the last attempt has failed; empty if it has not.
func (s Source) reason() string {
	ready := meta.FindStatusCondition(s.Conditions, kudo.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return ""
	}
	return ready.Reason
}

// listSources returns the names of sources with their reasons.
func listSources(found []Source) string {
	var named []string
	for _, s := range found {
		name := s.Namespace + "/" + s.Name
		if reason := s.reason(); reason != "" && !s.Suspended {
			name += " (" + oneLine(reason) + ")"
		}
		named = append(named, name)
	}
	return list(named)
}

func describe(s Source) string {
	return text.Command("kubectl describe packagesource %s -n %s", s.Name, s.Namespace)
}
