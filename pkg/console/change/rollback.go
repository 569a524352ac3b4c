package change

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Rollback returns the change to the OperatorVersion of an earlier revision of an Instance, or of the add-on that owns it: of the one with that
// number, or if it is 0 of the last one that completed with another OperatorVersion. Parameters stay the same. It returns ErrAbsent if there is
// neither an Instance nor an add-on.
func (s *State) Rollback(ctx context.Context, key client.ObjectKey, revision int64) (Change, error) {
	instance := s.FindInstance(key)
	if instance == nil {
		if s.fleet[key.Namespace].AddOns[key.Name] == nil {
			return Change{}, ErrAbsent
		}
		return Change{}, fmt.Errorf("cluster %s: add-on %q has no Instance yet, and therefore no earlier revision", key.Namespace, key.Name)
	}
	if instance.Parent() != nil {
		return Change{}, childError(instance)
	}
	present := install.VersionOf(instance)
	if addOn := s.fleet[key.Namespace].AddOns[key.Name]; addOn != nil && isWaiting(addOn) {
		present = client.ObjectKey{} // it is to run another one, which has not started
	}
	to, err := revisionToRestore(instance, present, revision)
	if err != nil {
		return Change{}, fmt.Errorf("cluster %s: %w", key.Namespace, err)
	}
	if namespace := install.VersionOf(instance).Namespace; versionOf(to).Namespace != namespace {
		return Change{}, fmt.Errorf("cluster %s: revision %d had OperatorVersion %s, and Instance %q now has one of namespace %q: choose a revision "+
			"with one of that namespace", key.Namespace, to.Revision, versionOf(to), key.Name, namespace)
	}
	version, err := s.Version(ctx, versionOf(to))
	if err != nil {
		return Change{}, err
	}
	if version == nil {
		return Change{}, fmt.Errorf("cluster %s: OperatorVersion %s of revision %d no longer exists: push its package again "+
			"('kubectl addon package push'), or choose another revision with --to", key.Namespace, versionOf(to), to.Revision)
	}
	found, err := s.Edit(ctx, Edit{ObjectKey: key, Upgrade: true, Choice: Choice{Version: to.OperatorVersion.Name}})
	if err != nil {
		return found, err
	}
	found.Remarks = append(rollbackRemarks(instance, to, version), found.Remarks...)
	return found, nil
}

// isWaiting reports whether an add-on is configured to run another OperatorVersion than its Instance, and waits to change to it.
func isWaiting(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	return resolved != nil && resolved.Status == metav1.ConditionFalse && dependency.IsWaitReason(resolved.Message)
}

// versionOf returns the name of the OperatorVersion of a revision.
func versionOf(entry kudo.HistoryEntry) client.ObjectKey {
	return client.ObjectKey{Namespace: entry.OperatorVersion.Namespace, Name: entry.OperatorVersion.Name}
}

// revisionToRestore returns the revision of that number, or if it is 0 the last one that completed with another OperatorVersion than the present one. The
// error says how to resolve this.
func revisionToRestore(instance *kudo.Instance, present client.ObjectKey, revision int64) (kudo.HistoryEntry, error) {
	entries := instance.Status.History
	history := text.Command("kubectl addon history %s --cluster %s", instance.Name, instance.Namespace)
	if revision == 0 {
		for _, entry := range slices.Backward(entries) {
			if entry.Outcome == kudo.HistoryComplete && entry.Cause != kudo.CauseRequest && versionOf(entry) != present {
				return entry, nil
			}
		}
		return kudo.HistoryEntry{}, fmt.Errorf("the history of Instance %q has no earlier OperatorVersion than %s that was completely applied: see '%s', "+
			"or use 'kubectl addon upgrade' with --version", instance.Name, present.Name, history)
	}
	at := slices.IndexFunc(entries, func(e kudo.HistoryEntry) bool { return e.Revision == revision })
	switch {
	case len(entries) == 0:
		return kudo.HistoryEntry{}, fmt.Errorf("the history of Instance %q is empty: use 'kubectl addon upgrade' with --version", instance.Name)
	case at < 0:
		return kudo.HistoryEntry{}, fmt.Errorf("the history of Instance %q has no revision %d, only %d to %d: see '%s'",
			instance.Name, revision, entries[0].Revision, entries[len(entries)-1].Revision, history)
	case versionOf(entries[at]) == present:
		return kudo.HistoryEntry{}, fmt.Errorf("revision %d of Instance %q has the present OperatorVersion %s: a rollback restores no parameters; "+
			"'kubectl addon update' sets them", revision, instance.Name, present.Name)
	}
	return entries[at], nil
}

// rollbackRemarks returns which parameters have changed since a revision, and that its OperatorVersion is another one by now.
func rollbackRemarks(instance *kudo.Instance, to kudo.HistoryEntry, version *kudo.OperatorVersion) []string {
	var remarks, names []string
	more := 0
	for _, entry := range instance.Status.History {
		if entry.Revision <= to.Revision {
			continue
		}
		more += int(entry.MoreParameters)
		for _, name := range entry.Parameters {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and up to %d more", more))
	}
	if len(names) > 0 {
		remarks = append(remarks, fmt.Sprintf("parameters that changed since revision %d keep their present values, which the history does not store: %s",
			to.Revision, text.List(names, maxListed)))
	}
	if to.OperatorVersion.UID != "" && to.OperatorVersion.UID != version.UID {
		remarks = append(remarks, fmt.Sprintf("OperatorVersion %s was deleted and re-created since revision %d: its content may be another one",
			version.Name, to.Revision))
	}
	return remarks
}
