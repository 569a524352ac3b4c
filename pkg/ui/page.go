package ui

import (
	"bytes"
	"context"
	"crypto/tls"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Options configures a server.
type Options struct {
	Hub  *Hub
	Gate Gate
	// Hosts are the values of header Host that are served, without a port. Requests for other hosts are refused, because a name that an
	// attacker controls may lead here (DNS rebinding).
	Hosts   []string
	Version string
	// ReadOnly omits all actions.
	ReadOnly bool
	// Limits are the limits of clients.
	Limits Limits
	// TLS is the configuration of HTTPS; nil for HTTP.
	TLS *tls.Config
}

// Gate decides who sends a request.
type Gate interface {
	// Visitor returns the user of a request, or nil if it has no valid session.
	Visitor(r *http.Request) (*Visitor, error)
	// Enter serves the requests that start or end a session, below /session.
	Enter(w http.ResponseWriter, r *http.Request, show func(status int, p Entrance))
}

// Visitor is a user with a session.
type Visitor struct {
	Name   string
	Rights Rights
	// User is whom actions impersonate; nil if the connection's user is the visitor.
	User *authenticationv1.UserInfo
	// Token is the value that forms have to contain.
	Token string
	// MayLeave is set if the user can end the session.
	MayLeave bool
}

// Entrance is the page that users see without a session.
type Entrance struct {
	// Problem is the reason of a refused session; Form is set if a token can be entered; Next is the page to show afterwards.
	Problem string
	Form    bool
	Next    string
}

//go:embed templates static
var files embed.FS

// Server serves the dashboard.
type Server struct {
	Options
	templates *template.Template
	own       own
	mux       *http.ServeMux
	// seats are the live pages and the requests of users that are served.
	seats  *endpoint.Seats
	meters meters
}

// frame is a page with what surrounds it.
type frame struct {
	Title   string
	Status  int
	Visitor *Visitor
	Version string
	// Live is set if the page has a stream; Lost is the time since when the hub does not respond.
	Live bool
	Lost time.Time
	// Hint is a sentence about an addon-manager that does not run; empty if there is none.
	Hint string
	// Template is the name of the template for View.
	Template string
	View     any
	// Path is the path of the page.
	Path string
	// Query is what is searched for.
	Query string
}

// visit is a request of a page.
type visit struct {
	*http.Request
	reader
	now time.Time
	// acts are the permissions to act, nil if no action is offered; token is the value that forms have to contain.
	acts  Rights
	token string
}

// page gathers the content of a page: a frame with a title, a template and what it shows.
type page func(ctx context.Context, v visit) (frame, error)

// gather gathers the content of a page; of an error, a page that states it.
func (s *Server) gather(r *http.Request, visitor *Visitor, p page) frame {
	complete, lost := s.Hub.contact.State()
	v := visit{Request: r, reader: reader{s.Hub, visitor.Rights}, now: time.Now(), acts: s.rightsToAct(visitor), token: visitor.Token}
	f, err := frame{Title: "Reading the hub", Status: http.StatusServiceUnavailable, Template: "loading"}, error(nil)
	if complete {
		f, err = p(r.Context(), v)
	}
	switch {
	case isHidden(err) || errors.Is(err, errAbsent):
		f = frame{Title: "Not found", Status: http.StatusNotFound, Template: "absent", View: hiddenText(err)}
	case err != nil:
		f = frame{Title: "Error", Status: http.StatusInternalServerError, Template: "failure", View: err.Error()}
	case f.Status == 0:
		f.Status = http.StatusOK
	}
	f.Visitor, f.Version, f.Live, f.Lost, f.Path, f.Hint = visitor, s.Version, true, lost, r.URL.RequestURI(), s.Hub.managerHint()
	return f
}

// errAbsent is the error of a page about something that does not exist, or that the user may not read.
var errAbsent = errors.New("there is no such page, or you have no permission to read it")

func absent(context.Context, visit) (frame, error) { return frame{}, errAbsent }

// hiddenText returns the text about something that does not exist or is forbidden. A refusal names only what the user asked for.
func hiddenText(err error) string {
	if apierrors.IsForbidden(err) {
		return "This page does not exist, or you have no permission to read it: " + err.Error()
	}
	return "This page does not exist, or you have no permission to read it."
}

// write renders a template. Texts of users have no control characters in pages, as on a terminal.
func (s *Server) write(w http.ResponseWriter, status int, name string, f frame) {
	content, err := s.render(name, f)
	if err != nil {
		http.Error(w, "rendering the page failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(content) // the browser may be gone
}

func (s *Server) render(name string, f frame) ([]byte, error) {
	var content bytes.Buffer
	if err := s.templates.ExecuteTemplate(&content, name, f); err != nil {
		return nil, err
	}
	return []byte(text.Escape(content.String())), nil
}

// rightsToAct returns the permissions to act of a visitor; nil if the server is read-only.
func (s *Server) rightsToAct(visitor *Visitor) Rights {
	switch {
	case s.ReadOnly:
		return nil
	case visitor.User != nil:
		return visitor.Rights
	default:
		return s.own
	}
}

// may reports whether the user may send a request that changes something. If that is unknown, it is not offered.
func (v visit) may(ctx context.Context, request authorizationv1.ResourceAttributes) bool {
	if v.acts == nil {
		return false
	}
	allowed, err := v.acts.May(ctx, request)
	return err == nil && allowed
}
