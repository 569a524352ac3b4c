package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestProgressOmitsOldPlansOfChildren(t *testing.T) {
	plan := func(part string, state kudo.ExecutionStatus, below ...Node) Node {
		return Node{Part: part, State: state, Children: below}
	}
	child := func(state kudo.ExecutionStatus) Node {
		return Node{Children: []Node{plan("Instance shop.cache: plan deploy", state, plan("phase server", state))}}
	}
	var out bytes.Buffer
	p := Progress{out: &out}
	for _, state := range []kudo.ExecutionStatus{kudo.Complete, kudo.InProgress, kudo.Complete} {
		fmt.Fprintln(&out, "---")
		if err := p.Show(plan("shop: plan cache", kudo.InProgress, plan("phase cache", kudo.Complete), child(state))); err != nil {
			t.Fatal(err)
		}
	}
	want := `---
shop: plan cache: IN_PROGRESS
shop: plan cache: phase cache: COMPLETE
---
shop: plan cache: Instance shop.cache: plan deploy: IN_PROGRESS
shop: plan cache: Instance shop.cache: plan deploy: phase server: IN_PROGRESS
---
shop: plan cache: Instance shop.cache: plan deploy: phase server: COMPLETE
shop: plan cache: Instance shop.cache: plan deploy: COMPLETE
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestProgressOfManyFitsTheTerminal shows running items and counts the rest.
func TestProgressOfManyFitsTheTerminal(t *testing.T) {
	var trees []Node
	for i := range 30 {
		n := Node{Text: fmt.Sprintf("kafka on c%02d", i), State: kudo.Complete}
		if i%3 == 2 {
			n.State, n.Children = kudo.InProgress, []Node{{Text: "phase"}, {Text: "phase"}}
		}
		trees = append(trees, n)
	}
	want := []string{"kafka on c02", "kafka on c05", "kafka on c08", "kafka on c11", "… and 26 more"}
	if diff := cmp.Diff(want, fitLines(trees, 5)); diff != "" {
		t.Error(diff)
	}
	if trees[0].Text != "kafka on c00" || len(trees[2].Children) != 2 {
		t.Error("the trees themselves were changed")
	}
}

func TestABufferIsNoTerminal(t *testing.T) {
	if p := NewProgress(&bytes.Buffer{}); p.Live() || p.colors {
		t.Errorf("live %v, colors %v", p.Live(), p.colors)
	}
}

func TestATerminalShowsThatTheHubIsAway(t *testing.T) {
	p := NewProgressOn(&bytes.Buffer{}, false, func() (int, int) { return 80, 24 })
	p.Away = func() string { return "is unreachable" }
	if lines := drawLines(p.hubLine(), whole); len(lines) != 1 || !strings.HasPrefix(lines[0], "the hub is unreachable") {
		t.Errorf("on a terminal stands %q", lines)
	}
}
