package structure

import (
	"go/ast"
	"slices"
	"testing"
)

// TestHubAndAgentFetchNothing checks that the programs in a cluster send requests only by the clients of Kubernetes, to API servers: a URL
// in a package leads nowhere from there. The command line downloads packages.
func TestHubAndAgentFetchNothing(t *testing.T) {
	fetching := map[string][]string{
		"net": {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer", "Resolver", "DefaultResolver", "LookupHost", "LookupIP",
			"LookupAddr", "LookupCNAME", "LookupTXT", "LookupMX", "LookupNS", "LookupSRV", "ResolveIPAddr", "ResolveTCPAddr", "ResolveUDPAddr"},
		"net/http":   {"Get", "Head", "Post", "PostForm", "NewRequest", "NewRequestWithContext", "DefaultClient", "DefaultTransport"},
		"crypto/tls": {"Dial", "DialWithDialer", "Dialer"},
		"os/exec":    {"Command", "CommandContext"},
	}
	inCluster := func(folder string) bool {
		return slices.ContainsFunc([]string{"cmd/addon-manager", "cmd/addon-agent", "pkg/hub", "pkg/agent", "pkg/kube"},
			func(part string) bool { return within(part)(folder) })
	}
	isPure := pure(t)
	for _, s := range sources(t) {
		if s.isTest() || !inCluster(s.folder()) && !isPure(s.folder()) {
			continue
		}
		s.uses(func(node ast.Node, importPath, name string) {
			if slices.Contains(fetching[importPath], name) {
				t.Errorf("%s: %s.%s: hub and agent send requests to API servers only", s.at(node), importPath, name)
			}
		})
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			if literal, ok := node.(*ast.CompositeLit); ok && isSelector(s, literal.Type, "net/http", "Client", "Request", "Transport") {
				t.Errorf("%s: a client of HTTP: hub and agent send requests to API servers only", s.at(node))
			}
			return true
		})
	}
}

// isSelector reports whether an expression is one of the names of an imported package.
func isSelector(s source, expression ast.Expr, importPath string, names ...string) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	qualifier, ok := selector.X.(*ast.Ident)
	return ok && s.names[qualifier.Name] == importPath && slices.Contains(names, selector.Sel.Name)
}
