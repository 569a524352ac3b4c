package terminal

import (
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Node is one line of a tree.
type Node struct {
	Text     string
	Children []Node
	// Part is the name of this node in messages of its parent, if those may repeat this node's message.
	Part    string
	Message string
	// State is the state of the node; empty if it has none.
	State kudo.ExecutionStatus
}

// WithMessage adds a message to the line, unless a line below it has the same message.
func (n Node) WithMessage(message string) Node {
	n.Message = text.JoinMessage(message)
	if n.Message != "" && !n.hasMessage(n.Message) {
		n.Text += ": " + n.Message
	}
	return n
}

func (n Node) hasMessage(message string) bool {
	return slices.ContainsFunc(n.Children, func(c Node) bool {
		return c.Message == message || c.Part+": "+c.Message == message || c.hasMessage(message)
	})
}

// WriteTree writes the root and everything below it as a tree.
func WriteTree(b *strings.Builder, root Node) {
	b.WriteString(text.JoinLines(root.Text) + "\n")
	writeChildren(b, root, "")
}

func writeChildren(b *strings.Builder, n Node, margin string) {
	for i, child := range n.Children {
		branch, below := "├── ", "│   "
		if i == len(n.Children)-1 {
			branch, below = "└── ", "    "
		}
		b.WriteString(margin + branch + text.JoinLines(child.Text) + "\n")
		writeChildren(b, child, margin+below)
	}
}
