package packages

import (
	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
)

// loader loads packages with the flags of a command.
type loader struct {
	bundle.Loader
	flags registries.Flags
}

// addFlag adds the flags that select the repository, and those of registries.
func (l *loader) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.Repository, "repository", "",
		"URL or folder of a repository of KUDO packages (with an index.yaml), in which packages given only by name are looked up.")
	l.flags.AddTo(cmd)
	l.Registry = l.flags.Client
}
