package packages

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestPackTakesFlags(t *testing.T) {
	type options struct{ Folder, File, Repository string }
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"a folder":     {args: []string{"./kafka"}, want: options{Folder: "./kafka"}},
		"a file":       {args: []string{"./kafka", "-o", "kafka.tgz"}, want: options{Folder: "./kafka", File: "kafka.tgz"}},
		"a repository": {args: []string{"./kafka", "--repository", "./r"}, want: options{Folder: "./kafka", Repository: "./r"}},
		"no folder":    {args: []string{}, err: "expected DIR, got 0 arguments\nSee 'pack --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdPack(clitest.Factory(""), func(_ context.Context, o *PackOptions) error {
				got = options{Folder: o.folder, File: o.file, Repository: o.Repository}
				return nil
			})
			clitest.Parse(t, cmd, test.args, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
