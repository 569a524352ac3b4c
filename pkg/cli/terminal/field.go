package terminal

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// relaxedPath matches a JSONPath with or without braces and the leading dot, as kubectl's --sort-by and custom-columns accept it.
var relaxedPath = regexp.MustCompile(`^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$`)

// Field is a field of the items of a list, given as JSONPath. The zero value is no field.
type Field struct {
	text string
	path *jsonpath.JSONPath
}

// String returns the field as it was given.
func (f *Field) String() string { return f.text }

// Type returns the placeholder of the flag's value in help texts.
func (f *Field) Type() string { return "JSONPATH" }

// Set parses a JSONPath, such as .created or {.state}.
func (f *Field) Set(expression string) error {
	found := relaxedPath.FindStringSubmatch(expression)
	if found == nil {
		return errors.New("must be a JSONPath such as .state or {.state}")
	}
	path := jsonpath.New("field").AllowMissingKeys(true)
	if err := path.Parse("{." + cmp.Or(found[1], found[2]) + "}"); err != nil {
		return err
	}
	f.text, f.path = expression, path
	return nil
}

// values returns the values of the field in an item of decoded JSON; none if the item does not have the field.
func (f *Field) values(item any) ([]any, error) {
	found, err := f.path.FindResults(item)
	if err != nil {
		return nil, err
	}
	var values []any
	for _, results := range found {
		for _, value := range results {
			if value.Kind() == reflect.Interface && value.IsNil() || !value.IsValid() {
				continue
			}
			values = append(values, value.Interface())
		}
	}
	return values, nil
}

// decode returns an item as decoded JSON.
func decode(item any) (any, error) {
	encoded, err := json.Marshal(item)
	if err != nil {
		return nil, fmt.Errorf("encoding the output: %w", err)
	}
	var decoded any
	return decoded, json.Unmarshal(encoded, &decoded)
}

// SortBy sorts the items by a field, and reports whether an item has it. Items without the field come first. Without a field it changes nothing.
func SortBy[T any](items []T, field Field) (bool, error) {
	if field.path == nil {
		return true, nil
	}
	type keyed struct {
		item T
		keys []any
	}
	all, has := make([]keyed, len(items)), false
	for i, item := range items {
		decoded, err := decode(item)
		if err != nil {
			return false, err
		}
		keys, err := field.values(decoded)
		if err != nil {
			return false, err
		}
		all[i], has = keyed{item, keys}, has || len(keys) > 0
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return slices.CompareFunc(a.keys, b.keys, compareValues) })
	for i := range all {
		items[i] = all[i].item
	}
	return has, nil
}

// compareValues compares two values of decoded JSON: numbers by value, all others as texts.
func compareValues(a, b any) int {
	x, isNumber := a.(float64)
	y, areNumbers := b.(float64)
	if isNumber && areNumbers {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b))
}

// FormatColumns prints a table of the given fields of each item.
const FormatColumns = "custom-columns"

// column is a column of -o custom-columns.
type column struct {
	header string
	field  Field
}

// parseColumns parses a list of columns, such as NAME:.addOn,STATE:.state.
func parseColumns(spec string) ([]column, error) {
	var columns []column
	for part := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(part, ":")
		if !ok || header == "" {
			return nil, fmt.Errorf("must be %s=HEADER:JSONPATH[,HEADER:JSONPATH], got %q", FormatColumns, part)
		}
		c := column{header: header}
		if err := c.field.Set(path); err != nil {
			return nil, fmt.Errorf("column %s: %w", header, err)
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// columnsText returns the columns of the items as a table.
func columnsText(columns []column, items []any, withHeader bool) (string, error) {
	var header []string
	if withHeader {
		for _, c := range columns {
			header = append(header, c.header)
		}
	}
	rows := make([][]string, 0, len(items))
	for _, item := range items {
		decoded, err := decode(item)
		if err != nil {
			return "", err
		}
		row := make([]string, len(columns))
		for i, c := range columns {
			if row[i], err = c.cell(decoded); err != nil {
				return "", err
			}
		}
		rows = append(rows, row)
	}
	return Table(header, rows), nil
}

// cell returns the column's cell of an item, as kubectl prints it.
func (c column) cell(item any) (string, error) {
	values, err := c.field.values(item)
	if err != nil {
		return "", fmt.Errorf("column %s: %w", c.header, err)
	}
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = fmt.Sprint(value)
	}
	return cmp.Or(strings.Join(texts, ","), "<none>"), nil
}
