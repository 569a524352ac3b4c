package cli

import (
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// node is one line of a tree.
type node struct {
	text     string
	children []node
	// part is how a message of the node above names this one, where that may repeat what this one says.
	part    string
	message string
	// state of what the line is about; empty where it has none.
	state kudo.ExecutionStatus
}

// explained adds a message to the line, unless one below it says the same.
func (n node) explained(message string) node {
	n.message = oneLine(message)
	if n.message != "" && !n.says(n.message) {
		n.text += ": " + n.message
	}
	return n
}

func (n node) says(message string) bool {
	return slices.ContainsFunc(n.children, func(c node) bool {
		return c.message == message || c.part+": "+c.message == message || c.says(message)
	})
}

// writeTree prints the root and, with lines drawn, everything below it.
func writeTree(b *strings.Builder, root node) {
	b.WriteString(root.text + "\n")
	writeChildren(b, root, "")
}

func writeChildren(b *strings.Builder, n node, margin string) {
	for i, child := range n.children {
		branch, below := "├── ", "│   "
		if i == len(n.children)-1 {
			branch, below = "└── ", "    "
		}
		b.WriteString(margin + branch + child.text + "\n")
		writeChildren(b, child, margin+below)
	}
}
