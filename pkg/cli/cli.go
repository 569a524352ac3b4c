// Package cli implements the kubectl plugin: it verifies and pushes packages, enables add-ons, runs plans and shows their status. It reads
// and writes the hub.
//
// This package has the root command, completion, exit codes and the command ui. The other commands are in subpackages: packages, stacks,
// inspect, details, whatif, change and diagnose.
// They share planstatus, hubclient and terminal, each of which imports only the ones after it.
//
// Every command X has the same structure, in a file of its name:
//
//	type XOptions struct           the factory, the arguments and the flags
//	func NewCmdX(factory, runF)    the cobra command: parses and checks arguments and flags into XOptions, and does not connect to a cluster
//	func runX(ctx, *XOptions)      runs it: gathers, decides, writes, prints
//
// Tests pass runF to check the options of a command line without a cluster; otherwise it is nil, and runX runs. Other files of a command
// carry its name: X_text.go has the output for people, X_data.go the output for programs.
package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/cli/artifacts"
	"github.com/tandem-addons/tandem/pkg/cli/change"
	"github.com/tandem-addons/tandem/pkg/cli/details"
	"github.com/tandem-addons/tandem/pkg/cli/diagnose"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/inspect"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/stacks"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/cli/whatif"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Exit codes of the plugin.
const (
	ExitOK = 0
	// ExitFailure: the request could not be fulfilled, or a package is not valid.
	ExitFailure = 1
	// ExitUsage: the command line is invalid.
	ExitUsage = 2
	// ExitTimeout: the awaited state was not reached in time; the operation continues.
	ExitTimeout = 3
	// ExitInterrupted: a command that waits was interrupted; the operation continues.
	ExitInterrupted = 130
)

// ErrorText returns the text that a program prints for the error of a command.
func ErrorText(err error) string {
	if terminal.IsInterrupted(err) {
		return err.Error()
	}
	return "error: " + err.Error()
}

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	var usage *terminal.UsageError
	var timeout *terminal.TimeoutError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &timeout):
		return ExitTimeout
	case terminal.IsInterrupted(err):
		return ExitInterrupted
	default:
		return ExitFailure
	}
}

// New returns the root command, `kubectl addon`. It does not print errors.
func New(streams genericiooptions.IOStreams, version string) *cobra.Command {
	streams.Out, streams.ErrOut = terminal.Guard(streams.Out), terminal.Guard(streams.ErrOut)
	flags := genericclioptions.NewConfigFlags(true)
	flags.ClusterName = nil // here --cluster names a managed cluster
	f := &hubclient.Factory{IOStreams: streams, Flags: flags, Version: version}
	root := group("kubectl-addon", "Manage add-ons and their plans on a fleet of clusters")
	addSections(root,
		section{"Add-ons", []*cobra.Command{
			stacks.NewCmdApply(f, nil), stacks.NewCmdCreate(f, nil), change.NewCmdEnable(f, nil), change.NewCmdDisable(f, nil),
			change.NewCmdUpdate(f, nil), change.NewCmdUpgrade(f, nil), change.NewCmdRollback(f, nil), change.NewCmdSetVersion(f, nil),
		}},
		section{"Status", []*cobra.Command{
			inspect.NewCmdGet(f, nil), inspect.NewCmdFleet(f, nil), inspect.NewCmdTree(f, nil), inspect.NewCmdWhy(f, nil),
			inspect.NewCmdDependents(f, nil), details.NewCmdDrift(f, nil),
			group("what-if", "Show what a change would affect",
				whatif.NewCmdDisable(f, nil), whatif.NewCmdKubernetes(f, nil), whatif.NewCmdUpgrade(f, nil)),
			details.NewCmdHistory(f, nil), details.NewCmdValues(f, nil), details.NewCmdEvents(f, nil), details.NewCmdLogs(f, nil),
			newCmdUI(f, nil),
		}},
		section{"Instances and plans", []*cobra.Command{
			change.NewCmdInstall(f, nil), change.NewCmdUninstall(f, nil), change.NewCmdSuspend(f, nil), change.NewCmdResume(f, nil),
			group("plan", "Run plans and show their status", inspect.NewCmdPlanStatus(f, nil), inspect.NewCmdPlanHistory(f, nil),
				change.NewCmdPlanRun(f, nil), change.NewCmdPlanResume(f, nil), change.NewCmdPlanCancel(f, nil), change.NewCmdPlanWait(f, nil)),
		}},
		section{"Packages", []*cobra.Command{
			group("package", "Manage operator packages",
				packages.NewCmdNew(f, nil), packages.NewCmdFromChart(f, nil), packages.NewCmdFromRelease(f, nil), packages.NewCmdUpdateChart(f, nil),
				packages.NewCmdVerify(f, nil), packages.NewCmdRights(f, nil), packages.NewCmdImages(f, nil), packages.NewCmdTree(f, nil), packages.NewCmdPack(f, nil), packages.NewCmdIndex(f, nil), packages.NewCmdPush(f, nil),
				artifacts.NewCmdPull(f, nil), artifacts.NewCmdCopy(f, nil), artifacts.NewCmdSign(f, nil), artifacts.NewCmdMirror(f, nil),
				packages.NewCmdList(f, nil), packages.NewCmdShow(f, nil), packages.NewCmdDiff(f, nil)),
		}},
		section{"Hub and clusters", []*cobra.Command{
			change.NewCmdJoin(f, nil), inspect.NewCmdCheck(f, nil), diagnose.NewCmdDiagnose(f, nil), inspect.NewCmdVersion(f, nil),
		}},
	)
	root.AddCommand(newCmdOptions(f, nil))
	root.SetUsageTemplate(usageTemplate)
	root.Long = root.Short + ".\n\n" +
		"Exit codes: 0 success, 1 failure, 2 invalid usage, 3 not completed within --timeout,\n" +
		"130 interrupted while waiting."
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl addon"}
	root.Version = version
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// Arguments are checked first, so that the flags of a misspelled subcommand are not reported as unknown flags of its parent.
		if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
			if unknown := cmd.ValidateArgs(before); unknown != nil {
				return unknown
			}
		}
		return terminal.Usagef(cmd, "%v%s", err, meantFlag(cmd, err))
	})
	flags.AddFlags(root.PersistentFlags())
	complete(root, f)
	return root
}

// meantFlag returns a suggestion for a flag that does not exist; empty if no flag of the command is similar.
func meantFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	if instead := otherFlags[cmd.Name()][unknown.GetSpecifiedName()]; instead != "" {
		return ": " + instead
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	meant := text.ClosestMatch(unknown.GetSpecifiedName(), names)
	if meant == "" {
		return ""
	}
	return ": did you mean --" + meant + "?"
}

// group returns a command that only has subcommands.
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
