package yaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// laughs returns a text with levels of anchors, each of which holds ten aliases to the one before.
func laughs(levels int) string {
	text := "l0: &l0 [ha]\n"
	for i := range levels {
		text += fmt.Sprintf("l%d: &l%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i), 10), ","))
	}
	return text
}

// aliases returns a text with one scalar of that many bytes and aliases to it.
func aliases(bytes, count int) string {
	return "a: &a " + strings.Repeat("x", bytes) + "\nb: [" + strings.TrimSuffix(strings.Repeat("*a,", count), ",") + "]\n"
}

// tests are texts with their size, or with the error of a limit of 1 MiB.
var tests = map[string]struct {
	text string
	size int
	want string
}{
	"a scalar":                            {text: "abc", size: ValueBytes + 3},
	"a map":                               {text: "a: b", size: 3*ValueBytes + 2},
	"a list":                              {text: "[a, bc]", size: 3*ValueBytes + 3},
	"an empty value":                      {text: "a:", size: 3*ValueBytes + 1},
	"comments count nothing":              {text: "# a comment\na: b # and one more\n", size: 3*ValueBytes + 2},
	"an alias counts like its anchor":     {text: "a: &a bcd\ne: *a", size: 5*ValueBytes + 8},
	"a merged map counts like its anchor": {text: "a: &a {b: c}\nd:\n  <<: *a", size: 11*ValueBytes + 8},
	"an anchor that is set again":         {text: "a: &a x\nb: *a\nc: &a xyz\nd: *a", size: 9*ValueBytes + 12},
	"an anchor of no value":               {text: "a: &a\nb: *a", size: 5*ValueBytes + 2},
	"text that looks like an alias":       {text: "schedule: '*/5 * * * *'\ncommand: a && b *c", size: 5*ValueBytes + 35},
	"a hundred levels":                    {text: nestedLists(100), size: 100 * ValueBytes},
	"a list of scalars in a text":         {text: "a: |\n  " + strings.Repeat("[1,2],", 5000), size: 3*ValueBytes + 30001},

	"300 aliases to a long scalar":      {text: aliases(100_000, 300), want: "it expands to more than 1 MiB"},
	"300 merged maps":                   {text: "a: &a {x: " + strings.Repeat("x", 10_000) + "}\nb:\n" + strings.Repeat("- <<: *a\n", 300), want: "it expands to more than 1 MiB"},
	"ten levels of ten aliases":         {text: laughs(10), want: "it expands to more than 1 MiB"},
	"more than any number can count":    {text: laughs(80), want: "it expands to more than 1 MiB"},
	"a million values":                  {text: "[" + strings.Repeat("a,", 500_000) + "]", want: "it expands to more than 1 MiB"},
	"keys without values":               {text: "{" + strings.Repeat("a,", 20_000) + "}", want: "it expands to more than 1 MiB"},
	"a long text":                       {text: "a: " + strings.Repeat("x", 1<<20), want: "it expands to more than 1 MiB"},
	"101 levels":                        {text: nestedLists(101), want: "nested more than 100 levels deep"},
	"9000 levels":                       {text: nestedLists(9000), want: "nested more than 100 levels deep"},
	"levels by aliases":                 {text: "a: &a " + nestedLists(60) + "\nb: " + strings.Repeat("[", 60) + "*a" + strings.Repeat("]", 60), want: "nested more than 100 levels deep"},
	"an anchor that contains itself":    {text: "a: &a [*a]", want: "an anchor contains an alias to itself"},
	"an anchor that contains it deeper": {text: "a: &a {b: [{c: *a}]}", want: "an anchor contains an alias to itself"},
	"an unknown anchor":                 {text: "a: *b", want: "unknown anchor 'b' referenced"},
	"invalid YAML":                      {text: "a: [", want: "did not find expected node content"},
}

func nestedLists(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

func TestFirst(t *testing.T) {
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			root, second, err := First(test.text, 1<<20)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v, want %s", err, test.want)
				}
				return
			}
			if err != nil || second != nil {
				t.Fatal(err, second)
			}
			measured := &measurement{limit: 1 << 20, anchored: map[*yaml.Node]extent{}}
			if got := measured.of(root.Content[0]).bytes; got != test.size {
				t.Errorf("got %d bytes, want %d", got, test.size)
			}
		})
	}
}

func TestFirstOfSeveral(t *testing.T) {
	first, second, err := First("a: b\n---\nc: d\n", 1<<20)
	if err != nil || first.Content[0].Content[0].Value != "a" || second == nil || second.Line != 2 {
		t.Error(first, second, err)
	}
	if _, second, err = First("a: b\n---\n[", 1<<20); err != nil || second == nil {
		t.Error("a second document that is invalid is a second document:", second, err)
	}
	if _, _, err = First("# nothing\n", 1<<20); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// TestJSON checks that a text has the same size before its aliases are written out as afterwards, and is rejected before.
func TestJSON(t *testing.T) {
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			encoded, err := JSON(test.text, 1<<20)
			if err == nil {
				var value any
				if err = json.Unmarshal(encoded, &value); err == nil {
					_, err = Size(value)
				}
			}
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Fatalf("got %v, want %s", err, test.want)
			}
		})
	}
}

// TestJSONRejectsKeysThatAreSetTwice checks that no value is lost silently.
func TestJSONRejectsKeysThatAreSetTwice(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\na: 3\n":                                `yaml: line 3: key "a" is already set on line 1`,
		"a: [{b: 1,\n b: 2}]":                               `yaml: line 2: key "b" is already set on line 1`,
		"a: &a {b: 1}\nc:\n  <<: *a\n  d: 1\n  d: 2\n":      `yaml: line 5: key "d" is already set on line 4`,
		"on: 1\ntrue: 2\n":                                  `yaml: line 2: key true is set twice`,
		"a: &a {b: 1, c: 2}\nd: {<<: *a, b: 3}\n":           "",
		"a: &a {b: 1}\nd: {<<: [*a, {b: 2, c: 3}], b: 3}\n": "",
		"a: {b: 1}\nc: {b: 1}\n":                            "",
	} {
		_, err := JSON(text, 1<<20)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestSizeOfValues(t *testing.T) {
	for text, want := range map[string]int{
		`null`:              ValueBytes,
		`"abc"`:             ValueBytes + 3,
		`{"a":"b","c":1.5}`: 5*ValueBytes + 3,
		`[[],{},"x",true]`:  5*ValueBytes + 1,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if got, err := Size(value); got != want || err != nil {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
}

// FuzzJSON checks that the number of values is never underestimated, and that the computed size is at least that of the converted text.
func FuzzJSON(f *testing.F) {
	for _, test := range tests {
		if len(test.text) < 10_000 {
			f.Add(test.text)
		}
	}
	for _, text := range []string{"- - a\n- ? b\n  : c", "{a: b, c, ? d : e, [f]: g}", "[a: , ?, :, b]", "a: 'x\n  y'\n", "a\u2028b: c\u0085- d", "!!str a: !x b", "{\"a\":1}"} {
		f.Add(text)
	}
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, text string) {
		var root yaml.Node
		if len(text) < limit && yaml.Unmarshal([]byte(text), &root) == nil {
			if values := count(&root); values > maxValues(text) {
				t.Errorf("%d values of %q are underestimated as %d", values, text, maxValues(text))
			}
		}
		encoded, err := JSON(text, limit)
		if err != nil {
			return
		}
		var value any
		if json.Unmarshal(encoded, &value) != nil {
			return
		}
		// A merge replaces values, and writes none twice.
		if size, err := Size(value); err == nil && size > limit+ValueBytes {
			t.Errorf("%q has %d bytes after it was checked", text, size)
		}
	})
}

// count returns the number of nodes, aliases counted once.
func count(node *yaml.Node) int {
	if node.Kind == yaml.AliasNode {
		return 1
	}
	total := 1
	for _, item := range node.Content {
		total += count(item)
	}
	return total
}
