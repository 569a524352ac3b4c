package terminal

import (
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Node is one line of a tree.
type Node struct {
	Text     string
	Children []Node
	// part is how a message of the node above names this one, where that may repeat what this one says.
	Part    string
	Message string
	// state of what the line is about; empty where it has none.
	State kudo.ExecutionStatus
}

// Explained adds a message to the line, unless one below it says the same.
func (n Node) Explained(message string) Node {
	n.Message = OneLine(message)
	if n.Message != "" && !n.says(n.Message) {
		n.Text += ": " + n.Message
	}
	return n
}

func (n Node) says(message string) bool {
	return slices.ContainsFunc(n.Children, func(c Node) bool {
		return c.Message == message || c.Part+": "+c.Message == message || c.says(message)
	})
}

// WriteTree prints the root and, with lines drawn, everything below it.
func WriteTree(b *strings.Builder, root Node) {
	b.WriteString(root.Text + "\n")
	writeChildren(b, root, "")
}

func writeChildren(b *strings.Builder, n Node, margin string) {
	for i, child := range n.Children {
		branch, below := "├── ", "│   "
		if i == len(n.Children)-1 {
			branch, below = "└── ", "    "
		}
		b.WriteString(margin + branch + child.Text + "\n")
		writeChildren(b, child, margin+below)
	}
}
