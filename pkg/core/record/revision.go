package record

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Key is the key of the data of a Secret or a ConfigMap under which Helm stores a record.
const Key = "release"

// SecretType is the type of the Secrets that are records.
const SecretType = "helm.sh/release.v1"

// The labels of a Secret or ConfigMap in which Helm records a revision of a release.
const (
	LabelOwner   = "owner"
	LabelName    = "name"
	LabelVersion = "version"
	LabelStatus  = "status"
	// Owner is the value of LabelOwner.
	Owner = "helm"
)

// The statuses of revisions that decisions depend on. Helm has further ones, while it installs, upgrades, rolls back or uninstalls.
const (
	Deployed    = "deployed"
	Uninstalled = "uninstalled"
)

// Revision is an object in which a revision of a release is recorded.
type Revision struct {
	// Kind is Secret or ConfigMap, and Object its name.
	Kind, Object string
	Release      string
	Number       int
	Status       string
}

// RevisionOf returns the revision that an object records according to its labels and its name; ok is false if Helm would not find it under that name.
func RevisionOf(kind string, o *metav1.PartialObjectMetadata) (r Revision, ok bool) {
	number, err := strconv.Atoi(o.Labels[LabelVersion])
	r = Revision{Kind: kind, Object: o.Name, Release: o.Labels[LabelName], Number: number, Status: o.Labels[LabelStatus]}
	return r, err == nil && number > 0 && o.Labels[LabelOwner] == Owner && o.Name == ObjectName(r.Release, number)
}

// ObjectName returns the name of the object in which Helm records a revision of a release.
func ObjectName(release string, number int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, number)
}

// Choose returns a revision of a release in a namespace: that of a number, or with 0 the latest one that is deployed. If Helm has a release of the name both in
// Secrets, where it stores them by default, and in ConfigMaps, it is the one in Secrets.
func Choose(release string, number int, namespace string, all []Revision) (Revision, error) {
	own := ownOf(release, all)
	if len(own) == 0 {
		return Revision{}, notFound(release, namespace, all)
	}
	var chosen Revision
	for _, r := range own {
		if number == r.Number || number == 0 && r.Status == Deployed {
			chosen = r
		}
	}
	last := own[len(own)-1]
	switch {
	case chosen.Number > 0:
		return chosen, nil
	case number != 0:
		return Revision{}, fmt.Errorf("release %s in namespace %s has no revision %d: choose one of %s", text.Quote(release), text.Quote(namespace), number, list(own))
	case last.Status == Uninstalled:
		return Revision{}, fmt.Errorf("release %s in namespace %s is uninstalled: choose a revision with --revision: %s", text.Quote(release), text.Quote(namespace), list(own))
	}
	return Revision{}, fmt.Errorf("release %s in namespace %s has no deployed revision: install or upgrade it until that succeeds, or choose a revision "+
		"with --revision: %s", text.Quote(release), text.Quote(namespace), list(own))
}

// ownOf returns the revisions of a release, in their order: those in Secrets, if there are any.
func ownOf(release string, all []Revision) []Revision {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		own := slices.DeleteFunc(slices.Clone(all), func(r Revision) bool { return r.Release != release || r.Kind != kind })
		if len(own) > 0 {
			slices.SortFunc(own, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
			return own
		}
	}
	return nil
}

// Releases returns the names of all releases.
func Releases(all []Revision) []string {
	var names []string
	for _, r := range all {
		names = append(names, r.Release)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func notFound(release, namespace string, all []Revision) error {
	names := Releases(all)
	if len(names) == 0 {
		return fmt.Errorf("release %s not found: Helm has no release in namespace %s: select another namespace with -n, or another cluster with --context",
			text.Quote(release), text.Quote(namespace))
	}
	return fmt.Errorf("release %s not found in namespace %s%s: releases there: %s", text.Quote(release), text.Quote(namespace),
		text.DidYouMean(release, names), text.ListOrNone(names))
}

// list lists revisions with their status, the latest first.
func list(revisions []Revision) string {
	const shown = 10
	var names []string
	for _, r := range slices.Backward(revisions) {
		names = append(names, fmt.Sprintf("%d (%s)", r.Number, text.Escape(cmp.Or(r.Status, "unknown"))))
	}
	return text.List(names, shown)
}
