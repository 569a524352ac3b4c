package diagnose

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestDiagnoseTakesFlags(t *testing.T) {
	type options struct {
		File     string
		Clusters []string
		Timeout  time.Duration
	}
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"without flags": {args: []string{}, want: options{Timeout: 2 * time.Minute}},
		"a file":        {args: []string{"-o", "-"}, want: options{File: "-", Timeout: 2 * time.Minute}},
		"clusters":      {args: []string{"--cluster", "a,b"}, want: options{Clusters: []string{"a", "b"}, Timeout: 2 * time.Minute}},
		"no time":       {args: []string{"--timeout", "0s"}, err: "invalid argument \"0s\" for \"--timeout\" flag: must be greater than 0\nSee 'diagnose --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdDiagnose(clitest.Factory(""), func(_ context.Context, o *Options) error {
				got = options{File: o.file, Clusters: o.Names, Timeout: o.timeout}
				return nil
			})
			clitest.Parse(t, cmd, test.args, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
