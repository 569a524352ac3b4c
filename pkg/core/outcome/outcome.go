// Package outcome decides the outcome of a task from the errors of its requests, and from what was read for it. It touches no cluster.
package outcome

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// OfError maps an error of the API server to an outcome: a permanent rejection is fatal, everything else may be temporary. final is true if
// the request will always be rejected. A kind that the cluster does not have may be defined later, unless Kubernetes has removed it. The
// message is not masked and shortened yet.
func OfError(err error, final bool) plan.Outcome {
	var foreign *plan.ForeignError
	var refused *rights.Refused
	switch {
	case meta.IsNoMatchError(err):
		return missingKind(err)
	case final, errors.As(err, &foreign), errors.As(err, &refused):
		return Fatal(err)
	default:
		return temporary(err.Error())
	}
}

// Fatal returns the outcome of a task that cannot succeed.
func Fatal(err error) plan.Outcome {
	return plan.Outcome{Status: kudo.FatalError, Message: err.Error()}
}

func temporary(message string) plan.Outcome {
	return plan.Outcome{Status: kudo.Error, Message: message}
}

// missingKind returns the outcome of a task with an object of a kind that the cluster does not have: the task is retried, because the kind's
// CustomResourceDefinition may be created later. Kubernetes' own API groups have names without a dot, and nothing adds kinds to them: that is
// fatal, and so is an API version that Kubernetes has removed; the message names the replacement.
func missingKind(err error) plan.Outcome {
	var missing *meta.NoKindMatchError
	if errors.As(err, &missing) {
		for _, version := range missing.SearchedVersions {
			if advice := render.RemovalAdvice(missing.GroupKind.WithVersion(version)); advice != "" {
				return Fatal(fmt.Errorf("%w: %s", err, advice))
			}
		}
		if !strings.Contains(missing.GroupKind.Group, ".") {
			return Fatal(err)
		}
	}
	return temporary(err.Error() + awaitsDefinition)
}

// awaitsDefinition ends the message of a task whose kind the cluster does not have.
const awaitsDefinition = ": waiting for its CustomResourceDefinition"

// OfUndefined returns the outcome of a task that has applied everything except an object of a kind that the package itself defines. instead
// names the versions that the cluster has.
func OfUndefined(object *unstructured.Unstructured, instead string) plan.Outcome {
	return temporary(plan.Describe(object) + awaitsDefinition + instead)
}

// CheckDefined returns an error if the package does not define the kinds that the cluster lacks. instead names the versions that the
// cluster has.
func CheckDefined(
	undefined []*unstructured.Unstructured, defines func(schema.GroupKind) bool, instead func(*unstructured.Unstructured) string,
) error {
	for _, want := range undefined {
		if kind := want.GroupVersionKind(); !defines(kind.GroupKind()) {
			return fmt.Errorf("%s: %w%s", plan.Describe(want),
				&meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}, instead(want))
		}
	}
	return nil
}

// OfProvisional returns the outcome of a task whose objects are applied and healthy: it completes once no Job has a provisional time to live any more.
func OfProvisional(objects []plan.Object) plan.Outcome {
	if at := slices.IndexFunc(objects, plan.Object.IsProvisional); at >= 0 {
		return plan.Outcome{Status: kudo.InProgress, Message: plan.Describe(objects[at].Want) + ": has succeeded, which is being recorded"}
	}
	return plan.Outcome{Status: kudo.Complete}
}

// OfUnlisted returns the outcome of a task whose objects the recorded inventory lacks, because their kind was unknown before: it waits for
// the commit that lists them in the tracked inventory. It is fatal if no commit can list them, because the inventory is full or because every
// rendering names the objects differently.
func OfUnlisted(
	tracked []kudo.InventoryEntry, parameters map[string]string,
	wants []*unstructured.Unstructured, renderAgain func() ([]*unstructured.Unstructured, error),
) plan.Outcome {
	if err := plan.CheckSize(tracked, parameters); err != nil {
		return Fatal(err)
	}
	again, err := renderAgain()
	if err != nil {
		return Fatal(err)
	}
	for _, want := range wants {
		same := func(o *unstructured.Unstructured) bool {
			return o.GetKind() == want.GetKind() && o.GetName() == want.GetName()
		}
		if !slices.ContainsFunc(again, same) {
			return Fatal(fmt.Errorf("%s: its name changes with every rendering", plan.Describe(want)))
		}
	}
	return plan.Outcome{Status: kudo.Pending}
}

// PodStep is what a Pipe task does next with its pod.
type PodStep string

// The steps with a pod.
const (
	ReadFiles  PodStep = "read files"
	ReplacePod PodStep = "replace"
	AwaitPod   PodStep = "await"
)

// OfPod returns what a Pipe task does next with a pod of its execution at that stage, and its outcome until then.
func OfPod(stage pipe.Stage, message string) (PodStep, plan.Outcome) {
	switch stage {
	case pipe.Ready:
		return ReadFiles, plan.Outcome{}
	case pipe.Retrying:
		return AwaitPod, temporary(message)
	case pipe.Lost:
		return ReplacePod, temporary(message + "; starting a new Pod")
	case pipe.Failed:
		return AwaitPod, Fatal(errors.New(message))
	default:
		return AwaitPod, plan.Outcome{Status: kudo.InProgress, Message: message}
	}
}

// ConversionFailure returns why an API server cannot read objects of a kind whose conversion webhook fails; empty if the error has another
// cause. As of Kubernetes 1.37, an API server reports that the stored object is corrupt, and the webhook's error last.
func ConversionFailure(err error) string {
	const webhook = "conversion webhook for "
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	before, failure, found := strings.Cut(status.Status().Message, webhook)
	if !found || before != "" && !strings.Contains(before, "object not decodable") {
		return ""
	}
	return plan.OneLine(webhook + failure)
}
