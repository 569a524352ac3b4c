package preview

import "strings"

// Validation is the treatment of fields that do not fit the kind of their object, as with --validate of kubectl. The zero value is strict: a
// task that applies such an object fails.
type Validation string

// The other validations.
const (
	ValidationWarn   Validation = "warn"
	ValidationIgnore Validation = "ignore"
)

// check returns the warnings about fields that do not fit, or the problem with them.
func (v Validation) check(misfits []string) (warnings []string, problem string) {
	switch v {
	case ValidationIgnore:
		return nil, ""
	case ValidationWarn:
		return misfits, ""
	default:
		return nil, strings.Join(misfits, "; ")
	}
}
