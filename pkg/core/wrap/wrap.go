// Package wrap writes packages that deploy Helm charts: which files a package around a chart has, with parameters for some of the chart's values.
package wrap

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/core/catalog"
)

// The files of a package.
const (
	operatorFile   = "operator.yaml"
	parametersFile = "params.yaml"
	valuesFile     = "values.yaml"
)

// Files returns the files of a package called name around a chart, text by path. archive is the path of the chart in the package. It is an error if
// the chart has no value that a choice names, or if two choices exclude each other.
func Files(name, archive string, chart Chart, choices []Choice) (map[string]string, error) {
	var chosen []value
	if len(choices) > 0 {
		var err error
		if chosen, err = chart.choose(choices); err != nil {
			return nil, err
		}
	}
	return filesOf(name, archive, chart, chosen, Release{})
}

// filesOf returns the files of a package with parameters for the chosen values, and the other values of a release.
func filesOf(name, archive string, chart Chart, chosen []value, from Release) (map[string]string, error) {
	hasValues := len(chosen) > 0 || len(from.Values) > 0
	operator, err := operatorText(name, archive, chart, hasValues, from)
	if err != nil {
		return nil, err
	}
	files := map[string]string{operatorFile: operator}
	if files[parametersFile], err = parametersText(chart, chosen); err != nil {
		return nil, err
	}
	if hasValues {
		files["templates/"+valuesFile] = valuesText(chosen, nodeOf(from.Values))
	}
	return files, nil
}

// Versions returns the operatorVersion and the appVersion of a package around a chart. Both are part of the name of an object, which neither build
// metadata nor capitals can be. An appVersion that cannot is left out, and so is one that the version contains.
func Versions(chart Chart) (operatorVersion, appVersion string) {
	operatorVersion, _, _ = strings.Cut(chart.Version, "+")
	if partOfName.MatchString(chart.AppVersion) && chart.AppVersion != operatorVersion {
		appVersion = chart.AppVersion
	}
	return operatorVersion, appVersion
}

var partOfName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// operatorText returns the text of operator.yaml.
func operatorText(name, archive string, chart Chart, hasValues bool, from Release) (string, error) {
	type spec struct {
		Chart       string `yaml:"chart"`
		Version     string `yaml:"version,omitempty"`
		Repository  string `yaml:"repository,omitempty"`
		Digest      string `yaml:"digest,omitempty"`
		ValuesFile  string `yaml:"valuesFile,omitempty"`
		ReleaseName string `yaml:"releaseName,omitempty"`
	}
	type task struct {
		Name string `yaml:"name"`
		Kind string `yaml:"kind"`
		Spec spec   `yaml:"spec"`
	}
	helm := task{Name: "chart", Kind: "Helm", Spec: spec{Chart: archive, ReleaseName: from.Name}}
	about := comment(cmp.Or(oneLine(chart.Description), "Helm chart "+chart.Name))
	switch from := chart.Source; {
	case from.Repository != "" && catalog.IsExact(chart.Version):
		helm.Spec.Version, helm.Spec.Repository, helm.Spec.Digest = chart.Version, from.Repository, from.Digest
	case from.From != "":
		about += comment("The chart is from " + oneLine(from.From) + ", " + from.Digest)
	}
	if from.Name != "" {
		about += comment(fmt.Sprintf("Created from release %s of Helm in namespace %s, revision %d", oneLine(from.Name), oneLine(from.Namespace), from.Revision))
	}
	if hasValues {
		helm.Spec.ValuesFile = valuesFile
	}
	operatorVersion, appVersion := Versions(chart)
	head, err := marshal(struct {
		APIVersion      string       `yaml:"apiVersion"`
		Name            string       `yaml:"name"`
		OperatorVersion string       `yaml:"operatorVersion"`
		AppVersion      string       `yaml:"appVersion,omitempty"`
		URL             string       `yaml:"url,omitempty"`
		Maintainers     []Maintainer `yaml:"maintainers,omitempty"`
		Tasks           []task       `yaml:"tasks"`
	}{"kudo.dev/v1beta1", name, operatorVersion, appVersion, chart.Home, chart.Maintainers, []task{helm}})
	if err != nil {
		return "", err
	}
	return about + head + `plans:
  deploy:
    phases:
      - name: main
        steps:
          - name: chart
            tasks: [chart]
`, nil
}

// parametersText returns the text of params.yaml.
func parametersText(chart Chart, chosen []value) (string, error) {
	type parameter struct {
		Name        string     `yaml:"name"`
		Description string     `yaml:"description,omitempty"`
		Type        string     `yaml:"type,omitempty"`
		Enum        []string   `yaml:"enum,omitempty"`
		Default     *yaml.Node `yaml:"default,omitempty"`
		Required    *bool      `yaml:"required,omitempty"`
		Sensitive   bool       `yaml:"sensitive,omitempty"`
	}
	parameters := make([]parameter, 0, len(chosen))
	for _, v := range chosen {
		p := parameter{Name: v.Parameter, Description: cmp.Or(v.description, "Value "+v.Path.String()+" of chart "+chart.Name), Enum: v.enum, Default: v.byDefault,
			Sensitive: v.Sensitive}
		if v.kind != stringKind {
			p.Type = string(v.kind)
		}
		if v.isOptional() {
			p.Required = new(false)
		}
		parameters = append(parameters, p)
	}
	return marshal(struct {
		APIVersion string      `yaml:"apiVersion"`
		Parameters []parameter `yaml:"parameters"`
	}{"kudo.dev/v1beta1", parameters})
}

func marshal(object any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(object); err != nil {
		return "", fmt.Errorf("writing the package: %w", err)
	}
	return out.String(), nil
}

// comment returns a text as a comment of YAML.
func comment(line string) string { return "# " + line + "\n" }
