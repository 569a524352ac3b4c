package ui

import (
	"context"
	"fmt"
	"net/http"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// fieldManager is the owner of the fields that the dashboard writes.
const fieldManager = "addon-manager-ui"

// action gathers what a request would change. Its client reads and writes the hub itself with the permissions of the user who asks.
type action func(ctx context.Context, c client.Client, r *http.Request) (proposal, error)

// proposal is what an action would change.
type proposal struct {
	Title string
	// Effects and Warnings say what would happen.
	Effects, Warnings []string
	// Plan is the plan that would run; nil if none would.
	Plan *kudo.PlanStatus
	// Command does the same.
	Command string
	// Button is the text of the button that does it; Fields are the fields of its form; Path receives them.
	Button string
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
	kept *answers[authorizationv1.ResourceAttributes, bool]
}

// May asks the hub whether the user of the connection may send a request.
func (o own) May(ctx context.Context, request authorizationv1.ResourceAttributes) (bool, error) {
	return o.kept.get(request, func() (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &request}}
		if err := o.hub.Create(ctx, review); err != nil {
			return false, fmt.Errorf("checking permissions: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	})
}
