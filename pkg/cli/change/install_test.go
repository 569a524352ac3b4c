package change

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestInstallTakesFlags(t *testing.T) {
	type options struct {
		Operator, Name, Namespace, Version string
		Parameters                         map[string]string
		Wait                               bool
		Timeout                            time.Duration
	}
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"an operator":                {args: []string{"kafka"}, want: options{Operator: "kafka"}},
		"another name":               {args: []string{"kafka", "events", "-n", "data"}, want: options{Operator: "kafka", Name: "events", Namespace: "data"}},
		"a version":                  {args: []string{"kafka", "--version", "1.0.0"}, want: options{Operator: "kafka", Version: "1.0.0"}},
		"parameters":                 {args: []string{"kafka", "-p", "A=1"}, want: options{Operator: "kafka", Parameters: map[string]string{"A": "1"}}},
		"wait flags":                 {args: []string{"kafka", "--wait", "--timeout", "90s"}, want: options{Operator: "kafka", Wait: true, Timeout: 90 * time.Second}},
		"an unknown validation":      {args: []string{"kafka", "--validate=loose"}, err: "invalid argument \"loose\" for \"--validate\" flag: must be one of strict, warn, ignore"},
		"a format without a dry run": {args: []string{"kafka", "-o", "wide"}, err: "--output requires --dry-run\nSee 'install --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdInstall(clitest.Factory(""), func(_ context.Context, o *InstallOptions) error {
				got = options{o.operator, o.name, o.namespace, o.choice.Version, o.given.all, o.Wait, o.Timeout}
				return nil
			})
			clitest.Parse(t, cmd, append(test.args, "--cluster", "cluster1"), test.err)
			if test.want.Operator != "" && test.want.Parameters == nil {
				test.want.Parameters = map[string]string{}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
