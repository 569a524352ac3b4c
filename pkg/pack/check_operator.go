package pack

import (
	"cmp"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tandem-addons/tandem/pkg/text"
)

// operatorName: the name is valid as the name of an Operator and as a label value.
func operatorName(s *subject) []Finding {
	const field = "operator.name"
	name := s.Operator.Name
	if name == "" {
		return []Finding{faultAt(field, "the operator has no name")}
	}
	faults := append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...)
	if len(faults) == 0 {
		return nil
	}
	return []Finding{faultAt(field, "operator name %s is not valid: %s", text.Quote(name), faults[0])}
}

// versions: the package's version is semantic, and together with the app's it can be part of an object's name.
func versions(s *subject) []Finding {
	var findings []Finding
	if _, err := semver.NewVersion(s.Version); err != nil {
		findings = append(findings, faultAt("version",
			"operatorVersion %s is not a semantic version such as 1.2.0", text.Quote(s.Version)))
	} else if _, err := semver.StrictNewVersion(s.Version); err != nil {
		findings = append(findings, warningAt("version",
			"operatorVersion %s should have three parts, such as 1.2.0", text.Quote(s.Version)))
	}
	findings = append(findings, versionText("appVersion", s.AppVersion)...)
	name := VersionName("x", s.AppVersion, s.Version)
	faults := validation.IsDNS1123Subdomain(name)
	if full := VersionName(s.Operator.Name, s.AppVersion, s.Version); len(full) > validation.DNS1123SubdomainMaxLength {
		faults = append(faults, "it has more than 253 characters")
	}
	if len(faults) > 0 {
		field, what := "version", "operatorVersion "+text.Quote(s.Version)
		if s.AppVersion != "" && len(validation.IsDNS1123Subdomain("x-"+s.AppVersion)) > 0 {
			field, what = "appVersion", "appVersion "+text.Quote(s.AppVersion)
		}
		findings = append(findings, faultAt(field,
			"%s cannot be part of the name of an OperatorVersion: %s", what, faults[0]))
	}
	return findings
}

// operatorDetails: the versions of the operator's requirements are valid.
func operatorDetails(s *subject) []Finding {
	return append(versionText("kudoVersion", s.operator.KudoVersion), versionText("kubernetesVersion", s.operator.KubernetesVersion)...)
}

// versionText: the field is a version. Nothing is compared with it, so an invalid one is only a warning.
func versionText(field, version string) []Finding {
	if version == "" {
		return nil
	}
	if _, err := semver.NewVersion(version); err != nil {
		return []Finding{warningAt(field, "%s %s is not a version such as 1.25.0", field, text.Quote(version))}
	}
	return nil
}

// boundedSize: a larger OperatorVersion cannot be stored.
func boundedSize(s *subject) []Finding {
	bytes := size(s.OperatorVersionSpec)
	if bytes <= MaxSize {
		return nil
	}
	largest := ""
	for name, text := range s.Templates {
		longer := cmp.Compare(len(text), len(s.Templates[largest]))
		if longer > 0 || (longer == 0 && name < largest) {
			largest = name
		}
	}
	return []Finding{faultAt("templates",
		"the OperatorVersion has %d bytes, more than the limit of %d: "+
			"split the operator or shorten its templates; the largest is %s", bytes, MaxSize, text.Quote(largest))}
}
