package packages

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// TreeOptions holds the arguments and flags of the command.
type TreeOptions struct {
	*hubclient.Factory
	name string
	loader
	output *terminal.Output
}

// NewCmdTree returns the command. If runF is set, it replaces runTree.
func NewCmdTree(f *hubclient.Factory, runF func(context.Context, *TreeOptions) error) *cobra.Command {
	o := &TreeOptions{Factory: f, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runTree
	}
	cmd := &cobra.Command{
		Use:   "tree DIR",
		Short: "Show the tree of Instances that a package creates",
		Long: "Show the package in DIR, in a tarball or at a URL as the tree of Instances that it creates. Names assume that the root\n" +
			"Instance has the operator's name. Each Instance is shown with its OperatorVersion, the location of the package, and the\n" +
			"parameter of its parent that enables it. No cluster is needed.",
		Example: "  kubectl addon package tree ./streaming\n" +
			"  kubectl addon package tree https://repository.example.com/streaming.tgz -o json",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.loader.addFlag(cmd)
	return cmd
}

func runTree(ctx context.Context, o *TreeOptions) error {
	b, err := verifiedBundle(ctx, &o.loader, o.ErrOut, o.name)
	if err != nil {
		return err
	}
	made := instancesOf(b)
	return o.output.Print(o.Out, terminal.Shown{Text: made.text(), Data: made, Names: made.versions()})
}

// packageNode is an Instance that a package creates, with its descendants.
type packageNode struct {
	// Instance is the name of the Instance if the root Instance has the operator's name.
	Instance string `json:"instance"`
	// OperatorVersion is the version of the Instance; empty if the name was not looked up.
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// Package is the location or the name of the package; empty on the hub.
	Package string `json:"package,omitempty"`
	// Task is the parent's task that creates the Instance, and EnablingParameter the parent's parameter that enables it.
	Task              string        `json:"task,omitempty"`
	EnablingParameter string        `json:"enablingParameter,omitempty"`
	Children          []packageNode `json:"children,omitempty"`
}

// instancesOf returns the tree of Instances that the package creates. The bundle is verified: it has no cycle.
func instancesOf(b *bundle.Bundle) packageNode {
	root := b.Root()
	return packageNode{
		Instance: root.Pkg.Name, OperatorVersion: bundle.VersionName(root.Pkg), Package: root.Name, Children: childrenOf(root, root.Pkg.Name),
	}
}

// childrenOf returns the children of an Instance of the package, with their descendants.
func childrenOf(m *bundle.Member, instance string) []packageNode {
	tasks := map[string]int{}
	for i, task := range m.Pkg.Version.Tasks {
		tasks[task.Name] = i
	}
	_, version := m.Objects("")
	var nodes []packageNode
	for _, task := range tree.Tasks(&version.Spec) {
		n := packageNode{Instance: tree.ChildName(instance, task), Task: task.Name, EnablingParameter: task.Spec.EnablingParameter}
		child, resolved := m.Children[tasks[task.Name]]
		switch {
		case !resolved:
			n.Package = task.Spec.Package
		case child.Member == nil:
			n.OperatorVersion = child.Name
		default:
			n.OperatorVersion, n.Package = child.Name, child.Member.Name
			n.Children = childrenOf(child.Member, n.Instance)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// text returns the tree.
func (n packageNode) text() string {
	root := n.node()
	root.Text = fmt.Sprintf("%s: OperatorVersion %s", n.Instance, n.OperatorVersion) // the location is part of the command
	var text strings.Builder
	terminal.WriteTree(&text, root)
	return text.String()
}

func (n packageNode) node() terminal.Node {
	line := terminal.Node{Text: fmt.Sprintf("%s: OperatorVersion %s", n.Instance, n.OperatorVersion)}
	switch {
	case n.OperatorVersion == "":
		line.Text = fmt.Sprintf("%s: package %s (not looked up)", n.Instance, n.Package)
	case n.Package != "":
		line.Text += fmt.Sprintf(" (%s)", n.Package)
	}
	if n.EnablingParameter != "" {
		line.Text += fmt.Sprintf(", if %s is true", n.EnablingParameter)
	}
	for _, child := range n.Children {
		line.Children = append(line.Children, child.node())
	}
	return line
}

// versions returns the OperatorVersions in the tree, each once.
func (n packageNode) versions() []string {
	var names []string
	if n.OperatorVersion != "" {
		names = append(names, text.ObjectName(kudo.GroupVersion.Group, "OperatorVersion", n.OperatorVersion))
	}
	for _, child := range n.Children {
		for _, name := range child.versions() {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
