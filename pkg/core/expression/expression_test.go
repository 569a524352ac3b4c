package expression

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestHolds(t *testing.T) {
	object := map[string]any{
		"count": int64(3), "share": 0.5, "name": "a",
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		"huge":   strings.Repeat("a", 1<<20),
	}
	for name, tc := range map[string]struct {
		expression string
		want       bool
		problem    string
		missing    bool
	}{
		"a comparison":            {expression: "self.count >= 3", want: true},
		"a fraction":              {expression: "self.share == 0.5", want: true},
		"an integer and a number": {expression: "self.count > self.share", want: true},
		"a condition":             {expression: "self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')", want: true},
		"the first that matches":  {expression: "self.status.conditions.filter(c, c.type == 'Ready')[0].status == 'True'", want: true},
		"a field that is missing": {expression: "self.status.phase == 'Ready'", problem: `there is no field "phase"`, missing: true},
		"a field that is asked":   {expression: "has(self.status.phase)"},
		"a key that is missing":   {expression: "self['spec']['x'] == 1", problem: `there is no field "spec"`, missing: true},
		"an entry that is missing": {
			expression: "self.status.conditions.filter(c, c.type == 'Stalled')[0].status == 'True'",
			problem:    "there is no entry 0 in a list", missing: true,
		},
		"a field of a string":    {expression: "self.name.first == 'a'", problem: `there is no field "first"`, missing: true},
		"another type":           {expression: "self.name > 1", problem: "no such overload"},
		"no bool":                {expression: "self.name", problem: "the result is not bool"},
		"division by zero":       {expression: "self.count / 0 == 1", problem: "division by zero"},
		"a search that is long":  {expression: "self.huge.matches('(a*)*b')", problem: "its cost for this object exceeds the limit of 100000"},
		"a syntax error":         {expression: "self.", problem: "line 1, column 6: Syntax error"},
		"an unknown variable":    {expression: "object.x == 1", problem: "line 1, column 1: undeclared reference to 'object'; the only variable is self"},
		"a list that is built":   {expression: "(self.status.conditions + []).size() == 1", problem: `line 1, column 25: function "+" is not available`},
		"a list in a filter":     {expression: "[1].filter(x, [x + x].size() == 1).size() == 1", problem: `line 1, column 18: function "+" is not available`},
		"a filter's own result":  {expression: "[1].filter(x, (@result + @result).size() == 1).size() == 1", problem: "line 1, column 16: Syntax error"},
		"its former name":        {expression: "[1].filter(x, (__result__ + [1]).size() == 1).size() == 1", problem: `line 1, column 16: function "result" is not available`},
		"a type that is certain": {expression: "'a'", problem: "the expression returns string and not bool"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Over("self").Holds(tc.expression, object)
			if got != tc.want || (tc.problem == "") != (err == nil) || err != nil && !strings.HasPrefix(err.Error(), tc.problem) {
				t.Errorf("got %v, %v; want %v, %s", got, err, tc.want, tc.problem)
			}
			if missing := (*MissingError)(nil); errors.As(err, &missing) != tc.missing {
				t.Errorf("missing: got %v, want %v", !tc.missing, tc.missing)
			}
		})
	}
}

func TestText(t *testing.T) {
	for expression, want := range map[string]string{
		"'fixed'":                       "fixed",
		"self.message":                  "of the object",
		"has(self.x) ? self.x : 'no x'": "no x",
		"self.count":                    "error: the result is not string",
		"self.count == 3":               "error: the expression returns bool and not string",
		"self.x":                        `error: there is no field "x"`,
	} {
		got, err := Over("self").Text(expression, map[string]any{"message": "of the object", "count": int64(3)})
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}

// The programs do not grow with the expressions of a tenant who writes new ones forever.
func TestProgramsAreBounded(t *testing.T) {
	l := Over("self")
	for i := range maxPrograms + 1 {
		if err := l.Check(fmt.Sprintf("%d == 0", i), Bool); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.known) > maxPrograms {
		t.Errorf("%d expressions are kept, more than %d", len(l.known), maxPrograms)
	}
}

// The limit holds for a search in a search, and for one that an expression nests.
func TestCostIsLimited(t *testing.T) {
	items := make([]any, 20_000)
	for i := range items {
		items[i] = int64(i)
	}
	for _, expression := range []string{
		"self.items.all(i, self.items.all(j, i >= 0 && j >= 0))",
		"self.items.filter(i, self.items.filter(j, i >= j).size() > 0).size() > 0",
	} {
		_, err := Over("self").Holds(expression, map[string]any{"items": items})
		if err == nil || !strings.Contains(err.Error(), "exceeds the limit") {
			t.Errorf("%s: got %v", expression, err)
		}
	}
}
