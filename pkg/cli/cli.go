// Package cli is the kubectl plugin: it verifies and pushes packages, enables add-ons, and runs plans and shows what they do. It reads and
// writes the hub.
package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Exit codes of the plugin.
const (
	ExitOK = 0
	// ExitFailure: what was asked for could not be done, or a package is not valid.
	ExitFailure = 1
	// ExitUsage: the command line makes no sense.
	ExitUsage = 2
	// ExitTimeout: what was waited for did not come in time, and goes on.
	ExitTimeout = 3
)

// ExitCode is the exit code for what the command returned.
func ExitCode(err error) int {
	var usage *usageError
	var timeout *timeoutError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &timeout):
		return ExitTimeout
	default:
		return ExitFailure
	}
}

// New is the plugin's command, `kubectl addon`. Its errors are not printed yet.
func New(streams genericiooptions.IOStreams, version string) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	flags.ClusterName = nil // --cluster names a managed cluster here
	root := group("kubectl-addon", "Manage add-ons and the plans that run them on a fleet of clusters",
		enableCommand(streams, flags), disableCommand(streams, flags), getCommand(streams, flags), fleetCommand(streams, flags),
		treeCommand(streams, flags), whyCommand(streams, flags), dependentsCommand(streams, flags),
		installCommand(streams, flags), updateCommand(streams, flags), upgradeCommand(streams, flags), uninstallCommand(streams, flags),
		joinCommand(streams, flags),
		group("package", "Work with operator packages",
			newCommand(streams), verifyCommand(streams), packageTreeCommand(streams), packCommand(streams), indexCommand(streams), pushCommand(streams, flags),
			listCommand(streams, flags), showCommand(streams, flags), diffCommand(streams, flags)),
		group("plan", "Run plans, and follow them", statusCommand(streams, flags), planHistoryCommand(streams, flags),
			planRunCommand(streams, flags), planCancelCommand(streams, flags), planWaitCommand(streams, flags)),
		diagnoseCommand(streams, flags, version), versionCommand(streams, flags, version),
	)
	root.Long = root.Short + ".\n\n" +
		"Exit codes: 0 done, 1 failed, 2 the command line makes no sense, 3 not done in the time that --timeout gives."
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl addon"}
	root.Version = version
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// Flags are looked at first: that of a command which is misspelled is none of its parent's.
		if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
			if unknown := cmd.ValidateArgs(before); unknown != nil {
				return unknown
			}
		}
		return usagef(cmd, "%v", err)
	})
	flags.AddFlags(root.PersistentFlags())
	complete(root, flags)
	return root
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(commands...)
	return cmd
}

// unknownCommand is the error for a word that is none of cmd's commands.
func unknownCommand(cmd *cobra.Command, name string) error {
	meant := cmd.SuggestionsFor(name)
	if len(meant) == 0 {
		return usagef(cmd, "unknown command %q", name)
	}
	return usagef(cmd, "unknown command %q: did you mean %s?", name, strings.Join(meant, " or "))
}

// exactly demands one argument for each name, and no others.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(names) == 0 && len(args) > 0:
			return usagef(cmd, "unknown argument %q: there are none", args[0])
		case len(args) != len(names):
			return usagef(cmd, "want %s, got %d arguments", strings.Join(names, " and "), len(args))
		}
		return nil
	}
}

// atMost allows one argument for each name, which may be left out.
func atMost(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return usagef(cmd, "want %s at most, got %d arguments", strings.Join(names, " and "), len(args))
		}
		return nil
	}
}

// usageError is an error in the command line.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Sprintf("%s\nSee '%s --help'", fmt.Sprintf(format, args...), cmd.CommandPath())}
}

// timeoutError says that what was waited for did not come in the time that --timeout gives.
type timeoutError struct{ message string }

func (e *timeoutError) Error() string { return e.message }

func timeoutf(format string, args ...any) error {
	return &timeoutError{fmt.Sprintf(format, args...)}
}
