package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"go.yaml.in/yaml/v3"
)

// removedFunctions are functions of sprig that templates cannot call. The path functions are pure, except those with the prefix os.
var removedFunctions = []string{
	"env", "expandenv", "getHostByName",
	"base", "dir", "clean", "ext", "isAbs",
	"osBase", "osDir", "osClean", "osExt", "osIsAbs",
}

// functions are the functions that templates can call, see templateFunctions.
var functions = templateFunctions()

// templateFunctions returns the functions that templates can call in addition to text/template's own: sprig's without those that access the
// environment, the file system or the network, and without the path functions (KUDO removed them as well); and toYaml. It includes
// text/template's printing functions, to assign them a cost.
//
// Functions that generate random values or read the clock are available for packages that use them; such a template renders differently
// each time.
func templateFunctions() template.FuncMap {
	f := sprig.TxtFuncMap()
	for _, name := range removedFunctions {
		delete(f, name)
	}
	f["toYaml"] = toYAML
	f["fromJson"] = func(text string) any { value, _ := fromJSON(text); return value }
	f["mustFromJson"] = fromJSON
	f["repeat"] = repeat
	f["until"] = until
	f["untilStep"] = untilStep
	f["seq"] = seq
	for _, name := range []string{"toJson", "toPrettyJson", "toRawJson"} {
		f[name] = inOneLine(f[name].(func(any) string))
	}
	for _, name := range []string{"mustToJson", "mustToPrettyJson", "mustToRawJson"} {
		f[name] = inOneLineOrFailing(f[name].(func(any) (string, error)))
	}
	for _, name := range []string{"merge", "mergeOverwrite"} {
		f[name] = mergingCopies(f[name].(func(map[string]any, ...map[string]any) any))
	}
	for _, name := range []string{"mustMerge", "mustMergeOverwrite"} {
		f[name] = mergingCopiesOrFailing(f[name].(func(map[string]any, ...map[string]any) (any, error)))
	}
	f["print"] = fmt.Sprint
	f["printf"] = fmt.Sprintf
	f["println"] = fmt.Sprintln
	f["html"] = template.HTMLEscaper
	f["js"] = template.JSEscaper
	f["urlquery"] = template.URLQueryEscaper
	return f
}

// toYAML encodes a value like kubectl: sorted keys, exact numbers, no newline at the end. Each string is in one line, and in double quotes
// unless it consists of plain words, so that it is a string wherever the template inserts it.
func toYAML(value any) (string, error) {
	var document yaml.Node
	if err := document.Encode(literalNumbers(value)); err != nil {
		return "", err
	}
	quoteStrings(&document)
	var out strings.Builder
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(&document); err != nil {
		return "", err
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// plainWords matches strings that mean the same without quotes everywhere in YAML, except for those that are the name of another value.
var plainWords = regexp.MustCompile(`^` + plainWord + `( ` + plainWord + `)*$`)

const plainWord = `-{0,2}[A-Za-z0-9_./$]+([-:][A-Za-z0-9_./$+@=%-]+|[-A-Za-z0-9_./$+@=%])*`

func quoteStrings(node *yaml.Node) {
	for _, each := range node.Content {
		quoteStrings(each)
	}
	text := node.Value
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" && (!plainWords.MatchString(text) || strings.HasPrefix(text, "...")) {
		node.Style = yaml.DoubleQuotedStyle
	}
}

// inOneLine wraps a function that encodes JSON: YAML counts a character as a line break that JSON does not.
func inOneLine(encode func(any) string) func(any) string {
	return func(value any) string { return strings.ReplaceAll(encode(value), "\u0085", `\u0085`) }
}

// inOneLineOrFailing is inOneLine for the functions that return an error.
func inOneLineOrFailing(encode func(any) (string, error)) func(any) (string, error) {
	return func(value any) (string, error) {
		text, err := encode(value)
		return strings.ReplaceAll(text, "\u0085", `\u0085`), err
	}
}

// literalNumbers replaces each json.Number, which the YAML encoder treats as text, by a scalar with the same digits.
func literalNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = literalNumbers(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = literalNumbers(item)
		}
		return list
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}
	default:
		return value
	}
}

// fromJSON is sprig's mustFromJson without float64: an integer is an int64, any other number keeps its digits.
func fromJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return exactNumbers(value), nil
}

// exactNumbers replaces, in place, each json.Number that fits by an int64.
func exactNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = exactNumbers(item)
		}
	case []any:
		for i, item := range v {
			v[i] = exactNumbers(item)
		}
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
	}
	return value
}

// mergingCopies wraps a merge function so that it merges copies of all maps but the first. sprig merges the maps themselves into the first,
// so that a map could contain itself: merging it would never end.
func mergingCopies(merge func(map[string]any, ...map[string]any) any) any {
	return func(into map[string]any, from ...map[string]any) any { return merge(into, clones(from)...) }
}

// mergingCopiesOrFailing is mergingCopies for the functions that return an error.
func mergingCopiesOrFailing(merge func(map[string]any, ...map[string]any) (any, error)) any {
	return func(into map[string]any, from ...map[string]any) (any, error) { return merge(into, clones(from)...) }
}

func clones(from []map[string]any) []map[string]any {
	copies := make([]map[string]any, len(from))
	for i, m := range from {
		copies[i], _ = clone(m).(map[string]any)
	}
	return copies
}

// repeat is sprig's, but a negative count is an error. Its length is limited by its cost.
func repeat(count int, text string) (string, error) {
	if count < 0 {
		return "", errors.New("the number of repetitions must not be negative")
	}
	return strings.Repeat(text, count), nil
}

// until is sprig's with a limit: 0, 1, … before count, or 0, -1, … before a negative count.
func until(count int) ([]int, error) {
	if count < 0 {
		return untilStep(0, count, -1)
	}
	return untilStep(0, count, 1)
}

// untilStep is sprig's with a limit: first, first+step, … before last; empty if the step does not lead towards last.
func untilStep(first, last, step int) ([]int, error) {
	items := []int{}
	for i := first; (step > 0 && i < last) || (step < 0 && i > last); i += step {
		if len(items) == maxItems {
			return nil, fmt.Errorf("counting from %d to %d: more than %d items", first, last, maxItems)
		}
		items = append(items, i)
	}
	return items, nil
}

// seq is sprig's with a limit: LAST, FIRST LAST or FIRST STEP LAST, including the last, as text separated by blanks.
func seq(params ...int) (string, error) {
	first, step, last := 1, 0, 0
	switch len(params) {
	case 1:
		last = params[0]
	case 2:
		first, last = params[0], params[1]
	case 3:
		first, step, last = params[0], params[1], params[2]
	default:
		return "", nil
	}
	towards := 1
	if last < first {
		towards = -1
	}
	if len(params) < 3 {
		step = towards
	}
	if last == math.MaxInt || last == math.MinInt {
		return "", fmt.Errorf("counting from %d to %d: more than %d items", first, last, maxItems)
	}
	items, err := untilStep(first, last+towards, step)
	return strings.Trim(fmt.Sprint(items), "[]"), err
}

// clone copies lists and maps; scalars are shared.
func clone(value any) any {
	switch v := value.(type) {
	case map[string]any:
		m := make(map[string]any, len(v))
		for key, item := range v {
			m[key] = clone(item)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = clone(item)
		}
		return list
	case [][]any: // of the function chunk
		lists := make([][]any, len(v))
		for i, list := range v {
			lists[i], _ = clone(list).([]any)
		}
		return lists
	case map[string]string:
		return maps.Clone(v)
	default:
		return value
	}
}
