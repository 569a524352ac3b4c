package ui

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
	"github.com/tandem-addons/tandem/pkg/ui/contact"
)

const (
	// maxToken is the size of the longest token that fits into a cookie, in bytes.
	maxToken = 3800
	// maxForm is the size of the largest form, in bytes.
	maxForm = 64 << 10
)

// Tokens is the gate of a server for many users: each pastes a token that the hub accepts. The browser keeps the token in a cookie that no
// script can read; the server keeps nothing, so that sessions survive its restart. Every request has the permissions of the token's user.
type Tokens struct {
	hub    client.Client
	cookie http.Cookie
	tokens *contact.Answers[[sha256.Size]byte, *authenticationv1.UserInfo]
	rights *contact.Answers[review, bool]
	// credentials limits the tokens that the hub is asked about, which clients send from behind proxies.
	credentials *endpoint.Credentials
	proxies     endpoint.Proxies
	reviews     *prometheus.CounterVec
}

// errUnchecked is the error of a token that the hub is not asked about, because clients send too many that it has not accepted before.
var errUnchecked = errors.New("too many unknown tokens")

// NewTokens returns a gate that asks the hub about tokens and permissions. secure is set if browsers reach the server by HTTPS; proxies are
// those in front of it whose header X-Forwarded-For is believed.
func NewTokens(hub client.Client, secure bool, proxies endpoint.Proxies) *Tokens {
	cookie := http.Cookie{Name: "tandem", Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if secure {
		cookie.Name, cookie.Secure = "__Host-tandem", true
	}
	return &Tokens{
		hub: hub, cookie: cookie, tokens: contact.NewAnswers[[sha256.Size]byte, *authenticationv1.UserInfo](), rights: contact.NewAnswers[review, bool](),
		credentials: endpoint.NewCredentials(), proxies: proxies,
		reviews: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_ui_token_reviews_total", Help: "Number of tokens that the hub was asked about, by its answer, and of those it was not asked about.",
		}, []string{"answer"}),
	}
}

// Collectors returns the metrics of the gate.
func (t *Tokens) Collectors() []prometheus.Collector { return []prometheus.Collector{t.reviews} }

// Visitor returns the user of the token in the request's cookie.
func (t *Tokens) Visitor(r *http.Request) (*Visitor, error) {
	cookie, err := r.Cookie(t.cookie.Name)
	if err != nil || cookie.Value == "" {
		return nil, nil
	}
	user, err := t.user(r, cookie.Value)
	if err != nil || user == nil {
		return nil, err
	}
	return &Visitor{Name: user.Username, Rights: granted{t, user}, User: user, Token: formToken(cookie.Value), MayLeave: true}, nil
}

// user returns the user of a token, or nil if the hub does not accept it.
func (t *Tokens) user(r *http.Request, token string) (*authenticationv1.UserInfo, error) {
	return t.tokens.Get(sha256.Sum256([]byte(token)), func() (*authenticationv1.UserInfo, error) {
		client, _ := t.proxies.Client(r)
		end, may := t.credentials.Begin(client, token)
		if !may {
			t.reviews.WithLabelValues("unchecked").Inc()
			return nil, errUnchecked
		}
		user, err := t.review(r.Context(), token)
		answer, outcome := "accepted", endpoint.Accepted
		switch {
		case err != nil:
			answer, outcome = "failed", endpoint.Unknown
		case user == nil:
			answer, outcome = "rejected", endpoint.Rejected
		}
		t.reviews.WithLabelValues(answer).Inc()
		end(outcome)
		return user, err
	})
}

// review asks the hub for the user of a token.
func (t *Tokens) review(ctx context.Context, token string) (*authenticationv1.UserInfo, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := t.hub.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("checking a token: %w", err)
	}
	return userOf(review.Status), nil
}

// userOf returns the user of a token, or nil if there is none. A user without a name cannot be impersonated: actions would have the
// permissions of the dashboard.
func userOf(status authenticationv1.TokenReviewStatus) *authenticationv1.UserInfo {
	if !status.Authenticated || status.User.Username == "" {
		return nil
	}
	return &status.User
}

// Enter serves the form for a token, and starts and ends sessions.
func (t *Tokens) Enter(w http.ResponseWriter, r *http.Request, show func(int, Entrance)) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/session/enter":
		t.enter(w, r, show)
	case r.Method == http.MethodPost && r.URL.Path == "/session/leave":
		t.leave(w, r)
	case r.URL.Path == "/session/enter":
		http.Redirect(w, r, "/", http.StatusSeeOther)
	default:
		show(http.StatusUnauthorized, Entrance{Form: true})
	}
}

func (t *Tokens) enter(w http.ResponseWriter, r *http.Request, show func(int, Entrance)) {
	token := strings.TrimSpace(r.PostFormValue("bearer"))
	if len(token) > maxToken {
		show(http.StatusBadRequest, Entrance{Form: true, Problem: fmt.Sprintf("The token is longer than %d bytes, and does not fit into a cookie. Use a shorter one.", maxToken)})
		return
	}
	if token == "" {
		show(http.StatusUnauthorized, Entrance{Form: true, Problem: "Enter a token."})
		return
	}
	user, err := t.user(r, token)
	switch {
	case errors.Is(err, errUnchecked):
		w.Header().Set("Retry-After", strconv.Itoa(int(endpoint.RetryAfter/time.Second)))
		show(http.StatusTooManyRequests, Entrance{Form: true, Problem: "Too many unknown tokens are sent. Wait a few seconds, and try again."})
	case err != nil:
		show(http.StatusBadGateway, Entrance{Form: true, Problem: "The hub cannot check tokens at the moment. Try again."})
	case user == nil:
		show(http.StatusUnauthorized, Entrance{Form: true, Problem: "The hub rejects this token: it is invalid or has expired."})
	default:
		cookie := t.cookie
		cookie.Value = token
		http.SetCookie(w, &cookie)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}

func (t *Tokens) leave(w http.ResponseWriter, r *http.Request) {
	if held, err := r.Cookie(t.cookie.Name); err == nil && !same(r.PostFormValue("token"), formToken(held.Value)) {
		http.Error(w, "the form is not from this session: load the page again", http.StatusForbidden)
		return
	}
	cookie := t.cookie
	cookie.MaxAge = -1
	http.SetCookie(w, &cookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// granted are the permissions of one user, as the hub answers.
type granted struct {
	*Tokens
	user *authenticationv1.UserInfo
}

// review is a question about a user's permission.
type review struct {
	user                                      string
	verb, group, resource, namespace, subject string
}

// May asks the hub whether the user may send a request.
func (g granted) May(ctx context.Context, request authorizationv1.ResourceAttributes) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(g.user.Extra))
	for key, values := range g.user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	key := review{fmt.Sprintf("%q %q %q %q", g.user.Username, g.user.UID, g.user.Groups, extra),
		request.Verb, request.Group, request.Resource, request.Namespace, request.Name}
	return g.rights.Get(key, func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: g.user.Username, UID: g.user.UID, Groups: g.user.Groups, Extra: extra, ResourceAttributes: &request,
		}}
		if err := g.hub.Create(ctx, review); err != nil {
			return false, fmt.Errorf("checking permissions: %w", err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	})
}
