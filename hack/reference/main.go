// Command reference generates the plugin's command reference from its commands: an index, and a page for each command or command group. It
// does not connect to a cluster.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/homedir"

	"github.com/tandem-addons/tandem/pkg/cli"
)

func main() {
	folder := flag.String("output", "", "folder to write, of which every other page is removed")
	flag.Parse()
	if err := write(*folder, pages(cli.New(genericiooptions.NewTestIOStreamsDiscard(), ""))); err != nil {
		log.Fatal(err)
	}
}

// write writes the pages to the folder and removes all others.
func write(folder string, pages map[string]string) error {
	old, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pages returns the texts of the pages by file name.
func pages(root *cobra.Command) map[string]string {
	root.InitDefaultVersionFlag()
	found := map[string]string{"README.md": index(root)}
	for _, cmd := range root.Commands() {
		found[cmd.Name()+".md"] = page(cmd)
	}
	return found
}

func index(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Reference of %s\n\nMade from the commands by `make generate`. [The command line](../cli.md) says what holds for all of them.\n\n",
		root.CommandPath())
	b.WriteString("| command | what it does |\n|---|---|\n")
	each(root, func(cmd *cobra.Command) {
		if cmd.Runnable() && cmd != root {
			fmt.Fprintf(&b, "| [`%s`](%s) | %s |\n", strings.TrimPrefix(cmd.CommandPath(), root.CommandPath()+" "), link(cmd), cmd.Short)
		}
	})
	fmt.Fprintf(&b, "\n## Flags of all commands\n\nAs kubectl's, they say how to reach the hub.\n\n%s", flags(root.PersistentFlags()))
	return b.String()
}

// link returns a link to a command, relative to the folder of its page.
func link(cmd *cobra.Command) string {
	above := cmd
	for above.Parent().HasParent() {
		above = above.Parent()
	}
	if above == cmd {
		return cmd.Name() + ".md"
	}
	return above.Name() + ".md#" + strings.ReplaceAll(title(cmd), " ", "-")
}

// title returns the command's name without the plugin's name.
func title(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()+" ")
}

// page returns the page of a command and its subcommands.
func page(of *cobra.Command) string {
	var b strings.Builder
	each(of, func(cmd *cobra.Command) {
		heading := "#"
		if cmd != of {
			heading = "\n##"
		}
		fmt.Fprintf(&b, "%s %s\n\n%s\n", heading, title(cmd), section(cmd))
	})
	return b.String()
}

// each visits a command, then its subcommands.
func each(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, below := range cmd.Commands() {
		each(below, visit)
	}
}

// section returns the documentation of a single command.
func section(cmd *cobra.Command) string {
	if cmd.HasSubCommands() && cmd.Long == "" {
		return cmd.Short + "."
	}
	parts := []string{cmd.Short + ".", fenced("", cmd.UseLine()), cmd.Long}
	if len(cmd.Aliases) > 0 {
		parts = append(parts, "Also called `"+strings.Join(cmd.Aliases, "`, `")+"`.")
	}
	if cmd.Example != "" {
		var lines []string
		for line := range strings.Lines(cmd.Example) {
			lines = append(lines, strings.TrimSpace(line))
		}
		parts = append(parts, fenced("sh", strings.Join(lines, "\n")))
	}
	if own := cmd.LocalFlags(); own.HasAvailableFlags() {
		parts = append(parts, strings.TrimSuffix(flags(own), "\n"))
	}
	return strings.Join(parts, "\n\n")
}

func fenced(language, text string) string { return "```" + language + "\n" + text + "\n```" }

// flags returns a table of flags. It omits values that depend on the machine.
func flags(set *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(flag)
		name := "`--" + flag.Name
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(&b, "| %s` | %s | %s |\n", name, byDefault(flag), strings.ReplaceAll(usage, "|", `\|`))
	})
	return b.String()
}

// byDefault returns the default of a flag, or an empty string if it is unset.
func byDefault(flag *pflag.Flag) string {
	switch value := flag.DefValue; value {
	case "", "[]", "false":
		return ""
	default:
		return "`" + strings.Replace(value, homedir.HomeDir(), "$HOME", 1) + "`"
	}
}
