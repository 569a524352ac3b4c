package facts

import (
	"encoding/json"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// The variables of templates that hold facts. Guards treat their values like those of parameters of these names.
const (
	Name         = ".Cluster.Name"
	Labels       = ".Cluster.Labels"
	Claims       = ".Cluster.Claims"
	Capabilities = ".Capabilities"
)

// SampleVersion is a version of Kubernetes for renderings without a cluster.
const SampleVersion = "v1.34.0"

// Sample returns facts for renderings without a cluster, which has neither labels nor claims.
func Sample() *kudo.ClusterFacts { return &kudo.ClusterFacts{Name: "cluster"} }

// Known returns the variables whose facts are known.
func Known(f *kudo.ClusterFacts, kubernetesVersion string) (variables []string) {
	if f != nil {
		variables = append(variables, Name, Labels, Claims)
	}
	if kubernetesVersion != "" {
		variables = append(variables, Capabilities)
	}
	return variables
}

// IsVariable reports whether a guard means a variable with facts, and no parameter.
func IsVariable(name string) bool {
	return slices.Contains([]string{Name, Labels, Claims, Capabilities}, name)
}

// Definition returns the definition of a parameter that accepts what a variable holds.
func Definition(variable string) kudo.Parameter {
	definition := kudo.Parameter{Name: variable, Type: kudo.StringType}
	if variable == Labels || variable == Claims {
		definition.Type = kudo.MapType
	}
	return definition
}

// Text returns what a variable holds: a text, or labels and claims as JSON.
func Text(variable string, f *kudo.ClusterFacts, kubernetesVersion string) string {
	switch {
	case variable == Capabilities:
		return kubernetesVersion
	case f == nil:
		return ""
	case variable == Name:
		return f.Name
	case variable == Labels:
		return encode(f.Labels)
	case variable == Claims:
		return encode(f.Claims)
	default:
		return ""
	}
}

func encode(values map[string]string) string {
	encoded, _ := json.Marshal(orEmpty(values)) // texts always encode
	return string(encoded)
}

// With returns facts with what Text has returned, or another value, in a variable. Others than those of facts change nothing.
func With(variable, value string, f *kudo.ClusterFacts, kubernetesVersion string) (*kudo.ClusterFacts, string, error) {
	if variable == Capabilities {
		return f, value, nil
	}
	if f == nil || !IsVariable(variable) {
		return f, kubernetesVersion, nil
	}
	changed := f.DeepCopy()
	switch variable {
	case Labels:
		changed.Labels = nil
		return changed, kubernetesVersion, json.Unmarshal([]byte(value), &changed.Labels)
	case Claims:
		changed.Claims = nil
		return changed, kubernetesVersion, json.Unmarshal([]byte(value), &changed.Claims)
	default:
		changed.Name = value
		return changed, kubernetesVersion, nil
	}
}

// Without returns facts with harmless ones in a variable.
func Without(variable string, f *kudo.ClusterFacts, kubernetesVersion string) (*kudo.ClusterFacts, string) {
	harmless := map[string]string{Name: "cluster", Labels: "{}", Claims: "{}", Capabilities: "v1.0.0"}[variable]
	f, kubernetesVersion, _ = With(variable, harmless, f, kubernetesVersion) // they decode
	return f, kubernetesVersion
}
