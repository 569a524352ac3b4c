// Package compatibility decides whether a package and its charts support the Kubernetes version of a cluster. It touches no cluster.
package compatibility

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/version"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MaxLength limits a constraint.
const MaxLength = 253

// maxClusterVersion limits a version of Kubernetes.
const maxClusterVersion = 64

// ParsePackage parses the kubernetesVersion of a package: a version such as 1.25.0, which is the lowest one as in KUDO, or a constraint.
func ParsePackage(kubernetesVersion string) (*semver.Constraints, error) {
	if lowest, err := semver.NewVersion(kubernetesVersion); err == nil {
		kubernetesVersion = ">=" + lowest.String()
	}
	return ParseConstraint(kubernetesVersion)
}

// ParseConstraint parses a constraint on versions, such as the kubeVersion of a chart, as Helm does.
func ParseConstraint(constraint string) (*semver.Constraints, error) {
	if len(constraint) > MaxLength {
		return nil, fmt.Errorf("it has %d characters, more than the limit of %d", len(constraint), MaxLength)
	}
	return semver.NewConstraint(constraint)
}

// Satisfies reports whether a version satisfies a constraint, as ParseConstraint parses it. The error says that one of them is not valid.
func Satisfies(version, constraint string) (bool, error) {
	accepted, err := ParseConstraint(constraint)
	if err != nil {
		return false, err
	}
	parsed, err := semver.NewVersion(version)
	return err == nil && accepted.Check(parsed), err
}

// IsConstrained reports whether a version of a package requires certain versions of Kubernetes.
func IsConstrained(spec *kudo.OperatorVersionSpec) bool {
	return spec != nil && (spec.KubernetesVersion != "" ||
		slices.ContainsFunc(spec.Content, func(f kudo.ContentFile) bool { return f.KubeVersion != "" }))
}

// Problem returns which version of Kubernetes a package, or the first of some of its charts, requires and a cluster of that version lacks; empty if it
// lacks none. As for Helm, suffixes of the cluster's version do not count: v1.33.1-gke.100 is 1.33.1.
func Problem(spec *kudo.OperatorVersionSpec, charts []string, cluster string) string {
	if why := problemOf("the package", spec.KubernetesVersion, ParsePackage, cluster); why != "" {
		return why
	}
	for _, file := range spec.Content {
		if !slices.Contains(charts, file.File) {
			continue
		}
		if why := problemOf("chart "+text.Quote(file.File), file.KubeVersion, ParseConstraint, cluster); why != "" {
			return why
		}
	}
	return ""
}

// andHas is between what is required and the version of the cluster in a text of Problem.
const andHas = ", and the cluster has "

// Unmet returns the requirement of a text of Problem, without the version of the cluster.
func Unmet(problem string) string {
	requirement, _, _ := strings.Cut(problem, andHas)
	return requirement
}

// ParseCluster parses a version of Kubernetes, such as 1.36, v1.36.2 or v1.36.2-gke.100, and returns it as clusters report it: v1.36.0. Suffixes stay.
func ParseCluster(given string) (string, error) {
	bare := strings.TrimPrefix(given, "v")
	if strings.Count(bare, ".") == 1 {
		bare += ".0"
	}
	parsed, err := semver.StrictNewVersion(bare)
	if err != nil || parsed.Major() == 0 || len(bare) > maxClusterVersion {
		return "", fmt.Errorf("%s is not a version of Kubernetes such as 1.36.0", text.Quote(given))
	}
	return "v" + bare, nil
}

// IsReached reports whether a cluster of a version has reached another one: suffixes do not count. known is false if one of them is not a version.
func IsReached(cluster, other string) (reached, known bool) {
	has, err := version.ParseGeneric(cluster)
	if err != nil {
		return false, false
	}
	wants, err := version.ParseGeneric(other)
	if err != nil {
		return false, false
	}
	return has.AtLeast(wants), true
}

func problemOf(subject, required string, parse func(string) (*semver.Constraints, error), cluster string) string {
	if required == "" {
		return ""
	}
	constraint, err := parse(required)
	if err != nil {
		return fmt.Sprintf("%s requires Kubernetes %s, which is not a valid constraint such as >=1.25.0-0", subject, text.Quote(required))
	}
	without := fmt.Sprintf("%s requires Kubernetes %s%s%s", subject, required, andHas, text.Quote(cluster))
	parsed, err := version.ParseGeneric(cluster)
	if err != nil {
		return without + ", which is not a valid version"
	}
	running, err := semver.NewVersion(parsed.String())
	if err != nil || !constraint.Check(running) {
		return fmt.Sprintf("%s requires Kubernetes %s%s%s", subject, required, andHas, cluster)
	}
	return ""
}
