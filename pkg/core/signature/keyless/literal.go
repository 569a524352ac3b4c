package keyless

import (
	"errors"
	"regexp/syntax"
	"slices"
	"strings"
)

// literal is what a text that matches an alternative of a regular expression begins and ends with, without regard of case.
type literal struct {
	prefix, suffix string
	isWhole        bool // the prefix is the text, and so is the suffix
}

// newWhole returns the literal of a single text.
func newWhole(text string) literal {
	lower := strings.ToLower(text)
	return literal{lower, lower, true}
}

// subjectLiterals returns the literals of an expression for subjects, each of which names an organization, an account or the domain of email addresses.
func subjectLiterals(expression string) ([]literal, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, errors.New(cause(err))
	}
	literals := literalsOf(parsed)
	for _, l := range literals {
		switch {
		case l.isWhole || l.namesOrganization() || l.namesDomain():
		case strings.Contains(l.prefix, "://"):
			return nil, errors.New("it names no organization: a URL must begin with https://HOST/ORGANIZATION/, without a wildcard in it (write \\. for a dot)")
		default:
			return nil, errors.New("it names no organization and no domain: a URL must begin with https://HOST/ORGANIZATION/, and an email address must end with " +
				"@DOMAIN, without a wildcard in it (write \\. for a dot)")
		}
	}
	return literals, nil
}

// namesOrganization reports whether the prefix is a URL with a host and an organization, or only with a host if the scheme is another one, such as spiffe.
func (l literal) namesOrganization() bool {
	scheme, rest, _ := strings.Cut(l.prefix, "://")
	host, path, hasPath := strings.Cut(rest, "/")
	organization, _, hasOrganization := strings.Cut(path, "/")
	return host != "" && hasPath && (scheme != "https" || hasOrganization && organization != "")
}

// namesDomain reports whether the suffix is the domain of email addresses, or of the users of an issuer, such as user!example.com.
func (l literal) namesDomain() bool {
	at := strings.LastIndexAny(l.suffix, "@!")
	return at >= 0 && at < len(l.suffix)-1 && !strings.Contains(l.suffix[at:], "/")
}

// fits reports whether a text that matches is what the literal names: a URL whose end looks like an email address is none.
func (l literal) fits(text string) bool {
	lower := strings.ToLower(text)
	switch {
	case l.isWhole:
		return lower == l.prefix
	case l.namesOrganization():
		return strings.HasPrefix(lower, l.prefix)
	}
	return strings.HasSuffix(lower, l.suffix) && !strings.Contains(lower, "/")
}

// The limits of alternatives: what has more of them counts as a wildcard.
const (
	maxLiterals   = 100
	maxCharacters = 16
)

// wildcard returns the literal of any text.
func wildcard() []literal { return []literal{{}} }

// literalsOf returns the literals of the alternatives of an expression: each text that matches it has one of them.
func literalsOf(expression *syntax.Regexp) []literal {
	switch expression.Op {
	case syntax.OpNoMatch:
		return nil
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText:
		return []literal{newWhole("")}
	case syntax.OpLiteral:
		return []literal{newWhole(string(expression.Rune))}
	case syntax.OpCharClass:
		return charactersOf(expression.Rune)
	case syntax.OpCapture:
		return literalsOf(expression.Sub[0])
	case syntax.OpQuest:
		return append(literalsOf(expression.Sub[0]), newWhole(""))
	case syntax.OpAlternate:
		return alternatives(expression.Sub)
	case syntax.OpConcat:
		return sequence(expression.Sub)
	}
	return wildcard()
}

// charactersOf returns a literal for each character of a class, which is a list of first and last ones.
func charactersOf(class []rune) []literal {
	var literals []literal
	for bounds := range slices.Chunk(class, 2) {
		if int(bounds[1]-bounds[0])+len(literals) >= maxCharacters {
			return wildcard()
		}
		for character := bounds[0]; character <= bounds[1]; character++ {
			literals = append(literals, newWhole(string(character)))
		}
	}
	return literals
}

// alternatives returns the literals of any of the expressions.
func alternatives(expressions []*syntax.Regexp) []literal {
	var literals []literal
	for _, e := range expressions {
		literals = append(literals, literalsOf(e)...)
	}
	if len(literals) > maxLiterals {
		return wildcard()
	}
	return literals
}

// sequence returns the literals of expressions that follow each other.
func sequence(expressions []*syntax.Regexp) []literal {
	literals := []literal{newWhole("")}
	for _, e := range expressions {
		next := literalsOf(e)
		if len(literals)*len(next) > maxLiterals {
			next = wildcard()
		}
		var longer []literal
		for _, l := range literals {
			for _, n := range next {
				longer = append(longer, l.followedBy(n))
			}
		}
		literals = longer
	}
	return literals
}

// followedBy returns the literal of a text with one literal that is followed by a text with another one.
func (l literal) followedBy(next literal) literal {
	joined := literal{l.prefix, next.suffix, l.isWhole && next.isWhole}
	if l.isWhole {
		joined.prefix += next.prefix
	}
	if next.isWhole {
		joined.suffix = l.suffix + next.suffix
	}
	return joined
}
