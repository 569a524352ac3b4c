package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// count is a benchmark that counts to the number of its flag.
type count struct {
	number   int
	measured bool
}

func (c *count) Bind(fs *flag.FlagSet) { fs.IntVar(&c.number, "number", 1, "") }

func (c *count) Check() error {
	if c.number < 0 {
		return errors.New("too small")
	}
	return nil
}

func (c *count) Measure(_ context.Context, progress io.Writer) (Report, error) {
	c.measured = true
	Progress(progress)("counting to %d", c.number)
	if c.number > 99 {
		return nil, errors.New("too large")
	}
	if c.number > 9 {
		return counted{9}, errors.New("interrupted")
	}
	return counted{c.number}, nil
}

type counted struct {
	Number int `json:"number"`
}

func (c counted) Print(out io.Writer) { fmt.Fprint(out, strings.Repeat("|", c.Number)) }

func (c counted) Violations() error {
	if c.Number == 0 {
		return errors.New("nothing")
	}
	return nil
}

func TestRun(t *testing.T) {
	for sentence, test := range map[string]struct {
		arguments []string
		measured  bool
		out       string
		err       string
	}{
		"nothing is asked for":       {nil, true, "|", ""},
		"a flag":                     {[]string{"-number=3"}, true, "|||", ""},
		"help":                       {[]string{"--help"}, false, "", ""},
		"a flag that does not exist": {[]string{"-numbers=3"}, false, "", "flag provided but not defined"},
		"an argument":                {[]string{"-number=3", "now"}, false, "", `unexpected argument "now": bench takes flags only`},
		"a flag that makes no sense": {[]string{"-number=-1"}, false, "", "too small"},
		"it fails":                   {[]string{"-number=100"}, true, "", "too large"},
		"it is interrupted":          {[]string{"-number=10"}, true, "|||||||||", "interrupted"},
		"an invariant does not hold": {[]string{"-number=0"}, true, "", "nothing"},
		"a file that cannot be made": {[]string{"-out=" + filepath.Join(t.TempDir(), "no", "folder")}, true, "|", "writing the report"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var b count
			var out strings.Builder
			err := run(t.Context(), &b, test.arguments, &out, io.Discard)
			if b.measured != test.measured || out.String() != test.out {
				t.Errorf("measured %t, wrote %q", b.measured, out.String())
			}
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func TestAReportIsSavedAlsoWhereAnInvariantDoesNotHold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	if err := run(t.Context(), &count{}, []string{"-number=0", "-out=" + file}, io.Discard, io.Discard); err == nil {
		t.Error("it did not fail")
	}
	text, err := os.ReadFile(file)
	if want := "{\n  \"number\": 0\n}\n"; err != nil || string(text) != want {
		t.Errorf("saved %q, error %v, want %q", text, err, want)
	}
}
