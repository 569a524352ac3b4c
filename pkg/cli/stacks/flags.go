package stacks

import (
	"cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
)

// applyFlags are the flags that decide what is read, written and deleted.
type applyFlags struct {
	*hubclient.Factory
	file string
	// prune deletes what the stack no longer has, and yes skips the prompt.
	prune, yes bool
	// force takes over fields that another writer has set.
	force  bool
	dryRun bool
	// printed prints the objects instead of writing them.
	printed bool
}

// namespace returns the namespace of packages and configs.
func (f *applyFlags) namespace() string {
	return cmp.Or(*f.Flags.Namespace, kudo.DefaultPackagesNamespace)
}
