package program

import (
	"flag"
	"slices"
	"testing"
)

func TestLimits(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		flags     []string
		refused   bool
	}{
		"none by default":              {nil, []string{"--hub-api-qps=0", "--hub-api-burst=0"}, false},
		"what is asked for":            {[]string{"-qps=0.5", "-burst=1"}, []string{"--hub-api-qps=0.5", "--hub-api-burst=1"}, false},
		"a negative rate":              {[]string{"-qps=-1", "-burst=1"}, nil, true},
		"a rate that is no number":     {[]string{"-qps=NaN", "-burst=1"}, nil, true},
		"a rate without a burst":       {[]string{"-qps=20"}, nil, true},
		"a burst of an unlimited rate": {[]string{"-burst=40"}, nil, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			limits, fs := Limits{}, flag.NewFlagSet("bench", flag.ContinueOnError)
			limits.Bind(fs, "addon-agent", "hub-api")
			if err := fs.Parse(test.arguments); err != nil {
				t.Fatal(err)
			}
			if err := limits.Check(); (err != nil) != test.refused {
				t.Errorf("error %v, refused %t", err, test.refused)
			}
			if got := limits.Flags(); !test.refused && !slices.Equal(got, test.flags) {
				t.Errorf("flags %q, want %q", got, test.flags)
			}
		})
	}
}
