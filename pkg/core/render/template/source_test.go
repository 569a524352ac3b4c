package template

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"text/template/parse"
)

func TestTheSourceOfATemplateIsBounded(t *testing.T) {
	end := strings.Repeat("{{ end }}", maxBlocks)
	for name, test := range map[string]struct {
		text string
		line int
		want string
	}{
		"130,000 blocks without an end":      {strings.Repeat("{{if 1}}", 130_000), 1, "blocks such as if and range are nested more than 1000 levels deep"},
		"blocks on lines":                    {strings.Repeat("{{- range .X -}}\n", 2000), 1001, "nested more than 1000 levels deep"},
		"an else if is nested":               {"{{if 1}}" + strings.Repeat("{{else if 1}}", 1000) + "{{end}}", 1, "nested more than 1000 levels deep"},
		"an else with is nested":             {"{{with 1}}" + strings.Repeat("{{else \n with 1}}", 1000) + "{{end}}", 1000, "nested more than 1000 levels deep"},
		"a megabyte of references":           {strings.Repeat("{{.X}}", 170_000), 1, "its actions have more than 256 KiB"},
		"a megabyte of arguments":            {"{{ print" + strings.Repeat(" 1", 500_000) + "}}", 1, "its actions have more than 256 KiB"},
		"a megabyte of arguments, unclosed":  {"{{ print" + strings.Repeat(" 1", 500_000), 1, "its actions have more than 256 KiB"},
		"arguments on lines":                 {"{{ print" + strings.Repeat("\n1", 500_000) + "}}", 500_001, "its actions have more than 256 KiB"},
		"a megabyte of pipes":                {"{{ ." + strings.Repeat("|.", 500_000) + "}}", 1, "its actions have more than 256 KiB"},
		"a megabyte of comments":             {strings.Repeat("{{/* */}}", 120_000), 1, "its actions have more than 256 KiB"},
		"a megabyte of text":                 {strings.Repeat("a: b\n", 200_000), 0, ""},
		"a megabyte in a text":               {"{{ \"" + strings.Repeat("x", 1<<20) + "\" }}", 0, ""},
		"a megabyte in a raw text":           {"{{ `" + strings.Repeat("}}", 1<<19) + "` }}", 0, ""},
		"a megabyte in a comment":            {"{{- /* " + strings.Repeat("{{if 1}}", 1<<17) + " */ -}}", 0, ""},
		"a thousand blocks":                  {strings.Repeat("{{if 1}}", maxBlocks) + end, 0, ""},
		"many blocks one after the other":    {strings.Repeat("{{if 1}}{{else if 2}}{{end}}", 5000), 0, ""},
		"what looks like a block":            {strings.Repeat("{{ifx}}", 5000), 0, ""},
		"what looks like a block, in a text": {strings.Repeat("{{ \"{{if 1}}\" }}", 5000), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkSource("t", test.text)
			var problem *Error
			switch {
			case test.want == "" && err != nil:
				t.Fatal(err)
			case test.want == "":
			case !errors.As(err, &problem) || !strings.Contains(err.Error(), test.want) || problem.Line != test.line:
				t.Fatalf("got %v, want %q in line %d", err, test.want, test.line)
			}
		})
	}
}

// TestParsingTakesLittleMemory parses the templates that take the most memory for each byte that is allowed.
func TestParsingTakesLittleMemory(t *testing.T) {
	const maxBytes = 64 << 20
	for name, text := range map[string]string{
		"references": strings.Repeat("{{.X}}", maxActionBytes/8),
		"dots":       strings.Repeat("{{.}}a", maxActionBytes/6),
		"arguments":  "{{ print" + strings.Repeat(" 1", maxActionBytes/2-10) + "}}",
		"variables":  "{{ print" + strings.Repeat(" $", maxActionBytes/2-10) + "}}",
		"pipes":      "{{ ." + strings.Repeat("|len", maxActionBytes/4-10) + "}}",
		"fields":     "{{ " + strings.Repeat(".a", maxActionBytes/2-10) + "}}",
		"parens":     "{{ print" + strings.Repeat(" (.)", maxActionBytes/4-10) + "}}",
		"nested":     "{{ print " + strings.Repeat("(", 9000) + "1" + strings.Repeat(")", 9000) + "}}",
		"defines":    strings.Repeat("{{define \"a\"}}{{end}}", maxActionBytes/30),
		"blocks":     strings.Repeat("{{if 1}}", maxBlocks) + strings.Repeat("{{end}}", maxBlocks),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := Parse("t", text); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			if bytes := after.TotalAlloc - before.TotalAlloc + after.StackInuse; bytes > maxBytes {
				t.Errorf("parsing %d bytes takes %d MiB", len(text), bytes>>20)
			}
		})
	}
}

// actions returns the number of actions in a part of a template.
func actions(node parse.Node) int {
	var branch *parse.BranchNode
	switch n := node.(type) {
	case *parse.TextNode:
		return 0
	case *parse.ListNode:
		count := 0
		if n != nil {
			for _, inside := range n.Nodes {
				count += actions(inside)
			}
		}
		return count
	case *parse.IfNode:
		branch = &n.BranchNode
	case *parse.RangeNode:
		branch = &n.BranchNode
	case *parse.WithNode:
		branch = &n.BranchNode
	default:
		return 1
	}
	return 1 + actions(branch.List) + actions(branch.ElseList)
}

// FuzzSource checks that no action is missed: each counts some bytes.
func FuzzSource(f *testing.F) {
	for _, seed := range []string{
		"{{ if .X }}a{{ else if .Y }}b{{ end }}", "{{/* c */}}{{- \"}}\" -}}", "{{ `}}` | printf \"%s\\\"}}\" }}", "{{ '}' }}{{.a.b.c}}",
		"{{define \"x\"}}{{template \"x\" .}}{{end}}", "{{ $x := 1 }}{{ range $i, $e := .L }}{{ break }}{{ end }}", "a {{\n print 1\n2 -}} b", "{{- -1 }}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trees, err := parse.Parse("t", text, "{{", "}}", map[string]any(functions), map[string]any{"print": 1, "printf": 1, "len": 1, "index": 1})
		if err != nil {
			return
		}
		s := &source{rest: text, line: 1}
		for s.skipTo("{{") {
			if s.action() != nil {
				return
			}
		}
		nodes := 0
		for _, tree := range trees {
			nodes += actions(tree.Root)
		}
		if nodes*len("{{}}") > s.bytes {
			t.Errorf("%d actions of %q count as %d bytes", nodes, text, s.bytes)
		}
	})
}
