package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/tandem-addons/tandem/pkg/core/wrap"
)

// inspections are what a child process does with a chart, besides rendering it: Helm parses all its files, which may need much more memory than they have bytes.
func inspections() map[string]func(Input) (any, error) {
	return map[string]func(Input) (any, error){
		"check":      func(in Input) (any, error) { return check(in.Archive) },
		"describe":   func(in Input) (any, error) { return describe(in.Archive) },
		"missing":    func(in Input) (any, error) { return missingDependencies(in.Archive) },
		"violations": func(in Input) (any, error) { return violationsOf(in.Archive, in.Values) },
	}
}

// Identity is the name and the version of a chart.
type Identity struct{ Name, Version string }

// check loads a chart, and checks its Chart.yaml.
func check(archive []byte) (Identity, error) {
	loaded, err := load(archive)
	if err != nil {
		return Identity{}, err
	}
	if err := loaded.Validate(); err != nil {
		return Identity{}, fmt.Errorf("its Chart.yaml is invalid: %w", err)
	}
	return Identity{Name: loaded.Metadata.Name, Version: loaded.Metadata.Version}, nil
}

// describe is Describe in this process.
func describe(archive []byte) (wrap.Chart, error) {
	loaded, err := load(archive)
	if err != nil {
		return wrap.Chart{}, err
	}
	if err := loaded.Validate(); err != nil {
		return wrap.Chart{}, fmt.Errorf("chart %q: %w", loaded.Name(), err)
	}
	of := loaded.Metadata
	if of.Type == "library" {
		return wrap.Chart{}, fmt.Errorf("chart %q is a library, which deploys nothing: choose a chart that uses it", of.Name)
	}
	described := partOf(loaded, of.Name)
	described.Version, described.AppVersion, described.Description, described.Home = of.Version, of.AppVersion, of.Description, of.Home
	for _, maintainer := range of.Maintainers {
		described.Maintainers = append(described.Maintainers, wrap.Maintainer{Name: maintainer.Name, Email: maintainer.Email})
	}
	return described, nil
}

// partOf returns what of a chart, or of a subchart with a name or alias, concerns its values.
func partOf(loaded *helm.Chart, name string) wrap.Chart {
	part := wrap.Chart{Name: name, Values: valuesFileOf(loaded), Schema: loaded.Schema}
	others := slices.Clone(loaded.Dependencies())
	for _, dependency := range loaded.Metadata.Dependencies {
		if dependency == nil {
			continue
		}
		for condition := range strings.SplitSeq(dependency.Condition, ",") {
			part.Switches = append(part.Switches, strings.TrimSpace(condition))
		}
		for _, tag := range dependency.Tags {
			part.Switches = append(part.Switches, "tags."+tag)
		}
		is := func(c *helm.Chart) bool {
			return c.Name() == dependency.Name && helmutil.IsCompatibleRange(dependency.Version, c.Metadata.Version)
		}
		if at := slices.IndexFunc(loaded.Dependencies(), is); at >= 0 {
			part.Subcharts = append(part.Subcharts, partOf(loaded.Dependencies()[at], cmp.Or(dependency.Alias, dependency.Name)))
		}
		others = slices.DeleteFunc(others, is)
	}
	for _, other := range others {
		part.Subcharts = append(part.Subcharts, partOf(other, other.Name()))
	}
	return part
}

// valuesFileOf returns values.yaml of a chart with its comments; nil if it has none.
func valuesFileOf(loaded *helm.Chart) []byte {
	for _, file := range loaded.Raw {
		if file.Name == helmutil.ValuesfileName {
			return file.Data
		}
	}
	return nil
}
