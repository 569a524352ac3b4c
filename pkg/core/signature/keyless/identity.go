package keyless

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"
)

// Identity is an identity that may sign: an account or a CI job, for which an issuer of OIDC tokens vouches. Of each pair, one field is set.
type Identity struct {
	// Issuer is the URL of the issuer, such as https://token.actions.githubusercontent.com; IssuerRegExp matches the whole URL.
	Issuer       string `json:"issuer,omitempty"`
	IssuerRegExp string `json:"issuerRegExp,omitempty"`
	// Subject is the subject alternative name of the certificate: the URL of a workflow with its ref, or an email address; SubjectRegExp matches all of it.
	Subject       string `json:"subject,omitempty"`
	SubjectRegExp string `json:"subjectRegExp,omitempty"`
}

// The limits of identities.
const (
	MaxIdentitiesBytes = 64 << 10
	maxIdentities      = 100
	maxPattern         = 1000
)

// ParseIdentities parses a list of identities in YAML or JSON.
func ParseIdentities(name string, data []byte) ([]Identity, error) {
	if len(data) > MaxIdentitiesBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, MaxIdentitiesBytes)
	}
	var identities []Identity
	if err := yaml.UnmarshalStrict(data, &identities); err != nil {
		return nil, fmt.Errorf("%s is no list of identities (issuer or issuerRegExp, subject or subjectRegExp): %s", name, cause(err))
	}
	if len(identities) == 0 || len(identities) > maxIdentities {
		return nil, fmt.Errorf("%s contains %d identities, which must be 1 to %d", name, len(identities), maxIdentities)
	}
	for at, i := range identities {
		if _, err := i.compile(); err != nil {
			return nil, fmt.Errorf("%s: identity %d: %w", name, at+1, err)
		}
	}
	return identities, nil
}

// identity is an identity that is compared with signers.
type identity struct{ issuer, subject pattern }

func (i identity) matches(signer Identity) bool {
	return i.issuer.matches(signer.Issuer) && i.subject.matches(signer.Subject)
}

func (i identity) String() string {
	return fmt.Sprintf("%s of issuer %s", quote(i.subject.source), quote(i.issuer.source))
}

// compile checks an identity, and compiles its regular expressions.
func (i Identity) compile() (identity, error) {
	issuer, err := newPattern("issuer", i.Issuer, i.IssuerRegExp)
	if err != nil {
		return identity{}, err
	}
	subject, err := newPattern("subject", i.Subject, i.SubjectRegExp)
	if err == nil && subject.expression != nil {
		if subject.literals, err = subjectLiterals(i.SubjectRegExp); err != nil {
			err = fmt.Errorf("subjectRegExp %s: %w", quote(i.SubjectRegExp), err)
		}
	}
	return identity{issuer, subject}, err
}

// pattern is a text, or a regular expression that matches whole texts.
type pattern struct {
	source     string
	expression *regexp.Regexp // nil for a text
	literals   []literal      // of an expression for subjects
}

func (p pattern) matches(value string) bool {
	if p.expression == nil {
		return p.source == value
	}
	fits := func(l literal) bool { return l.fits(value) }
	return p.expression.MatchString(value) && (p.literals == nil || slices.ContainsFunc(p.literals, fits))
}

// newPattern returns the pattern of a field, which has a value or a regular expression.
func newPattern(field, value, expression string) (pattern, error) {
	switch {
	case value == "" && expression == "":
		return pattern{}, fmt.Errorf("%s and %sRegExp are missing: an identity needs both an issuer and a subject", field, field)
	case value != "" && expression != "":
		return pattern{}, fmt.Errorf("%s and %sRegExp are both set: set one", field, field)
	case len(value) > maxPattern || len(expression) > maxPattern:
		return pattern{}, fmt.Errorf("%s has more than %d characters", field, maxPattern)
	case value != "":
		return pattern{source: value}, nil
	}
	compiled, err := compileWhole(expression)
	if err != nil {
		return pattern{}, fmt.Errorf("%sRegExp %s: %w", field, quote(expression), err)
	}
	return pattern{source: expression, expression: compiled}, nil
}

// compileWhole compiles a regular expression (RE2) that matches whole texts only.
func compileWhole(expression string) (*regexp.Regexp, error) {
	if _, err := regexp.Compile(expression); err != nil { // alone: a parenthesis must not close the group below
		return nil, errors.New(cause(err))
	}
	whole, err := regexp.Compile(`\A(?:` + expression + `)\z`)
	if err != nil {
		return nil, errors.New(cause(err))
	}
	for _, foreign := range foreigners() {
		if whole.MatchString(foreign) {
			return nil, fmt.Errorf("it matches everyone, such as %s: name the organization or the account", quote(foreign))
		}
	}
	return whole, nil
}

// foreigners are issuers and subjects that no expression is meant for: they are at a domain that cannot exist, or at an organization that cannot.
func foreigners() []string {
	return []string{
		"https://other.invalid", "https://other.invalid/realms/other", "someone@other.invalid",
		"https://github.com/other.invalid/other/.github/workflows/other.yaml@refs/heads/other",
		"https://github.com/other.invalid/other/.github/workflows/other.yml@refs/tags/v0.0.0",
		"https://gitlab.com/other.invalid/other//.gitlab-ci.yml@refs/heads/other", "x", "",
	}
}
