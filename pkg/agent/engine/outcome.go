package engine

import (
	"errors"

	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// outcomeOf returns the outcome of a task whose request has failed.
func outcomeOf(err error) plan.Outcome {
	var missing *missingRight
	lacksRight := errors.As(err, &missing) && missing.final
	return outcome.OfError(err, lacksRight || errors.Is(err, errUnwatchable) || apply.IsFinal(err))
}

// unreadable returns why objects of a kind cannot be read until its definition changes, or the webhook that converts them responds; empty if
// the error has another cause.
func unreadable(err error) string {
	var unserved *unservedError
	if errors.As(err, &unserved) && unserved.definition != "" {
		return unserved.why
	}
	return outcome.ConversionFailure(err)
}
