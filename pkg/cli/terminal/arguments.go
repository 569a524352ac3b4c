package terminal

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Exactly requires one argument for each name.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(names) == 0 && len(args) > 0:
			return Usagef(cmd, "unexpected argument %q: the command takes no arguments", args[0])
		case len(args) != len(names):
			return Usagef(cmd, "expected %s, got %s", strings.Join(names, " and "), text.Plural(len(args), "argument"))
		}
		return nil
	}
}

// AtMost allows one optional argument for each name.
func AtMost(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return Usagef(cmd, "expected [%s], got %s", strings.Join(names, "] ["), text.Plural(len(args), "argument"))
		}
		return nil
	}
}

// Between requires the first of the named arguments, and accepts the others.
func Between(first string, further ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef(cmd, "%s is missing", first)
		}
		return AtMost(append([]string{first}, further...)...)(cmd, args)
	}
}
