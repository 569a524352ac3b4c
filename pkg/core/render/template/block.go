package template

import (
	"cmp"
	"strings"
	"text/template/parse"
)

// Block is a condition or a loop.
type Block struct {
	// Sample is the text that it might write, without what actions print; empty if it has none.
	Sample string
	// Silent is true if it writes nothing but white space: it assigns variables, or fails.
	Silent bool
}

func blockOf(b *parse.BranchNode) *Block {
	return &Block{Sample: cmp.Or(sampleOf(b.List), sampleOf(b.ElseList)), Silent: isSilent(b.List) && isSilent(b.ElseList)}
}

// maxSampleBytes limits the sample of a block: all blocks that enclose a text have it.
const maxSampleBytes = 4096

// sampleOf returns the text of a list and of the first branches in it.
func sampleOf(l *parse.ListNode) string {
	var sample strings.Builder
	for _, n := range nodesOf(l) {
		switch n := n.(type) {
		case *parse.TextNode:
			sample.Write(n.Text)
		case *parse.IfNode:
			sample.WriteString(sampleOf(n.List))
		case *parse.WithNode:
			sample.WriteString(sampleOf(n.List))
		case *parse.RangeNode:
			sample.WriteString(sampleOf(n.List))
		}
		if sample.Len() > maxSampleBytes {
			break
		}
	}
	return sample.String()
}

func nodesOf(l *parse.ListNode) []parse.Node {
	if l == nil {
		return nil
	}
	return l.Nodes
}

func isSilent(l *parse.ListNode) bool {
	for _, n := range nodesOf(l) {
		if text, isText := n.(*parse.TextNode); isText {
			if strings.TrimSpace(string(text.Text)) != "" {
				return false
			}
		} else if !isSilentNode(n) {
			return false
		}
	}
	return true
}

// isSilentNode reports whether a node that is no text writes nothing but white space.
func isSilentNode(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.ActionNode:
		return len(n.Pipe.Decl) > 0 || fails(n.Pipe)
	case *parse.IfNode:
		return isSilent(n.List) && isSilent(n.ElseList)
	case *parse.WithNode:
		return isSilent(n.List) && isSilent(n.ElseList)
	case *parse.RangeNode:
		return isSilent(n.List) && isSilent(n.ElseList)
	case *parse.TemplateNode, *parse.TextNode:
		return false
	default: // break, continue and comments
		return true
	}
}

// fails reports whether a pipeline always fails.
func fails(p *parse.PipeNode) bool {
	function, ok := p.Cmds[len(p.Cmds)-1].Args[0].(*parse.IdentifierNode)
	return ok && function.Ident == "fail"
}
