package wrap

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Choice is a value of a chart that a package makes a parameter.
type Choice struct {
	Path      Path
	Parameter string
	// Sensitive is true for a sensitive parameter: the package does not contain its value.
	Sensitive bool
}

// Path leads to a value of a chart, such as image.tag.
type Path []string

// String returns the path as users write it: a dot in a key has a backslash before it.
func (p Path) String() string {
	escaped := make([]string, 0, len(p))
	for _, key := range p {
		escaped = append(escaped, strings.NewReplacer(`\`, `\\`, ".", `\.`).Replace(key))
	}
	return strings.Join(escaped, ".")
}

// MaxChoices limits the values of a chart that become parameters.
const MaxChoices = 500

// maxKeys limits the keys of a path.
const maxKeys = 32

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseChoices parses choices of the form PATH=NAME or PATH, such as image.tag=TAG. Without a name, the parameter is called like the path:
// IMAGE_TAG. A choice that is invalid, or made twice, is an error.
func ParseChoices(args []string) ([]Choice, error) {
	if len(args) > MaxChoices {
		return nil, fmt.Errorf("%d values are chosen, more than %d: choose a map that contains some of them", len(args), MaxChoices)
	}
	choices := make([]Choice, 0, len(args))
	for _, arg := range args {
		place, name, named := cutLast(arg, "=")
		if named && name == "" {
			return nil, fmt.Errorf("%s is no PATH=NAME such as image.tag=TAG: the name is empty", text.Quote(arg))
		}
		choice, err := NewChoice(place, name)
		if err != nil {
			return nil, fmt.Errorf("%s is no PATH=NAME such as image.tag=TAG: %w", text.Quote(arg), err)
		}
		choices = append(choices, choice)
	}
	return choices, CheckChoices(choices)
}

// CheckChoices returns an error if two choices exclude each other.
func CheckChoices(choices []Choice) error {
	for i, choice := range choices {
		for _, other := range choices[:i] {
			if err := choice.excludes(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// NewChoice returns the choice of a value by its path, such as image.tag. Without a name, that of the parameter is derived from the path: IMAGE_TAG.
func NewChoice(place, name string) (Choice, error) {
	keys, err := parsePath(place)
	if err != nil {
		return Choice{}, err
	}
	if name == "" {
		name = nameOf(keys)
	}
	if !parameterName.MatchString(name) {
		return Choice{}, fmt.Errorf("parameter %s: use letters, digits and _", text.Quote(name))
	}
	return Choice{Path: keys, Parameter: name}, nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// parsePath parses a path whose keys are separated by dots. A dot that is part of a key has a backslash before it.
func parsePath(place string) (Path, error) {
	keys, escaped := Path{""}, false
	for _, r := range place {
		switch {
		case !escaped && r == '\\':
			escaped = true
			continue
		case !escaped && r == '.':
			keys = append(keys, "")
		case !unicode.IsPrint(r):
			return nil, errors.New("a key contains characters that cannot be printed")
		case !escaped && (r == '[' || r == ']'):
			return nil, errors.New("a single element of a list cannot be a parameter: choose the list")
		default:
			keys[len(keys)-1] += string(r)
		}
		escaped = false
	}
	return keys, checkKeys(keys)
}

func checkKeys(keys Path) error {
	switch {
	case len(keys) > maxKeys:
		return fmt.Errorf("the path has %d keys, more than %d", len(keys), maxKeys)
	case slices.Contains(keys, ""):
		return errors.New("a key is empty")
	}
	return nil
}

// nameOf returns the name of the parameter for a path: IMAGE_PULL_POLICY for image.pullPolicy.
func nameOf(path Path) string {
	var name strings.Builder
	for i, key := range path {
		if i > 0 {
			name.WriteByte('_')
		}
		lower := false
		for _, r := range key {
			switch {
			case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
				r, lower = '_', false
			case unicode.IsUpper(r):
				if lower {
					name.WriteByte('_')
				}
				lower = false
			default:
				lower = true
			}
			name.WriteRune(unicode.ToUpper(r))
		}
	}
	if unicode.IsDigit(rune(name.String()[0])) {
		return "_" + name.String()
	}
	return name.String()
}

// excludes returns an error if two choices cannot both be made.
func (c Choice) excludes(other Choice) error {
	switch {
	case c.Parameter == other.Parameter:
		return fmt.Errorf("parameter %s is chosen for %s and for %s: use another name for one", c.Parameter, other.Path, c.Path)
	case strings.EqualFold(c.Parameter, other.Parameter):
		return fmt.Errorf("parameters %s and %s differ only in case: use another name for one", other.Parameter, c.Parameter)
	case c.Path.isBelow(other.Path):
		return fmt.Errorf("%s is a part of %s, which is chosen, too: choose one of them", c.Path, other.Path)
	case other.Path.isBelow(c.Path):
		return fmt.Errorf("%s is a part of %s, which is chosen, too: choose one of them", other.Path, c.Path)
	}
	return nil
}

// isBelow reports whether a path is the other or leads into it.
func (p Path) isBelow(other Path) bool {
	if len(p) < len(other) {
		return false
	}
	for i, key := range other {
		if p[i] != key {
			return false
		}
	}
	return true
}
