package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/tree"
)

func packageTreeCommand(streams genericiooptions.IOStreams) *cobra.Command {
	l := &loader{}
	cmd := &cobra.Command{
		Use:   "tree DIR",
		Short: "Show which Instances a package makes, with all that it brings along",
		Long: "Tree shows the package in DIR, or in a tarball or at its URL, as the tree of Instances that it makes, called as where the\n" +
			"uppermost one has the operator's name: each with its OperatorVersion, where the package is, and the parameter of its parent\n" +
			"that says whether it exists. It needs no cluster.",
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := verifiedBundle(cmd.Context(), l, streams.ErrOut, args[0])
			if err != nil {
				return err
			}
			root := b.root()
			var text strings.Builder
			writeTree(&text, node{
				text: fmt.Sprintf("%s: OperatorVersion %s", root.pkg.Name, versionName(root.pkg)), children: root.instances(root.pkg.Name),
			})
			return printers.WriteEscaped(streams.Out, text.String())
		},
	}
	l.addFlag(cmd)
	return cmd
}

// instances are the children of an Instance of the package, and theirs. The package was verified: there is no circle in it.
func (m *member) instances(instance string) []node {
	tasks := map[string]int{}
	for i, task := range m.pkg.Version.Tasks {
		tasks[task.Name] = i
	}
	_, version := m.objects("")
	var nodes []node
	for _, task := range tree.Tasks(&version.Spec) {
		name := tree.ChildName(instance, task)
		child, resolved := m.children[tasks[task.Name]]
		n := node{text: fmt.Sprintf("%s: package %s, which was not looked for", name, task.Spec.Package)}
		if resolved {
			n.text = fmt.Sprintf("%s: OperatorVersion %s", name, child.name)
		}
		if child.member != nil {
			n.text += fmt.Sprintf(" (%s)", child.member.name)
			n.children = child.member.instances(name)
		}
		n.text += existence(task)
		nodes = append(nodes, n)
	}
	return nodes
}

// existence says what a child's existence depends on; nothing where it always exists.
func existence(task kudo.Task) string {
	if task.Spec.EnablingParameter == "" {
		return ""
	}
	return fmt.Sprintf(", while %s is true", task.Spec.EnablingParameter)
}
