package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	renderyaml "github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Limits of an index, which may come from an untrusted server. A parser of YAML needs more than a hundred bytes of memory for each byte, so that the entries of
// a large index are parsed one by one.
const (
	// maxEntries limits the versions of all charts.
	maxEntries = 200_000
	// maxPartBytes limits one of them, and everything beside the entries.
	maxPartBytes = 256 << 10
	// maxWholeBytes is the size up to which an index is parsed at once, in any form.
	maxWholeBytes = 1 << 20
	// maxValueBytes limits what is parsed at once, with 64 bytes for each value.
	maxValueBytes = 8 << 20
	// maxWholeKeys and maxPartKeys limit the keys of one map, in an index that is parsed at once and in a part: the decoder compares each pair of them.
	maxWholeKeys, maxPartKeys = 10_000, 1_000
	// maxShownBytes limits a key in a message.
	maxShownBytes = 80
)

// decode parses YAML. Nothing is decoded from an empty text.
func decode(part []byte, maxKeys int, into any) error {
	document, _, err := renderyaml.First(string(part), maxValueBytes)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	case hasLargeMap(document, maxKeys):
		return fmt.Errorf("a map has more than %d keys", maxKeys)
	}
	return document.Decode(into)
}

func hasLargeMap(node *yaml.Node, maxKeys int) bool {
	if node.Kind == yaml.MappingNode && len(node.Content) > 2*maxKeys {
		return true
	}
	return slices.ContainsFunc(node.Content, func(inside *yaml.Node) bool { return hasLargeMap(inside, maxKeys) })
}

// Entry is a version of a chart in the index of a repository.
type Entry struct {
	Name    string   `json:"name"    yaml:"name"`
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest"  yaml:"digest"`
	URLs    []string `json:"urls"    yaml:"urls"`
}

// Index lists the charts of a repository, by name. Of the URLs of an entry, it has the first one.
type Index map[string][]Entry

// ParseIndex parses index.yaml of a repository, which may be JSON. As in Helm, entries that are none are skipped. More than 1 MiB of YAML must have the form
// that Helm writes. An index is not kept: its entries are copies.
func ParseIndex(data []byte) (Index, error) {
	l := listing{index: Index{}}
	var err error
	switch {
	case json.Valid(data):
		err = l.readJSON(data)
	case len(data) <= maxWholeBytes:
		err = l.readYAML(data)
	default:
		err = l.readBlocks(data)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("index.yaml is invalid: %w", err)
	case l.APIVersion == "" && len(l.index) == 0:
		return nil, errors.New("index.yaml is not that of a Helm repository: it has no apiVersion and no entries")
	}
	return l.index, nil
}

// Find returns the entry of a chart in a version: the highest one that satisfies a constraint.
func (x Index) Find(name, version string) (Entry, error) {
	entries := x[name]
	if len(entries) == 0 {
		return Entry{}, fmt.Errorf("it has no chart %s%s", text.Quote(name), text.DidYouMean(name, slices.Sorted(maps.Keys(x))))
	}
	versions := make([]string, 0, len(entries))
	for _, e := range entries {
		versions = append(versions, e.Version)
	}
	chosen, err := Choose(name, version, versions)
	if err != nil {
		return Entry{}, err
	}
	return entries[slices.Index(versions, chosen)], nil
}

// charts are entries as they are parsed, by the names of their charts.
type charts map[string][]*Entry

// listing is an index that is being read.
type listing struct {
	APIVersion string `yaml:"apiVersion"`
	Entries    charts `yaml:"entries"`

	index  Index
	number int
}

// add adds entries of a chart.
func (l *listing) add(name string, entries ...*Entry) error {
	for _, e := range entries {
		if e == nil || e.Version == "" || len(e.URLs) == 0 {
			continue
		}
		if l.number++; l.number > maxEntries {
			return fmt.Errorf("it has more than %d versions of charts", maxEntries)
		}
		l.index[name] = append(l.index[name], Entry{Name: e.Name, Version: e.Version, Digest: e.Digest, URLs: slices.Clone(e.URLs[:1])})
	}
	return nil
}

func (l *listing) addAll(found charts) error {
	for name, entries := range found {
		if err := l.add(name, entries...); err != nil {
			return err
		}
	}
	return nil
}

// readYAML parses the whole index.
func (l *listing) readYAML(data []byte) error {
	if err := decode(data, maxWholeKeys, l); err != nil {
		return err
	}
	defer func() { l.Entries = nil }()
	return l.addAll(l.Entries)
}

// readJSON reads valid JSON.
func (l *listing) readJSON(data []byte) error {
	return eachMember(json.NewDecoder(bytes.NewReader(data)), func(key string, from *json.Decoder) error {
		switch key {
		case "entries":
			return eachMember(from, l.readChart)
		case "apiVersion":
			return from.Decode(&l.APIVersion)
		}
		return from.Decode(new(json.RawMessage))
	})
}

// readChart reads the list of a chart's entries.
func (l *listing) readChart(name string, from *json.Decoder) error {
	return eachValue(from, '[', func() error {
		var part json.RawMessage
		if err := from.Decode(&part); err != nil {
			return err
		}
		if len(part) > maxPartBytes {
			return partError(name)
		}
		var e *Entry
		if err := json.Unmarshal(part, &e); err != nil {
			return err
		}
		return l.add(name, e)
	})
}

// eachMember visits the members of a JSON object; visit reads the value.
func eachMember(from *json.Decoder, visit func(key string, from *json.Decoder) error) error {
	return eachValue(from, '{', func() error {
		key, err := from.Token()
		if err != nil {
			return err
		}
		return visit(fmt.Sprint(key), from)
	})
}

// eachValue visits what a JSON object or list contains. There is nothing in null.
func eachValue(from *json.Decoder, opening json.Delim, visit func() error) error {
	switch token, err := from.Token(); {
	case err != nil:
		return err
	case token == nil:
		return nil
	case token != opening:
		return fmt.Errorf("there is %.20q instead of %s", fmt.Sprint(token), opening)
	}
	for from.More() {
		if err := visit(); err != nil {
			return err
		}
	}
	_, err := from.Token()
	return err
}

// readBlocks reads an index in the form that Helm writes: YAML in which each chart is a key below entries, and each version an item of its list, all of them on
// lines of their own.
func (l *listing) readBlocks(data []byte) error {
	var rest []byte
	isForm := false
	for block := range split(data, isKey(0)) {
		key, below, _ := bytes.Cut(block, []byte("\n"))
		if string(bytes.TrimRight(key, " \r")) == "entries:" {
			isForm = true
			if err := l.readCharts(below); err != nil {
				return err
			}
			continue
		}
		if rest = append(rest, block...); len(rest) > maxPartBytes {
			return fmt.Errorf("it has more than %d bytes beside its entries", maxPartBytes)
		}
	}
	if !isForm {
		return fmt.Errorf("it has more than %d bytes, and not the form that Helm writes", maxWholeBytes)
	}
	return decode(rest, maxPartKeys, l)
}

// readCharts reads the entries of all charts.
func (l *listing) readCharts(below []byte) error {
	for block := range split(below, isKey(indentOf(below))) {
		if len(block) > maxPartBytes {
			if err := l.readVersions(block); err != nil {
				return err
			}
			continue
		}
		var found charts
		err := decode(block, maxPartKeys, &found)
		if err == nil {
			err = l.addAll(found)
		}
		if err != nil {
			return fmt.Errorf("chart %s: %w", shownKey(block), err)
		}
	}
	return nil
}

// readVersions reads the entries of a chart with many of them.
func (l *listing) readVersions(block []byte) error {
	key, below, _ := bytes.Cut(block, []byte("\n"))
	var named map[string]any
	if len(key) <= maxPartBytes {
		if err := decode(key, maxPartKeys, &named); err != nil {
			return fmt.Errorf("chart %s: %w", shownKey(block), err)
		}
	}
	for name, value := range named {
		if value != nil || len(named) > 1 {
			break
		}
		for item := range split(below, isItem(indentOf(below))) {
			if len(item) > maxPartBytes {
				return partError(name)
			}
			var entries []*Entry
			if err := decode(item, maxPartKeys, &entries); err != nil {
				return fmt.Errorf("chart %s: %w", text.Quote(name), err)
			}
			if err := l.add(name, entries...); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("chart %s has more than %d bytes, and not the form that Helm writes", shownKey(block), maxPartBytes)
}

// shownKey returns the first line of a part, for a message.
func shownKey(block []byte) string {
	line, _, _ := bytes.Cut(block, []byte("\n"))
	return text.Quote(string(bytes.TrimSuffix(bytes.TrimSpace(line[:min(len(line), maxShownBytes)]), []byte(":"))))
}

func partError(name string) error {
	return fmt.Errorf("an entry of chart %s has more than %d bytes", text.Quote(name), maxPartBytes)
}

// split returns the parts of a text: each begins with a line for which begins is true, but the first one may begin otherwise.
func split(whole []byte, begins func(line []byte) bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start, at := 0, 0
		for line := range bytes.Lines(whole) {
			if at > start && begins(line) {
				if !yield(whole[start:at]) {
					return
				}
				start = at
			}
			at += len(line)
		}
		if at > start {
			yield(whole[start:at])
		}
	}
}

// isKey returns a function that reports whether a line is a key of a map of that indentation, or the end of the map. The value of a key that is too long for its
// line begins with a colon.
func isKey(indent int) func(line []byte) bool {
	return func(line []byte) bool {
		content := bytes.TrimLeft(line, " ")
		return len(line)-len(content) <= indent && !isEmpty(content) && content[0] != '-' && !bytes.HasPrefix(content, []byte(": "))
	}
}

// isItem returns a function that reports whether a line begins an item of a list of that indentation.
func isItem(indent int) func(line []byte) bool {
	return func(line []byte) bool {
		content := bytes.TrimLeft(line, " ")
		return len(line)-len(content) == indent && bytes.HasPrefix(content, []byte("-"))
	}
}

// indentOf returns the indentation of the first line with content.
func indentOf(lines []byte) int {
	for line := range bytes.Lines(lines) {
		if content := bytes.TrimLeft(line, " "); !isEmpty(content) {
			return len(line) - len(content)
		}
	}
	return 0
}

// isEmpty reports whether a line without its indentation is empty or a comment.
func isEmpty(content []byte) bool {
	content = bytes.TrimSpace(content)
	return len(content) == 0 || content[0] == '#'
}
