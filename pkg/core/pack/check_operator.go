package pack

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/drift"
	"github.com/tandem-addons/tandem/pkg/text"
)

// operatorField is the path of the operator's name.
const operatorField = "operator.name"

// operatorName: the name is valid as a label value.
func operatorName(s *subject) []Problem {
	name := s.Operator.Name
	if name == "" {
		return []Problem{problemAt(operatorField, "the operator has no name")}
	}
	why := validation.IsValidLabelValue(name)
	if stricter := validation.IsDNS1123Subdomain(name); len(why) > 0 && len(stricter) > 0 {
		why = stricter // the examples of the other would be refused by objectName
	}
	return invalidName(name, why)
}

// objectName: the name of a package's operator is valid as the name of the Operator that 'package push' creates.
func objectName(s *subject) []Problem {
	if s.Operator.Name == "" || len(validation.IsValidLabelValue(s.Operator.Name)) > 0 {
		return nil // operatorName reports it
	}
	return invalidName(s.Operator.Name, validation.IsDNS1123Subdomain(s.Operator.Name))
}

func invalidName(name string, why []string) []Problem {
	if len(why) == 0 {
		return nil
	}
	return []Problem{problemAt(operatorField, "operator name %s is not valid: %s", text.Quote(name), why[0])}
}

// versions: the package's version is semantic, and together with the app's it can be part of an object's name.
func versions(s *subject) []Problem {
	var problems []Problem
	if _, err := semver.NewVersion(s.Version); err != nil {
		problems = append(problems, problemAt("version",
			"operatorVersion %s is not a semantic version such as 1.2.0", text.Quote(s.Version)))
	} else if _, err := semver.StrictNewVersion(s.Version); err != nil {
		problems = append(problems, warningAt("version",
			"operatorVersion %s should have three parts, such as 1.2.0", text.Quote(s.Version)))
	}
	problems = append(problems, versionText("appVersion", s.AppVersion)...)
	if _, err := semver.NewVersion(s.DependencyVersion); err != nil && s.DependencyVersion != "" {
		problems = append(problems, problemAt("dependencyVersion",
			"dependencyVersion %s is not a semantic version such as 1.2.0, with which constraints of other add-ons are compared", text.Quote(s.DependencyVersion)))
	}
	name := VersionName("x", s.AppVersion, s.Version)
	invalid := validation.IsDNS1123Subdomain(name)
	if full := VersionName(s.Operator.Name, s.AppVersion, s.Version); len(full) > validation.DNS1123SubdomainMaxLength {
		invalid = append(invalid, "it has more than 253 characters")
	}
	if len(invalid) > 0 {
		field, what := "version", "operatorVersion "+text.Quote(s.Version)
		if s.AppVersion != "" && len(validation.IsDNS1123Subdomain("x-"+s.AppVersion)) > 0 {
			field, what = "appVersion", "appVersion "+text.Quote(s.AppVersion)
		}
		problems = append(problems, problemAt(field,
			"%s cannot be part of the name of an OperatorVersion: %s", what, invalid[0]))
	}
	return problems
}

// maxIgnored is the limit of the resource definition for ignored fields, and for the paths of each.
const maxIgnored = 64

// ignoredFields: the fields whose changes are no drift are JSON pointers.
func ignoredFields(s *subject) []Problem {
	if s.Drift == nil {
		return nil
	}
	if len(s.Drift.Ignore) > maxIgnored {
		return []Problem{problemAt("drift.ignore", "there are %d entries, more than the limit of %d", len(s.Drift.Ignore), maxIgnored)}
	}
	var problems []Problem
	for i, fields := range s.Drift.Ignore {
		field := fmt.Sprintf("drift.ignore[%d].paths", i)
		if len(fields.Paths) == 0 || len(fields.Paths) > maxIgnored {
			problems = append(problems, problemAt(field, "there are %d paths: write one to %d", len(fields.Paths), maxIgnored))
			continue
		}
		for k, path := range fields.Paths {
			if err := drift.CheckPath(path); err != nil {
				problems = append(problems, problemAt(fmt.Sprintf("%s[%d]", field, k), "%v", err))
			}
		}
	}
	return problems
}

// dependencies: the constraints on the versions of other add-ons are valid, one for each.
func dependencies(s *subject) []Problem {
	var problems []Problem
	names := map[string]bool{}
	for i, need := range s.Dependencies {
		field := fmt.Sprintf("dependencies[%d]", i)
		if invalid := validation.IsDNS1123Subdomain(need.Name); len(invalid) > 0 {
			problems = append(problems, problemAt(field+".name", "%s is not the name of an add-on: %s", text.Quote(need.Name), invalid[0]))
		}
		if names[need.Name] {
			problems = append(problems, problemAt(field+".name", "%s is listed twice: join the constraints, such as >=3.8 <5", text.Quote(need.Name)))
		}
		names[need.Name] = true
		if _, err := compatibility.ParseConstraint(need.Version); err != nil {
			problems = append(problems, problemAt(field+".version", "version %s is not a constraint such as >=3.8 <5: %v", text.Quote(need.Version), err))
		}
	}
	if len(s.Dependencies) > maxDependencies {
		problems = append(problems, problemAt("dependencies", "there are %d, more than the limit of %d", len(s.Dependencies), maxDependencies))
	}
	return problems
}

// maxDependencies is the limit of the resource definition.
const maxDependencies = 32

// requiredVersions: the versions that the package and its charts require are valid.
func requiredVersions(s *subject) []Problem {
	problems := versionText("kudoVersion", s.operator.KudoVersion)
	if s.KubernetesVersion != "" {
		if _, err := compatibility.ParsePackage(s.KubernetesVersion); err != nil {
			problems = append(problems, problemAt("kubernetesVersion", "kubernetesVersion %s is neither a version such as 1.25.0, which is the lowest one, "+
				"nor a constraint such as >=1.25.0-0 <1.40.0-0: %v", text.Quote(s.KubernetesVersion), err))
		}
	}
	for i, file := range s.Content {
		if file.KubeVersion == "" {
			continue
		}
		if _, err := compatibility.ParseConstraint(file.KubeVersion); err != nil {
			problems = append(problems, problemAt(fmt.Sprintf("content[%d]", i), "chart %s: kubeVersion %s in its Chart.yaml is no constraint such as "+
				">=1.25.0-0: %v", text.Quote(file.File), text.Quote(file.KubeVersion), err))
		}
	}
	return problems
}

// versionText: the field is a version. Nothing is compared with it, so an invalid one is only a warning.
func versionText(field, version string) []Problem {
	if version == "" {
		return nil
	}
	if _, err := semver.NewVersion(version); err != nil {
		return []Problem{warningAt(field, "%s %s is not a version such as 1.25.0", field, text.Quote(version))}
	}
	return nil
}

// boundedSize: a larger OperatorVersion cannot be stored.
func boundedSize(s *subject) []Problem {
	stored := s.asStored()
	bytes := size(stored)
	if bytes <= MaxSize {
		return nil
	}
	largest := ""
	for name, text := range stored.Templates {
		longer := cmp.Compare(len(text), len(stored.Templates[largest]))
		if longer > 0 || (longer == 0 && name < largest) {
			largest = name
		}
	}
	return []Problem{problemAt("templates",
		"the OperatorVersion has %d bytes, more than the limit of %d: "+
			"split the operator or shorten its templates; the largest is %s", bytes, MaxSize, text.Quote(largest))}
}

// contentFiles: the files that OperatorContents store, charts and large templates, can be read, and do not exceed what agents store.
func contentFiles(s *subject) []Problem {
	var problems []Problem
	total, met, files := int64(0), map[string]bool{}, s.asStored().Content
	if len(files) > content.MaxFiles {
		return []Problem{problemAt("content", "the package has %d charts and large templates, more than the limit of %d: split the operator",
			len(files), content.MaxFiles)}
	}
	for i, file := range files {
		field, name := fmt.Sprintf("content[%d]", i), text.Quote(file.File)
		if err := content.Validate(file); err != nil {
			problems = append(problems, problemAt(field, "file %s %v", name, err))
		}
		if _, inline := s.Templates[file.File]; inline && !s.whole || met[file.File] {
			problems = append(problems, problemAt(field, "file %s is stored twice: push the package with 'kubectl addon package push'", name))
		}
		met[file.File] = true
		total += max(0, min(file.Size, content.MaxBytes+1))
	}
	if total > content.MaxBytes {
		largest := slices.MaxFunc(files, func(a, b kudo.ContentFile) int { return cmp.Compare(a.Size, b.Size) })
		problems = append(problems, problemAt("content", "charts and large templates have more than %d bytes in total: "+
			"split the operator; the largest is %s", content.MaxBytes, text.Quote(largest.File)))
	}
	return problems
}
