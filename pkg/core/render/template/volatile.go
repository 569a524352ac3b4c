package template

import (
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// volatile are the functions that return another value each time: a random one, one that depends on the clock, or keys of a map in any order. Functions
// that format a time use the current one if their argument is none.
var volatile = []string{
	"randAlphaNum", "randAlpha", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4", "bcrypt", "htpasswd", "encryptAES",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"now", "ago", "date", "dateInZone", "date_in_zone", "htmlDate", "htmlDateInZone", "keys", "values",
}

// IsVolatile reports whether the source of a template calls a function that returns another value each time: a random one, or one that depends on the
// clock. A template that cannot be parsed is not volatile.
func IsVolatile(source string) bool {
	if !slices.ContainsFunc(volatile, func(name string) bool { return strings.Contains(source, name) }) {
		return false // nearly all templates, which are not parsed
	}
	t, err := Parse("", source)
	return err == nil && callsAny(t, volatile)
}

// callsAny reports whether a template, or one that it defines, calls one of these functions.
func callsAny(t *template.Template, names []string) (found bool) {
	var search func(parse.Node)
	search = func(n parse.Node) {
		switch n := n.(type) {
		case *parse.IdentifierNode:
			found = found || slices.Contains(names, n.Ident)
		case *parse.ChainNode:
			search(n.Node)
		case *parse.PipeNode:
			for _, command := range n.Cmds {
				for _, argument := range command.Args {
					search(argument)
				}
			}
		}
	}
	Pipes(t, func(p *parse.PipeNode, _ Place) { search(p) })
	return found
}
