package sourcing

import (
	"errors"
	"fmt"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Failure is the error of an attempt that has stored nothing.
type Failure struct {
	// Reason is a reason of condition Ready.
	Reason string
	// Version is the version or tag that was chosen, and Digest its digest; empty if none was.
	Version, Digest string
	// Err says what is wrong.
	Err error
}

func (f *Failure) Error() string { return f.Reason + ": " + f.message() }

func (f *Failure) Unwrap() error { return f.Err }

// message returns the text of the error; that of a joined one on one line.
func (f *Failure) message() string {
	if f.Version == "" {
		return f.Err.Error()
	}
	return fmt.Sprintf("version %s: %v", text.Escape(text.Truncate(f.Version, maxVersion)), f.Err)
}

// Failed returns a failure with a reason; nil without an error. An error that is one already stays as it is.
func Failed(reason string, err error) error {
	var failure *Failure
	if err == nil || errors.As(err, &failure) {
		return err
	}
	return &Failure{Reason: reason, Err: err}
}

// FailureOf returns the failure in an error; one to read the registry if it is another error.
func FailureOf(err error) *Failure {
	var failure *Failure
	var host *HostError
	var address *AddressError
	switch {
	case errors.As(err, &host):
		return hostFailure(err, host)
	case errors.As(err, &address):
		return hostFailure(err, address)
	case errors.As(err, &failure):
		return failure
	}
	return &Failure{Reason: kudo.ReasonPullFailed, Err: err}
}

// hostFailure returns the failure of an error that was caused by a host that is not allowed, with the version that the error is about.
func hostFailure(err, cause error) *Failure {
	found := &Failure{Reason: kudo.ReasonHostNotAllowed, Err: cause}
	var about *Failure
	if errors.As(err, &about) {
		found.Version, found.Digest = about.Version, about.Digest
	}
	return found
}

// IsFinal reports whether the next attempt fails in the same way, until the spec, the keys or the registry change.
func (f *Failure) IsFinal() bool {
	return f.isAboutVersion() || f.Reason == kudo.ReasonInvalidSource
}

// isAboutVersion reports whether the failure is a property of the version that was found.
func (f *Failure) isAboutVersion() bool {
	return slices.Contains([]string{
		kudo.ReasonHostNotAllowed, kudo.ReasonVerificationFailed, kudo.ReasonInvalidPackage, kudo.ReasonVersionConflict,
	}, f.Reason)
}

// Choose returns the highest of the versions in a range.
func Choose(wanted string, versions []string) (string, error) {
	const shown = 5
	versions = catalog.Strict(versions)
	chosen, err := catalog.Highest(wanted, versions)
	switch {
	case err != nil:
		return "", Failed(kudo.ReasonInvalidSource, fmt.Errorf("the version %w", err))
	case chosen != "":
		return chosen, nil
	}
	highest := catalog.Sorted(versions, shown)
	if len(highest) == 0 {
		return "", Failed(kudo.ReasonVersionNotFound, errors.New("no tag is a complete version, such as 1.2.3"))
	}
	for i := range highest {
		highest[i] = text.Escape(text.Truncate(highest[i], maxVersion))
	}
	return "", Failed(kudo.ReasonVersionNotFound, fmt.Errorf("no version is in the range %s: the highest are %s", text.Quote(wanted), text.List(highest, shown)))
}
