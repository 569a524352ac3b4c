package chart

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
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
	var parts describer
	described := parts.describe(loaded, of.Name, nil)
	described.Version, described.AppVersion, described.Description, described.Home = of.Version, of.AppVersion, of.Description, of.Home
	described.Values, described.Switches = valuesFileOf(loaded), append(described.Switches, parts.tags...)
	if parts.subcharts > maxSubcharts || parts.switches > maxSubcharts {
		return wrap.Chart{}, fmt.Errorf("chart %q has more than %d subcharts, or conditions and tags of them", of.Name, maxSubcharts)
	}
	for _, maintainer := range of.Maintainers {
		described.Maintainers = append(described.Maintainers, wrap.Maintainer{Name: maintainer.Name, Email: maintainer.Email})
	}
	if described.Defaults, err = defaultsOf(archive, loaded); err != nil {
		return wrap.Chart{}, fmt.Errorf("reading the values of chart %q: %w", of.Name, err)
	}
	return described, nil
}

// maxSubcharts limits the subcharts of a chart, with those in them, and as many conditions and tags.
const maxSubcharts = 1000

// describer describes a chart with its subcharts.
type describer struct {
	subcharts, switches int
	// tags are the paths of tags: Helm reads them only from the values of the chart that contains all others.
	tags []string
}

// describe returns the switches, global values and schemas of a chart, under its name or alias. over has what the charts that contain it set for it.
func (d *describer) describe(c *helm.Chart, name string, over map[string]any) wrap.Chart {
	values := overlay(over, c.Values)
	described := wrap.Chart{Name: name, Schema: c.Schema, Globals: globalsIn(values)}
	add := func(sub *helm.Chart, name string) {
		if d.subcharts++; d.subcharts <= maxSubcharts {
			below, _ := values[name].(map[string]any)
			described.Subcharts = append(described.Subcharts, d.describe(sub, name, below))
		}
	}
	others := slices.Clone(c.Dependencies())
	for _, dependency := range c.Metadata.Dependencies {
		for condition := range strings.SplitSeq(strings.TrimSpace(dependency.Condition), ",") {
			described.Switches = d.note(described.Switches, condition)
		}
		for _, tag := range dependency.Tags {
			d.tags = d.note(d.tags, "tags."+tag)
		}
		isDeclared := func(sub *helm.Chart) bool {
			return sub.Name() == dependency.Name && helmutil.IsCompatibleRange(dependency.Version, sub.Metadata.Version)
		}
		if at := slices.IndexFunc(c.Dependencies(), isDeclared); at >= 0 {
			add(c.Dependencies()[at], cmp.Or(dependency.Alias, dependency.Name))
		}
		others = slices.DeleteFunc(others, isDeclared)
	}
	slices.SortFunc(others, func(a, b *helm.Chart) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, other := range others {
		add(other, other.Name())
	}
	return described
}

// note adds the path of a condition or tag to those known.
func (d *describer) note(known []string, path string) []string {
	if path == "" || slices.Contains(known, path) {
		return known
	}
	if d.switches++; d.switches > maxSubcharts {
		return known
	}
	return append(known, path)
}

// overlay returns values with others over them.
func overlay(over, values map[string]any) map[string]any {
	all := maps.Clone(values)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range over {
		top, isMap := value.(map[string]any)
		below, both := all[key].(map[string]any)
		if isMap && both {
			value = overlay(top, below)
		}
		all[key] = value
	}
	return all
}

// globalsIn returns the global values among those of a chart; nil if there are none.
func globalsIn(values map[string]any) json.RawMessage {
	globals, isMap := values[common.GlobalKey].(map[string]any)
	if !isMap {
		return nil
	}
	text, err := json.Marshal(globals)
	if err != nil {
		return nil
	}
	return text
}

// defaultsOf returns the values of a chart as Helm merges them with those of its subcharts. Those of a disabled one are added, but nothing is imported from it.
func defaultsOf(archive []byte, loaded *helm.Chart) (json.RawMessage, error) {
	hasSubcharts := len(loaded.Dependencies()) > 0
	values, err := coalesce(loaded)
	if err != nil {
		return nil, err
	}
	if hasSubcharts {
		whole, err := load(archive)
		if err != nil {
			return nil, err
		}
		enable(whole)
		removeGlobals(loaded, values)
		if all, err := coalesce(whole); err == nil { // one that is disabled may be invalid
			removeGlobals(whole, all)
			values = overlay(values, all)
		}
	}
	return json.Marshal(values)
}

// coalesce returns the values of a chart as its templates read them. It changes the chart.
func coalesce(c *helm.Chart) (map[string]any, error) {
	if err := helmutil.ProcessDependencies(c, map[string]any{}); err != nil {
		return nil, err
	}
	return util.CoalesceValues(c, map[string]any{})
}

// enable enables all subcharts of a chart, and those in them.
func enable(c *helm.Chart) {
	for _, dependency := range c.Metadata.Dependencies {
		dependency.Condition, dependency.Tags, dependency.ImportValues = "", nil, nil
	}
	for _, sub := range c.Dependencies() {
		enable(sub)
	}
}

// removeGlobals removes the global values that Helm copies into the values of each subchart.
func removeGlobals(c *helm.Chart, values map[string]any) {
	for _, sub := range c.Dependencies() {
		if below, isMap := values[sub.Name()].(map[string]any); isMap {
			delete(below, common.GlobalKey)
			removeGlobals(sub, below)
		}
	}
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
