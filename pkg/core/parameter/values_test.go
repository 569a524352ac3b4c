package parameter_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

func TestValues(t *testing.T) {
	for sentence, test := range map[string]struct {
		def   kudo.Parameter
		given map[string]string
		want  any
	}{
		"a given value goes before the default":                  {kudo.Parameter{Default: new("1")}, map[string]string{"P": "2"}, "2"},
		"the default is used":                                    {kudo.Parameter{Default: new("1")}, nil, "1"},
		"an empty string that was given is a value":              {kudo.Parameter{Default: new("1"), Required: new(true)}, map[string]string{"P": ""}, ""},
		"an optional parameter without value is empty":           {kudo.Parameter{}, nil, ""},
		"an optional integer without value is empty":             {kudo.Parameter{Type: kudo.IntegerType}, nil, ""},
		"an optional integer may be emptied":                     {kudo.Parameter{Type: kudo.IntegerType, Default: new("1")}, map[string]string{"P": ""}, ""},
		"an optional array without value is an empty list":       {kudo.Parameter{Type: kudo.ArrayType}, nil, []any{}},
		"an optional map without value is an empty map":          {kudo.Parameter{Type: kudo.MapType}, nil, map[string]any{}},
		"an integer keeps its text":                              {kudo.Parameter{Type: kudo.IntegerType}, map[string]string{"P": "007"}, "007"},
		"an integer has no bounds":                               {kudo.Parameter{Type: kudo.IntegerType}, map[string]string{"P": "-99999999999999999999"}, "-99999999999999999999"},
		"a number has no bounds":                                 {kudo.Parameter{Type: kudo.NumberType}, map[string]string{"P": "1e400"}, "1e400"},
		"a number keeps its text":                                {kudo.Parameter{Type: kudo.NumberType}, map[string]string{"P": "1.10"}, "1.10"},
		"a boolean keeps its text":                               {kudo.Parameter{Type: kudo.BooleanType}, map[string]string{"P": "T"}, "T"},
		"an empty value is outside of enums":                     {kudo.Parameter{Enum: []string{"a", "b"}, Required: new(true), Default: new("a")}, map[string]string{"P": ""}, ""},
		"a required list with an empty default":                  {kudo.Parameter{Type: kudo.ArrayType, Required: new(true), Default: new("")}, nil, []any{}},
		"a value of an enum":                                     {kudo.Parameter{Enum: []string{"a", "b"}}, map[string]string{"P": "b"}, "b"},
		"an enum of arrays compares content":                     {kudo.Parameter{Type: kudo.ArrayType, Enum: []string{`["a",1]`}}, map[string]string{"P": "[a, 1]"}, []any{"a", int64(1)}},
		"an array keeps integers exact":                          {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": "[2000000, 9007199254740993]"}, []any{int64(2000000), int64(9007199254740993)}},
		"an array keeps what does not fit into 64 bits":          {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": "[99999999999999999999]"}, []any{json.Number("99999999999999999999")}},
		"an array keeps the digits of numbers":                   {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": "[1.10, 1e6, 1e400, .inf]"}, []any{json.Number("1.10"), json.Number("1e6"), json.Number("1e400"), ".inf"}},
		"an array distinguishes texts, booleans and null":        {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": `["1", "1e400", !!str 1, true, null, 2020-01-01, yes]`}, []any{"1", "1e400", "1", true, nil, "2020-01-01", "yes"}},
		"an array keeps leading zeros":                           {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": `[0123, -007, {a: 00}, 0]`}, []any{"0123", "-007", map[string]any{"a": "00"}, int64(0)}},
		"an array understands YAML's other integers":             {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": `[0x1F, 0o17]`}, []any{int64(31), int64(15)}},
		"a map may be written as a block, and its keys are text": {kudo.Parameter{Type: kudo.MapType}, map[string]string{"P": "a:\n  1: x\ntrue: [y]\n"}, map[string]any{"a": map[string]any{"1": "x"}, "true": []any{"y"}}},
		"a map may be written as JSON":                           {kudo.Parameter{Type: kudo.MapType}, map[string]string{"P": `{"a":{"b":2000000}}`}, map[string]any{"a": map[string]any{"b": int64(2000000)}}},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.def.Name = "P"
			got, err := parameter.Values([]kudo.Parameter{test.def}, test.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"P": test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValuesRefuses(t *testing.T) {
	for sentence, test := range map[string]struct {
		def   kudo.Parameter
		given map[string]string
		want  string
	}{
		"a required parameter without value":              {kudo.Parameter{Required: new(true)}, nil, `parameter "P": required, but has neither a value nor a default: set it`},
		"a required parameter that is given empty":        {kudo.Parameter{Required: new(true)}, map[string]string{"P": ""}, `parameter "P": required, but has neither a value nor a default: set it`},
		"text for an integer":                             {kudo.Parameter{Type: kudo.IntegerType}, map[string]string{"P": "three"}, `parameter "P": value "three": must be an integer, such as 3`},
		"a number for an integer":                         {kudo.Parameter{Type: kudo.IntegerType}, map[string]string{"P": "1.5"}, `parameter "P": value "1.5": must be an integer, such as 3`},
		"text for a number":                               {kudo.Parameter{Type: kudo.NumberType}, map[string]string{"P": "NaN"}, `parameter "P": value "NaN": must be a decimal number, such as 0.5 or 1e6`},
		"text for a boolean":                              {kudo.Parameter{Type: kudo.BooleanType}, map[string]string{"P": "yes"}, `parameter "P": value "yes": must be true or false`},
		"a default of the wrong type":                     {kudo.Parameter{Type: kudo.BooleanType, Default: new("on")}, nil, `parameter "P": value "on": must be true or false`},
		"a map for an array":                              {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": "{a: b}"}, `parameter "P": must be a list, such as [a, b]`},
		"an array for a map":                              {kudo.Parameter{Type: kudo.MapType}, map[string]string{"P": "[a]"}, `parameter "P": must be a map, such as {a: b}`},
		"text that is no YAML":                            {kudo.Parameter{Type: kudo.MapType}, map[string]string{"P": "{a"}, `parameter "P": must be a map, such as {a: b}: yaml: line 1: did not find expected ',' or '}'`},
		"a key that is set twice":                         {kudo.Parameter{Type: kudo.MapType}, map[string]string{"P": "{a: 1, a: 2}"}, `parameter "P": key "a" is set twice`},
		"an alias":                                        {kudo.Parameter{Type: kudo.ArrayType}, map[string]string{"P": "[&x a, *x]"}, `parameter "P": anchors and aliases are not supported: write the value out`},
		"a key that is a list":                            {kudo.Parameter{Type: kudo.MapType}, map[string]string{"P": "{[a]: 1}"}, `parameter "P": line 1: a key must be a string`},
		"a value that is not in the enum":                 {kudo.Parameter{Enum: []string{"a", "b"}}, map[string]string{"P": "c"}, `parameter "P": value "c": must be one of "a", "b"`},
		"a type that does not exist":                      {kudo.Parameter{Type: "list"}, map[string]string{"P": "c"}, `parameter "P": unknown type "list": the package must use one of string, integer, number, boolean, array, map`},
		"names that are not defined, sorted":              {kudo.Parameter{}, map[string]string{"Z": "1", "A": "1"}, `parameter "A": not defined: the operator has P; parameter "Z": not defined: the operator has P`},
		"a name that is misspelt":                         {kudo.Parameter{}, map[string]string{"p": "1"}, `parameter "p": not defined: did you mean P?`},
		"a list that may hold a password":                 {kudo.Parameter{Type: kudo.ArrayType, Default: new("[]")}, map[string]string{"P": "hunter2"}, `parameter "P": must be a list, such as [a, b]`},
		"text that is too long":                           {kudo.Parameter{}, map[string]string{"P": strings.Repeat("x", parameter.MaxBytes)}, `parameter "P": all parameters together have 524296 bytes, more than the limit of 524288 for an Instance, and this one is the largest with 524288: shorten it, or store it in a Secret or ConfigMap and pass the name of that object`},
		"every problem, defined parameters before others": {kudo.Parameter{Type: kudo.IntegerType}, map[string]string{"P": "x", "A": "1"}, `parameter "P": value "x": must be an integer, such as 3; parameter "A": not defined: the operator has P`},
		"a long value, cut":                               {kudo.Parameter{Type: kudo.IntegerType}, map[string]string{"P": strings.Repeat("é", 61)}, `parameter "P": value "` + strings.Repeat("é", 60) + `"…: must be an integer, such as 3`},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.def.Name = "P"
			defs := []kudo.Parameter{test.def}
			_, err := parameter.Values(defs, test.given)
			var invalid *parameter.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an InvalidError", err)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValuesRefusesDeepNesting(t *testing.T) {
	defs := []kudo.Parameter{{Name: "P", Type: kudo.ArrayType}}
	given := map[string]string{"P": strings.Repeat("[", 80) + strings.Repeat("]", 80)}
	if _, err := parameter.Values(defs, given); err == nil || !strings.Contains(err.Error(), "nested deeper than 64 levels") {
		t.Errorf("got %v", err)
	}
}

func TestValuesTakesWhatAnInstanceCanHold(t *testing.T) {
	defs := []kudo.Parameter{{Name: "A"}, {Name: "B"}}
	const frame = len(`{"A":"","B":""}`)
	given := map[string]string{"A": "x", "B": strings.Repeat("y", parameter.MaxBytes-frame-1)}
	if _, err := parameter.Values(defs, given); err != nil {
		t.Errorf("%d bytes: %v", parameter.MaxBytes, err)
	}
	given["A"] = "xx"
	if _, err := parameter.Values(defs, given); !strings.HasPrefix(text(err), `parameter "B": all parameters together have 524289 bytes`) {
		t.Errorf("one byte more: %v", err)
	}
}

// The parameters that switch a task are validated together with the others: an admitted value must not fail the task.
func TestValidateJudgesWhatSwitchesATask(t *testing.T) {
	task := func(kind string, spec kudo.TaskSpec) kudo.Task { return kudo.Task{Name: "t", Kind: kind, Spec: spec} }
	toggle := kudo.TaskSpec{ToggleTaskSpec: kudo.ToggleTaskSpec{Parameter: "ON"}}
	enabling := kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{EnablingParameter: "ON"}}
	for sentence, test := range map[string]struct {
		task  kudo.Task
		def   kudo.Parameter
		given map[string]string
		want  string
	}{
		"a Toggle by a text that converts":         {task("Toggle", toggle), kudo.Parameter{}, map[string]string{"ON": "T"}, ""},
		"a Toggle by a text that does not":         {task("Toggle", toggle), kudo.Parameter{}, map[string]string{"ON": "yes"}, `parameter "ON": value "yes": must be true or false`},
		"a Toggle by a boolean":                    {task("Toggle", toggle), kudo.Parameter{Type: kudo.BooleanType}, map[string]string{"ON": "yes"}, `parameter "ON": value "yes": must be true or false`},
		"a Toggle by nothing":                      {task("Toggle", toggle), kudo.Parameter{Type: kudo.BooleanType}, nil, `parameter "ON": must be true or false`},
		"a Toggle by what was emptied":             {task("Toggle", toggle), kudo.Parameter{Default: new("true")}, map[string]string{"ON": ""}, `parameter "ON": must be true or false`},
		"a Toggle by a default":                    {task("Toggle", toggle), kudo.Parameter{Default: new("false")}, nil, ""},
		"a child enabled by a text that does not":  {task("KudoOperator", enabling), kudo.Parameter{}, map[string]string{"ON": "on"}, `parameter "ON": value "on": must be true or false`},
		"the same by its alias":                    {task("Operator", enabling), kudo.Parameter{}, map[string]string{"ON": "on"}, `parameter "ON": value "on": must be true or false`},
		"a task of a kind that it does not switch": {task("Apply", toggle), kudo.Parameter{}, map[string]string{"ON": "yes"}, ""},
		"a parameter that does not exist":          {task("Toggle", kudo.TaskSpec{ToggleTaskSpec: kudo.ToggleTaskSpec{Parameter: "OFF"}}), kudo.Parameter{}, nil, `parameter "OFF": enables task "t", but is not defined in the OperatorVersion: push a corrected version`},
		"a child by one that does not exist":       {task("KudoOperator", kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{EnablingParameter: "OFF"}}), kudo.Parameter{}, nil, `parameter "OFF": enables task "t", but is not defined in the OperatorVersion: push a corrected version`},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.def.Name = "ON"
			err := parameter.Validate(&kudo.OperatorVersionSpec{Parameters: []kudo.Parameter{test.def}, Tasks: []kudo.Task{test.task}}, test.given, nil)
			if diff := cmp.Diff(test.want, text(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEffective(t *testing.T) {
	defs := []kudo.Parameter{{Name: "WITH", Default: new("d")}, {Name: "WITHOUT"}}
	for sentence, test := range map[string]struct {
		given   map[string]string
		name    string
		value   string
		defined bool
	}{
		"given":                       {map[string]string{"WITH": "g"}, "WITH", "g", true},
		"given and empty":             {map[string]string{"WITH": ""}, "WITH", "", true},
		"defaulted":                   {nil, "WITH", "d", true},
		"neither":                     {nil, "WITHOUT", "", true},
		"not defined, although given": {map[string]string{"OTHER": "g"}, "OTHER", "", false},
		"neither defined nor given":   {nil, "OTHER", "", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			value, defined := parameter.Effective(defs, test.given, test.name)
			if value != test.value || defined != test.defined {
				t.Errorf("got %q, %v; want %q, %v", value, defined, test.value, test.defined)
			}
		})
	}
}

func TestBool(t *testing.T) {
	defs := []kudo.Parameter{{Name: "ON", Default: new("true"), Type: kudo.BooleanType}, {Name: "TEXT"}}
	for sentence, test := range map[string]struct {
		given map[string]string
		name  string
		want  bool
		err   string
	}{
		"a default":                 {nil, "ON", true, ""},
		"a given value":             {map[string]string{"ON": "false"}, "ON", false, ""},
		"a string that converts":    {map[string]string{"TEXT": "T"}, "TEXT", true, ""},
		"a string that does not":    {map[string]string{"TEXT": "yes"}, "TEXT", false, `parameter "TEXT": value "yes": must be true or false`},
		"an empty string":           {nil, "TEXT", false, `parameter "TEXT": must be true or false`},
		"a name that is not there":  {map[string]string{"X": "true"}, "X", false, `parameter "X": not defined: the operator has ON, TEXT`},
		"a value of the wrong type": {map[string]string{"ON": "2"}, "ON", false, `parameter "ON": value "2": must be true or false`},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := parameter.Bool(defs, test.given, test.name)
			if message := text(err); got != test.want || message != test.err {
				t.Errorf("got %v, %q; want %v, %q", got, message, test.want, test.err)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	var defs []kudo.Parameter
	for _, name := range strings.Split("ABCDEFGHIJKLMNOP", "") {
		defs = append(defs, kudo.Parameter{Name: name})
	}
	want := `parameter "X": not defined: the operator has A, B, C, D, E, F, G, H, I, J, K, L, and 4 more`
	_, err := parameter.Values(defs, map[string]string{"X": ""})
	if got := text(err); got != want {
		t.Errorf("got %s", got)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func FuzzValues(f *testing.F) {
	for _, seed := range []string{"", "1", "[1, 2.50, {a: b}]", "a: [&x 1, *x]", `{"a": {"b": 1e6}}`, "<<: {a: b}", "? [a]\n: b", "!!int x"} {
		f.Add(seed)
	}
	types := []kudo.ParameterType{"", kudo.StringType, kudo.IntegerType, kudo.NumberType, kudo.BooleanType, kudo.ArrayType, kudo.MapType}
	f.Fuzz(func(t *testing.T, value string) {
		for _, typ := range types {
			defs := []kudo.Parameter{{Name: "P", Type: typ}}
			values, err := parameter.Values(defs, map[string]string{"P": value})
			if err != nil {
				continue
			}
			if text, ok := values["P"].(string); ok && text != value {
				t.Errorf("type %q changed %q to %q", typ, value, text)
			}
			if _, err := json.Marshal(values); err != nil {
				t.Errorf("type %q, value %q: %v", typ, value, err)
			}
		}
	})
}
