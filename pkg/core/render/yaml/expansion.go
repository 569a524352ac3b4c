// Package yaml parses the YAML of packages and parameters, and rejects texts that would become too large: it computes the size of a text
// with all aliases written out, without writing them out. It is pure and touches no cluster.
package yaml

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"
)

// The limits of sizes, in bytes. Each list, map and scalar adds ValueBytes, because a short text may hold a great number of them.
const (
	// MaxDocument limits one document of a template.
	MaxDocument = 8 << 20
	// MaxTask limits all objects that one task renders. Each object adds ObjectBytes.
	MaxTask = 32 << 20
	// MaxFile limits a file of a package.
	MaxFile = 8 << 20
	// MaxParameters limits a parameter file.
	MaxParameters = 4 << 20
	// MaxParameter limits the value of a parameter.
	MaxParameter = 2 << 20
	// MaxIndex limits the index of a repository.
	MaxIndex = 32 << 20

	// ValueBytes is the size of each list, map and scalar besides its text, about what it takes in memory.
	ValueBytes = 64
	// ObjectBytes is the size of the labels and annotations that each object gets.
	ObjectBytes = 1 << 10
	// MaxLevels limits the nesting of lists and maps, as package template does.
	MaxLevels = 100
)

// Error is the error of a text that exceeds a limit. It does not quote the text.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

var (
	errTooDeep     = &Error{fmt.Sprintf("lists and maps are nested more than %d levels deep", MaxLevels)}
	errHoldsItself = &Error{"an anchor contains an alias to itself"}
)

// TooLarge returns the error of a size that exceeds a limit.
func TooLarge(limit int) error {
	return &Error{fmt.Sprintf("it expands to more than %d MiB, with its aliases written out and %d bytes for each value: "+
		"remove aliases, or divide it", limit>>20, ValueBytes)}
}

// First parses the first document of a text. second is the document after it; nil if there is none. The error is io.EOF if there is no
// document, the parser's error, or one of this package.
func First(text string, limit int) (first, second *yaml.Node, err error) {
	leave, err := enter(text, limit)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	decoder := yaml.NewDecoder(strings.NewReader(text))
	first = &yaml.Node{}
	if err := decoder.Decode(first); err != nil {
		return nil, nil, err
	}
	if err := check(first, limit); err != nil {
		return nil, nil, err
	}
	second = &yaml.Node{}
	if err := decoder.Decode(second); errors.Is(err, io.EOF) {
		second = nil
	}
	return first, second, nil
}

// JSON converts a text with one document to JSON, as kubectl does, and rejects keys that are set twice.
func JSON(text string, limit int) ([]byte, error) {
	leave, err := enter(text, limit)
	if err != nil {
		return nil, err
	}
	defer leave()
	if mayExceed(text, limit) {
		var root yaml.Node
		if err := yaml.Unmarshal([]byte(text), &root); err != nil {
			return nil, err
		}
		if err := check(&root, limit); err != nil {
			return nil, err
		}
	}
	encoded, err := kubeyaml.YAMLToJSONStrict([]byte(text))
	repeated := setTwice(err)
	if repeated == nil {
		return encoded, err
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err == nil {
		if err := repetition(&root); err != nil {
			return nil, err
		}
	}
	if strings.Contains(text, "<<") { // a merge sets keys that the map sets, too
		return kubeyaml.YAMLToJSON([]byte(text))
	}
	return nil, repeated
}

var alreadySet = regexp.MustCompile(`(line \d+: key .*) already set in map`)

// setTwice returns the parser's error about a key that is set twice, in the form of its other errors; nil for another error.
func setTwice(err error) error {
	if err == nil {
		return nil
	}
	if found := alreadySet.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Errorf("yaml: %s is set twice", found[1])
	}
	return nil
}

// repetition returns an error about the first key that one map sets twice, in the form of the parser's errors.
func repetition(node *yaml.Node) error {
	lines := map[string]int{}
	for i, item := range node.Content {
		if isKey := node.Kind == yaml.MappingNode && i%2 == 0; isKey && item.Kind == yaml.ScalarNode && item.ShortTag() != "!!merge" {
			if line, exists := lines[item.Value]; exists {
				return fmt.Errorf("yaml: line %d: key %q is already set on line %d", item.Line, item.Value, line)
			}
			lines[item.Value] = item.Line
		}
		if err := repetition(item); err != nil {
			return err
		}
	}
	return nil
}

// Size returns the size of a value that was decoded from JSON. It only fails if the value is nested too deeply.
func Size(value any) (int, error) { return sizeAt(value, MaxLevels) }

func sizeAt(value any, levels int) (size int, err error) {
	size = ValueBytes
	switch v := value.(type) {
	case string:
		return size + len(v), nil
	case map[string]any:
		if levels == 0 {
			return 0, errTooDeep
		}
		for key, item := range v {
			inside, err := sizeAt(item, levels-1)
			if err != nil {
				return 0, err
			}
			size += ValueBytes + len(key) + inside
		}
	case []any:
		if levels == 0 {
			return 0, errTooDeep
		}
		for _, item := range v {
			inside, err := sizeAt(item, levels-1)
			if err != nil {
				return 0, err
			}
			size += inside
		}
	}
	return size, nil
}

// parsedPerKept is how many times more values a text may seem to have than the limit admits. Text in block scalars, such as the JSON of a
// dashboard, seems to have values until it is parsed.
const parsedPerKept = 8

// Estimate returns about the size of a text that is not valid, as far as parsing it takes time.
func Estimate(text string) int { return len(text) + maxValues(text)/parsedPerKept*ValueBytes }

// large admits one large text at a time: the parser takes several hundred bytes of memory for each value.
var large = make(chan struct{}, 1)

// largeValues is the number of values from which a text is large.
const largeValues = 10_000

// enter rejects a text that is too large to be parsed, and waits if another large one is being parsed. The caller must call leave when the
// result of the parser is no longer in use, or is known to be small.
func enter(text string, limit int) (leave func(), err error) {
	values := maxValues(text)
	switch {
	case len(text) > limit || values/parsedPerKept > limit/ValueBytes:
		return nil, TooLarge(limit)
	case values > largeValues:
		large <- struct{}{}
		return func() { <-large }, nil
	default:
		return func() {}, nil
	}
}

// mayExceed reports whether the text might exceed the limit: it may have aliases, or too many values.
func mayExceed(text string, limit int) bool {
	hasAliases := strings.Contains(text, "*") && strings.Contains(text, "&")
	return hasAliases || len(text)+maxValues(text)*ValueBytes > limit
}

// maxValues returns a number that the lists, maps and scalars of a text do not exceed, aliases counted once. YAML separates values by these
// characters and by line breaks; each of them ends one value at most, and begins one list or map at most.
func maxValues(text string) int {
	separators := 1
	for i := range len(text) {
		switch text[i] {
		case ',', ':', '-', '?', '[', '{', '\n', '\r':
			separators++
		case 0x85, 0xA8, 0xA9: // the last bytes of Unicode's line breaks
			separators++
		}
	}
	return 2*separators + 1
}

// check returns an error if a parsed text exceeds the limit of its size or of its nesting.
func check(root *yaml.Node, limit int) error {
	m := &measurement{limit: limit, anchored: map[*yaml.Node]extent{}}
	switch whole := m.of(root); {
	case m.holdsItself:
		return errHoldsItself
	case whole.bytes > limit:
		return TooLarge(limit)
	case whole.levels > MaxLevels:
		return errTooDeep
	default:
		return nil
	}
}

// extent is the size of a part of a text with its aliases written out.
type extent struct{ bytes, levels int }

// measurement adds up sizes. The parts with an anchor are measured once.
type measurement struct {
	limit       int
	anchored    map[*yaml.Node]extent
	holdsItself bool
}

// open is the extent of a part that contains the current one.
var open = extent{bytes: -1}

func (m *measurement) of(node *yaml.Node) extent {
	if node.Kind == yaml.AliasNode {
		known := m.anchored[node.Alias]
		m.holdsItself = m.holdsItself || known == open
		return known
	}
	if node.Anchor != "" {
		m.anchored[node] = open
	}
	total := extent{bytes: ValueBytes + len(node.Value)}
	for _, item := range node.Content {
		inside := m.of(item)
		total.bytes = m.sum(total.bytes, inside.bytes)
		total.levels = max(total.levels, inside.levels)
	}
	if node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode {
		total.levels++
	}
	if node.Anchor != "" {
		m.anchored[node] = total
	}
	return total
}

// sum adds sizes; everything over the limit is equal, so that no sum overflows.
func (m *measurement) sum(a, b int) int { return min(a+b, m.limit+1) }
