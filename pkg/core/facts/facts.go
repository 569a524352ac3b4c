// Package facts decides what templates learn about a managed cluster: its name, labels and claims, and the version of Kubernetes. It touches no
// cluster.
package facts

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of the facts of a cluster. What exceeds them is refused and not cut: with half of a value or of the labels, templates would render
// something else, and nothing would show why.
const (
	MaxEntries = 64
	// MaxBytes limits the keys and values of all labels and claims.
	MaxBytes = 16 << 10
)

// featurePrefix is the prefix of labels that OCM's klusterlet maintains, one for each add-on.
const featurePrefix = "feature.open-cluster-management.io/"

// LabelsOf returns the labels of a ManagedCluster that are facts; nil if there are none.
func LabelsOf(all map[string]string) map[string]string {
	kept := maps.Clone(all)
	maps.DeleteFunc(kept, func(name, _ string) bool { return strings.HasPrefix(name, featurePrefix) })
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// Problem returns why facts cannot be passed on; empty if they can.
func Problem(f *kudo.ClusterFacts) string {
	size := 0
	for _, entries := range []struct {
		what   string
		values map[string]string
	}{{"labels", f.Labels}, {"claims", f.Claims}} {
		if len(entries.values) > MaxEntries {
			return fmt.Sprintf("it has more than %d %s", MaxEntries, entries.what)
		}
		for name, value := range entries.values {
			size += len(name) + len(value)
		}
	}
	if size > MaxBytes {
		return fmt.Sprintf("its labels and claims have more than %d bytes", MaxBytes)
	}
	return ""
}

// Bound returns facts, or as much of facts that are too many or too large as Problem needs.
func Bound(f *kudo.ClusterFacts) *kudo.ClusterFacts {
	if Problem(f) == "" {
		return f
	}
	bounded, size := &kudo.ClusterFacts{Name: f.Name, Labels: map[string]string{}, Claims: map[string]string{}}, 0
	take := func(from, to map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			if len(to) <= MaxEntries && size <= MaxBytes {
				value := from[name]
				to[name] = strings.Clone(value[:min(len(value), MaxBytes+1)])
				size += len(name) + len(to[name])
			}
		}
	}
	take(f.Labels, bounded.Labels)
	take(f.Claims, bounded.Claims)
	return bounded
}

// Equal reports whether facts are the same. Either may be nil.
func Equal(a, b *kudo.ClusterFacts) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Claims, b.Claims)
}

// The variables of facts in templates. They are searched in the text: a template may also reach them by index, or from a variable that holds the dot.
var (
	clusterUse      = regexp.MustCompile("\\.Cluster\\b|[\"`]Cluster[\"`]")
	capabilitiesUse = regexp.MustCompile("\\.Capabilities\\b|[\"`]Capabilities[\"`]")
)

// UseCluster reports whether templates of the OperatorVersion may use .Cluster, and UseCapabilities whether they may use .Capabilities. Some that do
// not may count, such as those with that text in a comment.
func UseCluster(spec *kudo.OperatorVersionSpec) bool { return anyMatches(spec, clusterUse) }

// UseCapabilities is described at UseCluster.
func UseCapabilities(spec *kudo.OperatorVersionSpec) bool { return anyMatches(spec, capabilitiesUse) }

// Use reports whether a template may use either.
func Use(source string) bool { return UsesUnknown(source, nil, "") }

// UsesUnknown reports whether a template may use facts that are not known.
func UsesUnknown(source string, known *kudo.ClusterFacts, kubernetesVersion string) bool {
	return known == nil && matches(source, clusterUse) || kubernetesVersion == "" && matches(source, capabilitiesUse)
}

func anyMatches(spec *kudo.OperatorVersionSpec, use *regexp.Regexp) bool {
	if spec == nil {
		return false
	}
	for _, source := range spec.Templates {
		if matches(source, use) {
			return true
		}
	}
	return false
}

// matches is faster than the expression for the many templates that do not even have the word.
func matches(source string, use *regexp.Regexp) bool {
	word := "Cluster"
	if use == capabilitiesUse {
		word = "Capabilities"
	}
	return strings.Contains(source, word) && use.MatchString(source)
}

// Variables returns the variables of templates: Cluster and Capabilities, each only if it is known.
func Variables(f *kudo.ClusterFacts, kubernetesVersion string) map[string]any {
	variables := map[string]any{}
	if f != nil {
		variables["Cluster"] = map[string]any{"Name": f.Name, "Labels": orEmpty(f.Labels), "Claims": orEmpty(f.Claims)}
	}
	if kubernetesVersion != "" {
		variables["Capabilities"] = map[string]any{"KubeVersion": kubeVersion(kubernetesVersion)}
	}
	return variables
}

// orEmpty returns values with which index finds an empty text, and a field that does not exist is an error, as with parameters.
func orEmpty(values map[string]string) map[string]string {
	if values == nil {
		return map[string]string{}
	}
	return values
}

// kubeVersion returns the fields of Helm's .Capabilities.KubeVersion. Of a version that cannot be parsed, the parts are empty.
func kubeVersion(given string) map[string]any {
	fields := map[string]any{"Version": given, "Major": "", "Minor": ""}
	if parsed, err := version.ParseGeneric(given); err == nil {
		fields["Major"], fields["Minor"] = strconv.FormatUint(uint64(parsed.Major()), 10), strconv.FormatUint(uint64(parsed.Minor()), 10)
	}
	return fields
}

// Change describes a change of the facts since the last execution that took them; empty if there is none.
func Change(i *kudo.Instance) string {
	last := i.Status.Execution
	if last == nil || last.Cluster == nil || i.Spec.Cluster == nil || Equal(last.Cluster, i.Spec.Cluster) {
		return ""
	}
	var changed []string
	recorded := last.Cluster
	for _, part := range []struct {
		what          string
		before, after map[string]string
	}{{"label", recorded.Labels, i.Spec.Cluster.Labels}, {"claim", recorded.Claims, i.Spec.Cluster.Claims}} {
		for _, name := range differences(part.before, part.after) {
			changed = append(changed, part.what+" "+text.Quote(name))
		}
	}
	if len(changed) == 0 {
		changed = []string{"the name"}
	}
	const shown = 5
	return strings.Join(text.Limit(changed, shown, "more"), ", ")
}

// differences returns the sorted names of values that differ.
func differences(before, after map[string]string) []string {
	changed := map[string]bool{}
	for name, value := range before {
		if other, exists := after[name]; !exists || other != value {
			changed[name] = true
		}
	}
	for name := range after {
		if _, exists := before[name]; !exists {
			changed[name] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}
