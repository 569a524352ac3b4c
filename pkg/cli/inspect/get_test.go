package inspect

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestGetTakesFlags(t *testing.T) {
	type options struct {
		AddOn, Format string
		Clusters      []string
	}
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"everything":           {args: []string{}, want: options{Format: "table"}},
		"one add-on":           {args: []string{"kafka", "-o", "name"}, want: options{AddOn: "kafka", Format: "name"}},
		"some clusters":        {args: []string{"--cluster", "a,b"}, want: options{Format: "table", Clusters: []string{"a", "b"}}},
		"clusters in two ways": {args: []string{"--cluster", "a", "--all-clusters"}, err: "--cluster, --selector, --placement and --all-clusters are mutually exclusive\nSee 'get --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdGet(clitest.Factory(""), func(_ context.Context, o *GetOptions) error {
				got = options{AddOn: o.addOn, Format: o.output.Format, Clusters: o.where.Names}
				return nil
			})
			clitest.Parse(t, cmd, test.args, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
