package program_test

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/test/bench/program"
)

func TestParse(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		helped    bool
		err       string
	}{
		"nothing":                    {nil, false, ""},
		"a flag":                     {[]string{"-runs=2"}, false, ""},
		"help":                       {[]string{"--help"}, true, ""},
		"a flag that does not exist": {[]string{"-run=2"}, false, "flag provided but not defined"},
		"an argument":                {[]string{"-runs=2", "now"}, false, `unexpected argument "now": bench takes flags only`},
	} {
		t.Run(sentence, func(t *testing.T) {
			fs := flag.NewFlagSet("bench", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			fs.Int("runs", 1, "")
			helped, err := program.Parse(fs, test.arguments)
			if helped != test.helped || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("helped %v, error %v, want %v and %q", helped, err, test.helped, test.err)
			}
		})
	}
}
