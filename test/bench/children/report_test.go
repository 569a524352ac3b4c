package main

import (
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/test/bench/process"
)

func TestViolations(t *testing.T) {
	for sentence, test := range map[string]struct {
		spoil func(*report)
		want  string
	}{
		"nothing is wrong":       {func(*report) {}, ""},
		"it was slow":            {func(r *report) { r.Deploy.StepToChild.P99 = 2 * targetMilliseconds }, ""},
		"a child is missing":     {func(r *report) { r.Deploy.Children-- }, "deploy: 5 children are there whose step was seen to begin, want 6"},
		"it does not rest":       {func(r *report) { r.Rest.Writes, r.Rest.wrong = 1, []string{"a write"} }, "rest: 1 writes\nrest: a write"},
		"a child ran needlessly": {func(r *report) { r.Update.ChildrenRun++ }, "update: 3 children ran a plan, want 2"},
		"something is left":      {func(r *report) { r.Uninstall.Left = []string{"Pod ns/x"} }, "uninstall: left: Pod ns/x"},
		"a write has failed":     {func(r *report) { r.Update.wrong = []string{"patch x: 403"} }, "update: patch x: 403"},
		"few of many are named": {
			func(r *report) { r.Deploy.wrong = strings.Split("abcdefg", "") }, "deploy: a\ndeploy: b\ndeploy: c\ndeploy: d\ndeploy: e",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &report{Parents: 2, ChildrenEach: 3}
			r.Deploy.Children, r.Update.ChildrenReached, r.Update.ChildrenRun = 6, 2, 2
			test.spoil(r)
			got := ""
			if err := r.Violations(); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAScenarioNamesWhoRanTheWrongPlans(t *testing.T) {
	o := expect(nil, nil)
	for _, ran := range []execution{{"a", "1"}, {"b", "1"}, {"b", "2"}, {"d", "1"}} {
		o.executions[ran] = true
	}
	s := newScenario(o, []string{"a", "b", "c"}, process.Usage{}, process.Usage{})
	want := []string{`Instance "b" ran 2 plans, want 1`, `Instance "c" ran 0 plans, want 1`, `Instance "d" ran 1 plans, want 0`}
	if strings.Join(s.wrong, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", s.wrong, want)
	}
}
