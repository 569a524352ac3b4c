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
	root, described, err := chart.defaults()
	if err != nil {
		return nil, nil, err
	}
	set, secrets := nodeOf(from.Values), map[string]string{}
	var chosen []value
	for _, choice := range choices {
		v, err := chart.lookUpReleased(choice, root, set, described)
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
func (c Chart) lookUpReleased(choice Choice, root, set *yaml.Node, described *schema) (value, error) {
	for n := 1; n < len(choice.Path); n++ {
		if _, above := find(set, choice.Path[:n]); above != nil && above.Kind != yaml.MappingNode {
			return value{}, fmt.Errorf("value %s is set to something else than a map: make it a parameter instead of %s", choice.Path[:n], choice.Path)
		}
	}
	_, over := find(set, choice.Path)
	if over == nil {
		return c.lookUp(choice, root, described)
	}
	key, node := find(root, choice.Path)
	described = described.at(choice.Path)
	if over.ShortTag() == "!!null" {
		v, err := c.valueOf(choice, key, node, described)
		v.byDefault, v.enum = nil, nil
		return v, err
	}
	merging := overlay{left: maxMerged}
	used := merging.over(node, over)
	if merging.left < 0 {
		return value{}, fmt.Errorf("value %s of chart %s has more than %d parts: choose some of them", choice.Path, text.Quote(c.Name), maxMerged)
	}
	v, err := c.valueOf(choice, key, used, described)
	if err == nil && v.kind.mismatch(used) != "" {
		v.kind = kindOf(used, nil)
	}
	return v, err
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
