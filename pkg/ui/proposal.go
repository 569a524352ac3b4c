package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/ui/contact"
)

// fieldManager is the owner of the fields that the dashboard writes.
const fieldManager = "addon-manager-ui"

// action gathers what a request would change. Its client reads and writes the hub itself with the permissions of the user who asks.
type action func(ctx context.Context, c client.Client, r *http.Request) (proposal, error)

// proposal is what an action would change.
type proposal struct {
	Title string
	// Effects and Warnings state what would happen; Refusal states why it cannot.
	Effects, Warnings []string
	Refusal           string
	// Plan is the plan that would run; nil if none would.
	Plan *kudo.PlanStatus
	// Changes are the changes of Instances, as far as they are known.
	Changes []change.ChangeData
	// Options and Parameters change the proposal; Base are the fields of the form for Options beside them.
	Options    *enableOptions
	Parameters parameterForm
	Base       map[string]string
	// Command does the same.
	Command string
	// Button is the text of the button that does it; Fields are the fields of its form; Path receives them. Danger is set if it deletes or stops
	// something.
	Button string
	Danger bool
	Fields map[string]string
	Path   string
	// Back is the path of the page about the object.
	Back string
	// Seen identifies the state of the object that the proposal is for.
	Seen string
	// Token and Problem are set while the proposal is shown; Problem is why it is shown again.
	Token, Problem string
	// do makes the change. It returns a conflict if the object is not in the state that was seen.
	do func(context.Context) error
}

// enableOptions are the options of the preview.
type enableOptions struct {
	Namespace string
	// Dependencies is set if missing required add-ons are enabled too; Missing, if there are some.
	Dependencies, Missing bool
}

// shownTo returns the proposal with the values that its forms have to contain.
func (p proposal) shownTo(token string) proposal {
	p.Token, p.Parameters.Token, p.Parameters.Path, p.Parameters.Fields = token, token, p.Path, p.Fields
	return p
}

// Footer names what was not checked; empty if everything was.
func (p proposal) Footer() string {
	return change.DryRun{Changes: p.Changes, NotChecked: change.NotChecked(p.Changes)}.Footer()
}

// withRefusal returns a proposal that cannot be made, with the reason. An answer of the hub stays an error.
func (p proposal) withRefusal(reason error) (proposal, error) {
	var answer apierrors.APIStatus
	if errors.As(reason, &answer) {
		return proposal{}, reason
	}
	p.Refusal = reason.Error()
	return p, nil
}

// incompleteError is the error of an action that has changed something before it failed.
type incompleteError struct {
	done []change.Written
	err  error
}

// Error returns the error with what was written.
func (e *incompleteError) Error() string {
	var done []string
	for _, written := range e.done {
		done = append(done, written.String())
	}
	return fmt.Sprintf("only a part of the change was made (%s): %v", strings.Join(done, ", "), e.err)
}

// Unwrap returns the error.
func (e *incompleteError) Unwrap() error { return e.err }

// incomplete returns the error of an action with what was written before.
func incomplete(done []change.Written, err error) error {
	if err == nil || len(done) == 0 {
		return err
	}
	return &incompleteError{done, err}
}

// unansweredError is the error of a change whose request the hub has not answered, or not completed in time: it may have been made.
type unansweredError struct{ error }

// Unwrap returns the error.
func (e *unansweredError) Unwrap() error { return e.error }

// changeError returns the error of a change that was sent to the hub.
func changeError(err error) error {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError {
		return err
	}
	return &unansweredError{fmt.Errorf("the hub may have made the change: %w", err)}
}

// isStale reports whether an action has failed because an object is not in the state that was seen, and has changed nothing.
func isStale(err error) bool {
	var incomplete *incompleteError
	return !errors.As(err, &incomplete) && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err))
}

// as returns a client with the permissions of a user, or with those of the connection without one.
func (h *Hub) as(user *authenticationv1.UserInfo) (client.Client, error) {
	if user == nil {
		return client.WithFieldOwner(h.Client, fieldManager), nil
	}
	config := rest.CopyConfig(h.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string][]string{}}
	for key, values := range user.Extra {
		config.Impersonate.Extra[key] = values
	}
	c, err := client.New(config, client.Options{Scheme: h.Scheme(), Mapper: h.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub as %q: %w", user.Username, err)
	}
	return client.WithFieldOwner(c, fieldManager), nil
}

// own are the permissions of the connection's user, as the hub answers.
type own struct {
	hub  *Hub
	kept *contact.Answers[authorizationv1.ResourceAttributes, bool]
}

// May asks the hub whether the user of the connection may send a request.
func (o own) May(ctx context.Context, request authorizationv1.ResourceAttributes) (bool, error) {
	return o.kept.Get(request, func() (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request}}
		if err := o.hub.Create(ctx, review); err != nil {
			return false, fmt.Errorf("checking permissions: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	})
}
