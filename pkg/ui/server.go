// Package ui serves the dashboard: pages about a fleet, rendered on the server and kept up to date by server-sent events. It reads a cache of
// the hub with the permissions of each user, and decides nothing itself: its pages show what the packages fleet, explanation and progress
// decide, as the kubectl plugin does.
package ui

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
	mux       *http.ServeMux
}

// New returns a server.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, mux: http.NewServeMux()}
	var err error
	if s.templates, err = template.New("").Funcs(functions()).ParseFS(files, "templates/*.html"); err != nil {
		return nil, fmt.Errorf("parsing the pages: %w", err)
	}
	s.mux.HandleFunc("GET /static/{file}", s.static)
	s.mux.HandleFunc("GET /healthz", s.Health)
	s.mux.HandleFunc("GET /session/", s.enter)
	s.mux.HandleFunc("POST /session/", s.enter)
	for pattern, p := range pages() {
		s.mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, p) })
	}
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, absent) })
	return s, nil
}

// pages returns the pages by the pattern of their paths.
func pages() map[string]page {
	return map[string]page{
		"/{$}":                               fleetPage,
		"/addons/{addon}":                    addOnPage,
		"/clusters/{cluster}":                clusterPage,
		"/clusters/{cluster}/addons/{addon}": whyPage,
		"/clusters/{cluster}/instances/{instance}": instancePage,
		"/packages":                    packagesPage,
		"/packages/{namespace}/{name}": packagePage,
	}
}

// ServeHTTP serves a request: first it is checked for what browsers do on behalf of other sites.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if !s.knows(r.Host) {
		http.Error(w, fmt.Sprintf("host %q is not served: use one of %s", text.Escape(r.Host), strings.Join(s.Hosts, ", ")), http.StatusMisdirectedRequest)
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		http.Error(w, "requests of other sites are refused", http.StatusForbidden)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// protect sets the headers that limit what a browser does with a response.
func protect(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept, Cookie")
}

// knows reports whether a host is served, on any port.
func (s *Server) knows(host string) bool {
	name := host
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name = host[:i]
	}
	return slices.Contains(s.Hosts, strings.ToLower(strings.Trim(name, "[]")))
}

// static serves the style and the script.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	content, err := files.ReadFile(path.Join("static", path.Base(r.PathValue("file"))))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "max-age=3600")
	http.ServeContent(w, r, r.PathValue("file"), time.Time{}, bytes.NewReader(content))
}

// Health reports whether the hub was read.
func (s *Server) Health(w http.ResponseWriter, _ *http.Request) {
	if complete, _ := s.Hub.contact.state(); !complete {
		http.Error(w, "the hub is being read", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// enter serves the requests that start or end a session.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	s.Gate.Enter(w, r, func(status int, p Entrance) { s.entrance(w, status, p) })
}

func (s *Server) entrance(w http.ResponseWriter, status int, p Entrance) {
	s.write(w, status, "layout", frame{Title: "Sign in", Version: s.Version, Template: "entrance", View: p})
}

// serve serves a page, or its stream.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, p page) {
	streams := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	visitor, err := s.Gate.Visitor(r)
	switch {
	case err != nil:
		http.Error(w, "checking the session failed; try again", http.StatusBadGateway)
	case visitor == nil && streams:
		w.WriteHeader(http.StatusNoContent) // ends the stream: the browser does not try again
	case visitor == nil:
		s.enter(w, r)
	case streams:
		s.stream(w, r, p)
	default:
		f := s.gather(r, visitor, p)
		s.write(w, f.Status, "layout", f)
	}
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
	// Template is the name of the template for View.
	Template string
	View     any
	// Path is the path of the page.
	Path string
}

// visit is a request of a page.
type visit struct {
	*http.Request
	reader
	visitor *Visitor
	server  *Server
	now     time.Time
}

// page gathers the content of a page: a frame with a title, a template and what it shows.
type page func(ctx context.Context, v visit) (frame, error)

// gather gathers the content of a page; of an error, a page that states it.
func (s *Server) gather(r *http.Request, visitor *Visitor, p page) frame {
	complete, lost := s.Hub.contact.state()
	v := visit{Request: r, reader: reader{s.Hub, visitor.Rights}, visitor: visitor, server: s, now: time.Now()}
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
	f.Visitor, f.Version, f.Live, f.Lost, f.Path = visitor, s.Version, true, lost, r.URL.RequestURI()
	return f
}

// errAbsent is the error of a page about something that does not exist, or that the user may not read.
var errAbsent = errors.New("there is no such page, or you may not see it")

func absent(context.Context, visit) (frame, error) { return frame{}, errAbsent }

// hiddenText returns the text about something that does not exist or is forbidden. A refusal names only what the user asked for.
func hiddenText(err error) string {
	if apierrors.IsForbidden(err) {
		return "This page does not exist, or you may not see it: " + err.Error()
	}
	return "This page does not exist, or you may not see it."
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
