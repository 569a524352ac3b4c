package engine

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// outcomeOf maps an error of the API server to an outcome: a permanent rejection is fatal, everything else may be temporary. A kind that the
// cluster does not have may be defined later, unless Kubernetes has removed it. The message is
// not masked and shortened yet.
func outcomeOf(err error) plan.Outcome {
	var foreign *plan.ForeignError
	var refused *rights.Refused
	var missing *missingRight
	switch {
	case meta.IsNoMatchError(err):
		return missingKind(err)
	case errors.Is(err, errUnwatchable), errors.As(err, &foreign), errors.As(err, &refused), apply.IsFinal(err):
		return fatal(err)
	case errors.As(err, &missing) && missing.final:
		return fatal(err)
	default:
		return plan.Outcome{Status: kudo.Error, Message: err.Error()}
	}
}

func fatal(err error) plan.Outcome {
	return plan.Outcome{Status: kudo.FatalError, Message: err.Error()}
}

// unreadable returns why objects of a kind cannot be read until its definition changes, or the webhook that converts them responds; empty if
// the error has another cause.
func unreadable(err error) string {
	var unserved *unservedError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case errors.As(err, &unserved) && unserved.definition != "":
		return unserved.why
	case errors.As(err, &status) && strings.HasPrefix(status.Status().Message, "conversion webhook for"):
		return plan.OneLine(status.Status().Message)
	default:
		return ""
	}
}

// missingKind returns the outcome of a task with an object of a kind that the cluster does not have: the task is retried, because the kind's
// CustomResourceDefinition may be created later. Kubernetes' own API groups have names without a dot, and nothing adds kinds to them: that is
// fatal, and so is an API version that Kubernetes has removed; the message names the replacement.
func missingKind(err error) plan.Outcome {
	var missing *meta.NoKindMatchError
	if errors.As(err, &missing) {
		for _, version := range missing.SearchedVersions {
			if advice := render.RemovalAdvice(missing.GroupKind.WithVersion(version)); advice != "" {
				return fatal(fmt.Errorf("%w: %s", err, advice))
			}
		}
		if !strings.Contains(missing.GroupKind.Group, ".") {
			return fatal(err)
		}
	}
	return plan.Outcome{Status: kudo.Error, Message: err.Error() + ": waiting for its CustomResourceDefinition"}
}
