package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// otherVerbs maps verbs of kubectl, helm, flux and similar tools to what the plugin has instead.
var otherVerbs = map[string]string{
	"list":      "use 'get', or 'package list' for packages",
	"ls":        "use 'get', or 'package list' for packages",
	"delete":    "use 'disable' for an add-on, or 'uninstall' for an Instance",
	"remove":    "use 'disable' for an add-on, or 'uninstall' for an Instance",
	"rm":        "use 'disable' for an add-on, or 'uninstall' for an Instance",
	"describe":  "use 'why' for an add-on, or 'plan status' for its plans",
	"explain":   "use 'why' for an add-on, or 'package show' for a package",
	"tail":      "use 'logs --follow'",
	"undo":      "use 'rollback'",
	"revert":    "use 'rollback'",
	"rollout":   "use 'plan status' or 'history'",
	"reconcile": "use 'plan run' to run a plan again",
	"sync":      "use 'plan run' to run a plan again",
	"retry":     "use 'plan run' to run a plan again",
	"restart":   "use 'plan run' to run a plan again",
	"set":       "use 'update NAME -p NAME=VALUE'",
	"edit":      "use 'update NAME -p NAME=VALUE'",
	"lint":      "use 'package verify'",
	"template":  "use 'install --dry-run' or 'package verify'",
	"doctor":    "use 'check'",
	"clusters":  "use 'fleet'",
	"register":  "use 'join'",
	"dashboard": "use 'ui'",
	"watch":     "use 'get --watch' or 'fleet --watch'",
}

// otherFlags maps flags of other tools, or of other commands, to what a command has instead, by the names of the commands.
var otherFlags = map[string]map[string]string{
	"uninstall": {"force": "use --release to leave the applied objects on the cluster and wait for nothing, or --yes to skip the prompt"},
	"set-version": {
		"version":          "the version is an argument: 'kubectl addon set-version ADDON VERSION'",
		"operator-version": "the version is an argument: 'kubectl addon set-version ADDON VERSION'",
	},
}

// unknownCommand returns the error for a word that is not a subcommand of cmd. It names the commands that are meant: those of the name
// below a group of commands, those for a verb of another tool, or those that are spelled similarly.
func unknownCommand(cmd *cobra.Command, name string) error {
	if below := commandsBelow(cmd, name); len(below) > 0 {
		return terminal.Usagef(cmd, "unknown command %q: did you mean %s?", name, strings.Join(below, " or "))
	}
	if instead := otherVerbs[name]; instead != "" && !cmd.HasParent() {
		return terminal.Usagef(cmd, "unknown command %q: %s", name, instead)
	}
	meant := cmd.SuggestionsFor(name)
	switch {
	case len(meant) == 0 && cmd.HasParent():
		return terminal.Usagef(cmd, "unknown command %q; commands of %s: %s", name, cmd.Name(), strings.Join(commandNames(cmd), ", "))
	case len(meant) == 0:
		return terminal.Usagef(cmd, "unknown command %q", name)
	}
	return terminal.Usagef(cmd, "unknown command %q: did you mean %s?", name, strings.Join(meant, " or "))
}

// commandNames returns the names of the commands of a group.
func commandNames(group *cobra.Command) []string {
	var names []string
	for _, command := range group.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return names
}

// commandsBelow returns the commands of the name in the groups of commands below cmd, such as "plan run". Names that are verbs of their own
// in other tools are omitted.
func commandsBelow(cmd *cobra.Command, name string) []string {
	if otherVerbs[name] != "" {
		return nil
	}
	var found []string
	for _, group := range cmd.Commands() {
		for _, below := range group.Commands() {
			if below.Name() == name || slices.Contains(below.Aliases, name) {
				found = append(found, group.Name()+" "+below.Name())
			}
		}
	}
	return found
}
