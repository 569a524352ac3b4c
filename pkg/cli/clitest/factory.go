package clitest

import (
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
)

// Factory makes commands of somebody who types that, and reaches no hub.
func Factory(typed string) *hubclient.Factory {
	return &hubclient.Factory{IOStreams: StreamsOf(typed), Flags: genericclioptions.NewConfigFlags(true), Version: "v0.0.0"}
}
