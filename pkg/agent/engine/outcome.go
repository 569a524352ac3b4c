package engine

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/render"
	"github.com/tandem-addons/tandem/pkg/rights"
	"github.com/tandem-addons/tandem/pkg/text"
)

// outcomeOf maps an error of the API server to an outcome: a permanent rejection is fatal, everything else may be temporary.
func outcomeOf(err error) plan.Outcome {
	var foreign *plan.ForeignError
	var refused *rights.Refused
	var missing *missingRight
	switch {
	case meta.IsNoMatchError(err):
		return fatal(withReplacement(err))
	case errors.Is(err, errUnwatchable), errors.As(err, &foreign), errors.As(err, &refused), apply.Final(err):
		return fatal(err)
	case errors.As(err, &missing) && missing.final:
		return fatal(err)
	default:
		return plan.Outcome{Status: kudo.Error, Message: oneLine(err)}
	}
}

func fatal(err error) plan.Outcome {
	return plan.Outcome{Status: kudo.FatalError, Message: oneLine(err)}
}

// oneLine formats an error for a status. Responses of an API server may quote whole objects.
func oneLine(err error) string {
	const most = 4096
	return text.Prefix(text.OneLine(err.Error()), most)
}

// withReplacement adds the replacement of a kind that is missing because Kubernetes has removed its API version.
func withReplacement(err error) error {
	var missing *meta.NoKindMatchError
	if errors.As(err, &missing) {
		for _, version := range missing.SearchedVersions {
			if advice := render.Removed(missing.GroupKind.WithVersion(version)); advice != "" {
				return fmt.Errorf("%w: %s", err, advice)
			}
		}
	}
	return err
}
