package wrap

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/core/sensitive"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ReleaseFiles is Files with the values of a release: those that are chosen become parameters, with what the release uses as default, and the others are written
// to the values of the package. It also returns the values of sensitive parameters, which the package does not contain.
func ReleaseFiles(name, archive string, chart Chart, choices []Choice, from Release) (files, secrets map[string]string, err error) {
	d, err := chart.defaults()
	if err != nil {
		return nil, nil, err
	}
	set, secrets := nodeOf(from.Values), map[string]string{}
	var chosen []value
	for _, choice := range choices {
		v, err := d.lookUpReleased(choice, set)
		if err != nil {
			return nil, nil, err
		}
		if choice.Sensitive {
			if v.kind != stringKind || v.byDefault == nil {
				return nil, nil, fmt.Errorf("value %s is no text in release %s: only a text can be a sensitive parameter", choice.Path, text.Quote(from.Name))
			}
			secrets[v.Parameter] = v.byDefault.Value
			v.byDefault, v.enum = nil, nil
		}
		chosen = append(chosen, v)
	}
	files, err = filesOf(name, archive, chart, chosen, from)
	return files, secrets, err
}

// lookUpReleased is lookUp for a value of a release, which may be one that the chart does not list.
func (d *defaults) lookUpReleased(choice Choice, set *yaml.Node) (value, error) {
	for n := 1; n < len(choice.Path); n++ {
		if _, above := find(set, choice.Path[:n]); above != nil && above.Kind != yaml.MappingNode {
			return value{}, fmt.Errorf("value %s is set to something else than a map: make it a parameter instead of %s", choice.Path[:n], choice.Path)
		}
	}
	_, over := find(set, choice.Path)
	if over == nil {
		return d.lookUp(choice)
	}
	key, node := find(d.root, choice.Path)
	if over.ShortTag() == "!!null" {
		v, err := d.valueOf(choice, key, node)
		v.byDefault, v.enum, v.removes = nil, nil, true
		return v, err
	}
	used := overlay(node, over)
	v, err := d.valueOf(choice, key, used)
	if err == nil && v.kind.mismatch(used) != "" {
		v.kind = kindOf(used, nil)
	}
	return v, err
}

// overlay returns a value with another one over it, as Helm merges values.
func overlay(node, over *yaml.Node) *yaml.Node {
	if node != nil {
		node = resolve(node)
	}
	if node == nil || node.Kind != yaml.MappingNode || over.Kind != yaml.MappingNode {
		return over
	}
	keys, values := keysOf(over)
	merged := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, below := node.Content[i], node.Content[i+1]
		if with := values[key.Value]; with != nil {
			below = overlay(below, with)
			delete(values, key.Value)
		}
		merged.Content = append(merged.Content, key, below)
	}
	for _, key := range keys {
		if with := values[key]; with != nil {
			merged.Content = append(merged.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, with)
		}
	}
	return merged
}

// Suspects returns the paths of values of a release that look like secrets, and that the package would contain. For a part of a list, it is the path of the list.
func (r Release) Suspects(choices []Choice) []Path {
	s := suspects{choices: choices}
	s.visit(r.Values, nil, nil)
	return s.found
}

// suspects collects the paths of values that look like secrets.
type suspects struct {
	choices []Choice
	found   []Path
}

// visit visits a value. names are the keys above it; path has those above the first list.
func (s *suspects) visit(value any, path Path, names []string) {
	switch value := value.(type) {
	case map[string]any:
		if variable, is := value["name"].(string); is && sensitive.IsSuspect([]string{variable}, textOf(value["value"])) {
			s.add(path)
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := path
			if len(path) == len(names) {
				below = append(slices.Clone(path), key)
			}
			s.visit(value[key], below, append(slices.Clone(names), key))
		}
	case []any:
		for _, element := range value {
			if _, isMap := element.(map[string]any); isMap {
				s.visit(element, path, append(slices.Clone(names), ""))
			} else {
				s.visit(element, path, names)
			}
		}
	default:
		if sensitive.IsSuspect(names, textOf(value)) {
			s.add(path)
		}
	}
}

func (s *suspects) add(path Path) {
	isKept := slices.ContainsFunc(s.choices, func(c Choice) bool { return c.Sensitive && path.isBelow(c.Path) })
	if !isKept && (len(s.found) == 0 || !slices.Equal(s.found[len(s.found)-1], path)) {
		s.found = append(s.found, path)
	}
}

// textOf returns a text or a number as text; that of another value is empty.
func textOf(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return ""
}
