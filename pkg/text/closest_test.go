package text_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/text"
)

func TestClosestMatch(t *testing.T) {
	for sentence, test := range map[string]struct {
		name  string
		names []string
		want  string
	}{
		"a letter is missing":               {"REPLICA", []string{"MEMORY", "REPLICAS"}, "REPLICAS"},
		"a letter too much":                 {"REPLICASS", []string{"MEMORY", "REPLICAS"}, "REPLICAS"},
		"two letters are swapped":           {"descripiton", []string{"displayName", "description"}, "description"},
		"two letters of a short name":       {"kakfa", []string{"kafka"}, "kafka"},
		"two letters at the start":          {"okfka", []string{"kofka"}, "kofka"},
		"a swap and a letter":               {"zookepeerr", []string{"zookeeper"}, "zookeeper"},
		"letters that are no neighbours":    {"fakka", []string{"kafka"}, ""},
		"another case":                      {"replicas", []string{"REPLICAT", "REPLICAS"}, "REPLICAS"},
		"no separators":                     {"nodeCount", []string{"NODE_COUNTS", "NODE_COUNT"}, "NODE_COUNT"},
		"other separators":                  {"node-count", []string{"NODE_COUNT"}, "NODE_COUNT"},
		"the first of two that are alike":   {"NODE_X", []string{"NODE_A", "NODE_B"}, "NODE_A"},
		"the nearer one, wherever":          {"BROKERS", []string{"BROKEXX", "BROKER"}, "BROKER"},
		"three letters are another word":    {"BROKERS", []string{"BROKEXYZ"}, ""},
		"half of a short name":              {"AB", []string{"AC", "ABC"}, ""},
		"a letter of a name of three":       {"CPU", []string{"CPS"}, "CPS"},
		"another extension":                 {"broker.yml", []string{"b.yaml", "broker.yaml"}, "broker.yaml"},
		"nothing but the extension":         {"a.yaml", []string{"b.yaml"}, ""},
		"nothing at all":                    {"", []string{"A"}, ""},
		"there are none":                    {"A", nil, ""},
		"longer than any name":              {strings.Repeat("x", 65), []string{strings.Repeat("x", 64)}, ""},
		"one that is longer than a hundred": {"REPLICAS", []string{strings.Repeat("x", 1<<20), "REPLICAT"}, "REPLICAT"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := text.ClosestMatch(test.name, test.names); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzClosestMatch checks that the result is one of the names or empty, and the name itself if it is among them.
func FuzzClosestMatch(f *testing.F) {
	f.Add("REPLICA", "REPLICAS", "MEMORY")
	f.Add("é", "è", "e")
	f.Add("_", "-", "")
	f.Fuzz(func(t *testing.T, name, one, other string) {
		names := []string{one, other}
		if got := text.ClosestMatch(name, names); got != "" && !slices.Contains(names, got) {
			t.Errorf("%q is none of %q", got, names)
		}
		if got := text.ClosestMatch(one, names[:1]); got != "" && got != one {
			t.Errorf("%q is meant by %q", got, one)
		}
	})
}
