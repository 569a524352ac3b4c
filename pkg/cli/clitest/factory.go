package clitest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
)

// Factory returns a factory with the typed text as input and without a hub.
func Factory(typed string) *hubclient.Factory {
	return &hubclient.Factory{IOStreams: StreamsOf(typed), Flags: genericclioptions.NewConfigFlags(true), Version: "v0.0.0"}
}

// Parse runs a command with the arguments and checks its error; an empty want means no error.
func Parse(t *testing.T, cmd *cobra.Command, args []string, want string) {
	t.Helper()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if diff := cmp.Diff(want, ErrorText(cmd.ExecuteContext(t.Context()))); diff != "" {
		t.Error(diff)
	}
}
