package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/homedir"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// usageTemplate is cobra's template of a command's usage, without the flags of the connection to the hub.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

{{if .Groups}}Other commands:{{else}}Commands:{{end}}{{range $cmds}}{{if (and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}
{{if .HasAvailableSubCommands}}
Use "{{.CommandPath}} [command] --help" for more information about a command.{{end}}
Use "{{.Root.CommandPath}} options" for a list of the flags of all commands.
`

// section is a group of commands in the help of the plugin.
type section struct {
	title    string
	commands []*cobra.Command
}

// addSections adds the commands to the root in groups.
func addSections(root *cobra.Command, sections ...section) {
	for _, s := range sections {
		root.AddGroup(&cobra.Group{ID: s.title, Title: s.title + ":"})
		for _, cmd := range s.commands {
			cmd.GroupID = s.title
		}
		root.AddCommand(s.commands...)
	}
}

// OptionsOptions holds the arguments and flags of the command.
type OptionsOptions struct {
	*hubclient.Factory
	// usages describes the flags.
	usages string
}

// newCmdOptions returns the command. If runF is set, it replaces runOptions.
func newCmdOptions(f *hubclient.Factory, runF func(context.Context, *OptionsOptions) error) *cobra.Command {
	o := &OptionsOptions{Factory: f}
	if runF == nil {
		runF = runOptions
	}
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags of all commands",
		Long: "List the flags that all commands have: kubectl's flags for the connection to the hub. The help of a command describes its\n" +
			"own flags.",
		Example: "  kubectl addon options",
		Args:    terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.usages = cmd.Root().PersistentFlags().FlagUsages()
			return runF(cmd.Context(), o)
		},
	}
}

func runOptions(_ context.Context, o *OptionsOptions) error {
	usages := strings.ReplaceAll(o.usages, homedir.HomeDir()+"/", "$HOME/")
	return printers.WriteEscaped(o.Out, "All commands have these flags:\n\n"+usages)
}
