// Package author decides who is named as the author of a change on the hub, from the managed fields of the object that was changed. It touches no cluster.
//
// A field manager is a name that the writer has chosen itself. It is no proof of an identity, which only the API server's audit log has.
package author

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of a manager and of a description, in bytes.
const (
	maxManager = 128
	maxText    = 512
)

// part is a part of an object, as names of fields in its managed fields: each entry that has one of them at any depth below the first name owns the part.
type part struct {
	Within string
	Fields []string
}

// The parts of objects that addon-manager takes an Instance's values from, and of Instances.
var (
	ofValues  = part{"f:spec", []string{"f:operatorVersion", "f:parameters", "f:parametersFrom", "f:imageRegistries"}}
	ofRequest = part{"f:spec", []string{"f:planExecution"}}
	ofConfigs = part{"f:spec", []string{"f:supportedConfigs", "f:defaultConfigs", "f:configs"}}
	ofConfig  = part{"f:spec", []string{"f:customizedVariables", "f:registries"}}
	ofSpec    = part{Within: "f:spec"}
	ofData    = part{Within: "f:data"}
)

// Writers are the last writers of an object. A writer that is not known is the zero value.
type Writers struct {
	// Values is the last writer of what the values of Instances come from.
	Values kudo.ChangeAuthor
	// Request is the last writer of the request of a plan.
	Request kudo.ChangeAuthor
	// Creation is the writer of an object that exists for the first time.
	Creation kudo.ChangeAuthor
}

// WritersOf returns the last writers of an object of that kind.
func WritersOf(kind string, o metav1.Object) Writers {
	values := ofConfigs // of a ManagedClusterAddOn or a ClusterManagementAddOn
	switch kind {
	case "Instance":
		values = ofValues
	case "AddOnDeploymentConfig":
		values = ofConfig
	case "ConfigMap":
		values = ofData
	}
	entries := foreign(kind, o.GetManagedFields())
	found := Writers{Values: authorOf(kind, o, last(entries, values)), Request: authorOf(kind, o, last(entries, ofRequest))}
	created := last(entries, ofSpec)
	if created == nil && len(entries) > 0 {
		created = &entries[0]
	}
	found.Creation = authorOf(kind, o, created)
	return found
}

// foreign returns the entries of other writers than addon-manager and the agents, the oldest first, without those of subresources. These two write only some
// kinds: in others, their names are those of writers who hide.
func foreign(kind string, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	writesOwn := kind == "Instance" || kind == "ManagedClusterAddOn" || kind == "ClusterManagementAddOn"
	kept := slices.DeleteFunc(slices.Clone(entries), func(e metav1.ManagedFieldsEntry) bool {
		return e.Subresource != "" || e.Time == nil || writesOwn && isOwn(e.Manager)
	})
	slices.SortStableFunc(kept, func(a, b metav1.ManagedFieldsEntry) int { return a.Time.Compare(b.Time.Time) })
	return kept
}

// isOwn reports whether a manager is one of addon-manager's or the agents'.
func isOwn(manager string) bool {
	for _, program := range []string{"addon-manager", "addon-agent"} {
		if manager == program || strings.HasPrefix(manager, program+"-") {
			return true
		}
	}
	return false
}

// last returns the last entry that owns a part; nil if none does.
func last(entries []metav1.ManagedFieldsEntry, part part) *metav1.ManagedFieldsEntry {
	for i := range slices.Backward(entries) {
		if part.isIn(entries[i].FieldsV1) {
			return &entries[i]
		}
	}
	return nil
}

// isIn reports whether fields contain the part.
func (p part) isIn(fields *metav1.FieldsV1) bool {
	var owned map[string]any
	if fields == nil || json.Unmarshal(fields.Raw, &owned) != nil {
		return false
	}
	below, exists := owned[p.Within]
	return exists && (len(p.Fields) == 0 || p.isBelow(below))
}

func (p part) isBelow(fields any) bool {
	children, _ := fields.(map[string]any)
	for name, child := range children {
		if slices.Contains(p.Fields, name) || p.isBelow(child) {
			return true
		}
	}
	return false
}

// authorOf returns the author with the manager of an entry; the zero value without an entry.
func authorOf(kind string, o metav1.Object, entry *metav1.ManagedFieldsEntry) kudo.ChangeAuthor {
	if entry == nil {
		return kudo.ChangeAuthor{}
	}
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	return kudo.ChangeAuthor{
		Manager: cleanManager(entry.Manager), Kind: kind, Name: strings.TrimPrefix(name.String(), "/"), Time: entry.Time.DeepCopy(),
	}
}

// cleanManager returns a manager on one line, without characters that control a terminal, and bounded.
func cleanManager(manager string) string {
	return text.Prefix(text.OneLine(text.Escape(text.Prefix(manager, maxManager))), maxManager)
}

// Latest returns the author who has written last, the first one of several; the zero value if there is none.
func Latest(authors []kudo.ChangeAuthor) kudo.ChangeAuthor {
	var latest kudo.ChangeAuthor
	for _, a := range authors {
		if a.Kind != "" && (latest.Kind == "" || latest.Time.Before(a.Time)) {
			latest = a
		}
	}
	return latest
}

// repeated is how long after a write the same writer may have written again: times have whole seconds.
const repeated = 10 * time.Second

// Newer returns the author of a change after the recorded one of another change, which may be nil. It is the zero value if the author has not written since, so
// that another writer must have: one that only removes fields leaves no trace.
func Newer(a kudo.ChangeAuthor, recorded *kudo.ChangeAuthor, now time.Time) kudo.ChangeAuthor {
	if recorded == nil || recorded.Time == nil || a.Time == nil {
		return a
	}
	isSame := a.Manager == recorded.Manager && a.Kind == recorded.Kind && a.Name == recorded.Name && a.Time.Equal(recorded.Time)
	if a.Time.Before(recorded.Time) || isSame && now.Sub(a.Time.Time) > repeated {
		return kudo.ChangeAuthor{}
	}
	return a
}

// Change identifies a change of an Instance.
type Change string

// Values returns the values of an Instance that runs that OperatorVersion.
func Values(version types.NamespacedName, spec kudo.InstanceSpec) Change {
	return digest(version.String(), spec.Parameters, spec.ParametersFrom, spec.ImageRegistries)
}

// Request returns the request of a plan.
func Request(request kudo.PlanExecution) Change {
	return digest(request.PlanName, request.UID, request.Resume)
}

// digest returns a digest of parts. Absent and empty ones are equal.
func digest(parts ...any) Change {
	hash := sha256.New()
	for _, part := range parts {
		encoded, err := json.Marshal(part)
		if err != nil || string(encoded) == "null" || string(encoded) == "{}" || string(encoded) == "[]" {
			encoded = nil // they consist of strings, and maps and lists of these
		}
		fmt.Fprintf(hash, "%d:%s", len(encoded), encoded)
	}
	return Change(hex.EncodeToString(hash.Sum(nil)[:16]))
}

// With returns the author of a change for the spec of an Instance; nil if the author is not known.
func With(a kudo.ChangeAuthor, change Change) *kudo.ChangeAuthor {
	if a.Kind == "" {
		return nil
	}
	a.Change = string(seal(a, change))
	return &a
}

// IsOf reports whether addon-manager has recorded an author, which may be nil, for a change.
func IsOf(a *kudo.ChangeAuthor, change Change) bool {
	return a != nil && a.Change == string(seal(*a, change))
}

// seal returns the digest of a change and its author.
func seal(a kudo.ChangeAuthor, change Change) Change {
	at := ""
	if a.Time != nil {
		at = a.Time.UTC().Format("2006-01-02T15:04:05Z")
	}
	return digest(a.Manager, a.Kind, a.Name, at, string(change))
}

// Text returns the description of the author of a change for the history; empty if another change is recorded.
func Text(a *kudo.ChangeAuthor, change Change) string {
	if !IsOf(a, change) {
		return ""
	}
	object := text.Prefix(text.OneLine(text.Escape("("+a.Kind+" "+a.Name+")")), maxText-maxManager-1)
	return strings.TrimSpace(cleanManager(a.Manager) + " " + object)
}
