// Package ui serves the dashboard: pages about a fleet, rendered on the server and kept up to date by server-sent events. It reads a cache of
// the hub with the permissions of each user. It contains no logic of its own: pages show the results of the packages in pkg/console, as the
// kubectl plugin does, and actions run with the permissions of the user who sends them.
package ui

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
	"github.com/tandem-addons/tandem/pkg/text"
	"github.com/tandem-addons/tandem/pkg/ui/contact"
)

// New returns a server.
func New(o Options) (*Server, error) {
	s := &Server{
		Options: o, mux: http.NewServeMux(), own: own{o.Hub, contact.NewAnswers[authorizationv1.ResourceAttributes, bool]()},
		seats: endpoint.NewSeats(), meters: newMeters(),
	}
	s.Limits = o.Limits.orDefault()
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
	if !o.ReadOnly {
		for pattern, a := range actions() {
			s.mux.HandleFunc("POST "+pattern+"/preview", func(w http.ResponseWriter, r *http.Request) { s.act(w, r, a, false) })
			s.mux.HandleFunc("POST "+pattern, func(w http.ResponseWriter, r *http.Request) { s.act(w, r, a, true) })
		}
	}
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, absent) })
	return s, nil
}

// Collectors returns the metrics of the server and of its gate.
func (s *Server) Collectors() []prometheus.Collector {
	own := []prometheus.Collector{s.meters.connections, s.meters.livePages, s.meters.refusals}
	if gate, ok := s.Gate.(interface{ Collectors() []prometheus.Collector }); ok {
		own = append(own, gate.Collectors()...)
	}
	return own
}

// Serve serves requests and keeps the cache up to date until the context ends, or one of them fails.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := endpoint.NewServer(s, s.Limits.Timeouts)
	server.BaseContext = func(net.Listener) context.Context { return ctx } // streams end with it
	listener = s.Limits.connections(s.meters).Listen(listener)
	if s.TLS != nil {
		listener = tls.NewListener(listener, s.TLS)
	}
	ended := make(chan error, 2)
	go func() { ended <- s.Hub.Run(ctx) }()
	go func() { ended <- server.Serve(listener) }()
	var problem error
	select {
	case <-ctx.Done():
	case problem = <-ended:
	}
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if server.Shutdown(last) != nil { // browsers keep connections that they have not used yet
		problem = errors.Join(problem, server.Close())
	}
	if problem != nil {
		return fmt.Errorf("serving the dashboard: %w", problem)
	}
	return nil
}

// pages returns the pages by the pattern of their paths.
func pages() map[string]page {
	return map[string]page{
		"/{$}":                               fleetPage,
		"/addons/{addon}":                    addOnPage,
		"/clusters":                          clustersPage,
		"/clusters/{cluster}":                clusterPage,
		"/clusters/{cluster}/addons/{addon}": whyPage,
		"/clusters/{cluster}/instances/{instance}":         instancePage,
		"/addons/{addon}/history":                          addOnHistoryPage,
		"/addons/{addon}/what-if":                          whatIfAddOnPage,
		"/clusters/{cluster}/instances/{instance}/what-if": whatIfInstancePage,
		"/search":                      searchPage,
		"/packages":                    packagesPage,
		"/packages/{namespace}/{name}": packagePage,
	}
}

// ServeHTTP serves a request: first it is checked for what browsers do on behalf of other sites, and read completely.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if !s.knows(r.Host) {
		http.Error(w, fmt.Sprintf("host %q is not served; use one of %s", text.Escape(r.Host), strings.Join(s.Hosts, ", ")), http.StatusMisdirectedRequest)
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		http.Error(w, "requests from other sites are refused", http.StatusForbidden)
		return
	}
	if err := endpoint.ReadBody(w, r, maxForm); err != nil {
		status, problem := bodyProblem(err)
		http.Error(w, problem, status)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// bodyProblem returns the response to a request whose body cannot be read.
func bodyProblem(err error) (status int, problem string) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, fmt.Sprintf("the form has more than %d bytes; use the plugin", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the request took too long; send it again"
	default:
		return http.StatusBadRequest, "the request is incomplete; send it again"
	}
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
	if complete, _ := s.Hub.contact.State(); !complete {
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
	case errors.Is(err, errUnchecked):
		w.Header().Set("Refresh", "5")
		s.refuse(w, endpoint.RetryAfter, "The session cannot be checked, because too many unknown tokens are sent. This page reloads every five seconds.")
	case err != nil:
		w.Header().Set("Refresh", "5")
		http.Error(w, "The hub cannot check the session. This page reloads every five seconds.", http.StatusBadGateway)
	case visitor == nil && streams:
		w.WriteHeader(http.StatusNoContent) // ends the stream: the browser does not try again
	case visitor == nil:
		s.enter(w, r)
	case streams:
		s.serveLimited(w, s.Limits.ofLivePage(r, visitor.Name, visitor.Token), func() { s.stream(w, r, p) })
	default:
		s.serveLimited(w, s.Limits.ofRequest(visitor.Name), func() {
			f := s.gather(r, visitor, p)
			s.write(w, f.Status, "layout", f)
		})
	}
}

// serveLimited serves a request if none of the limits is reached.
func (s *Server) serveLimited(w http.ResponseWriter, limits []endpoint.Limit, serve func()) {
	release, reached := s.seats.Take(limits...)
	if reached != "" {
		s.meters.refuse(reached)
		s.refuse(w, retryDelay, s.Limits.explain(reached))
		return
	}
	defer release()
	serve()
}

// refuse asks a client to try again later.
func (s *Server) refuse(w http.ResponseWriter, retry time.Duration, problem string) {
	w.Header().Set("Retry-After", strconv.Itoa(int(retry/time.Second)))
	http.Error(w, problem, http.StatusTooManyRequests)
}

// actions returns the actions by the pattern of their paths. A request for the path with /preview shows the proposal, and a request for the
// path itself does what was shown.
func actions() map[string]action {
	return map[string]action{
		"/clusters/{cluster}/instances/{instance}/run":         runPlan,
		"/clusters/{cluster}/instances/{instance}/cancel":      cancelPlan,
		"/clusters/{cluster}/instances/{instance}/resume-plan": resumePlan,
		"/clusters/{cluster}/instances/{instance}/suspend":     suspendInstance,
		"/clusters/{cluster}/instances/{instance}/resume":      resumeInstance,
		"/clusters/{cluster}/instances/{instance}/diagnose":    diagnose,
		"/clusters/{cluster}/instances/{instance}/parameters":  updateParameters,
		"/clusters/{cluster}/instances/{instance}/upgrade":     upgrade,
		"/clusters/{cluster}/addons/{addon}/disable":           disableAddOn,
		"/enable":  enableAddOn,
		"/upgrade": upgrade,
	}
}

// act shows the proposal of an action, or makes the change that was shown to the user.
func (s *Server) act(w http.ResponseWriter, r *http.Request, gather action, execute bool) {
	visitor, err := s.Gate.Visitor(r)
	switch {
	case errors.Is(err, errUnchecked):
		s.refuse(w, endpoint.RetryAfter, "the session cannot be checked, because too many unknown tokens are sent; try again")
	case err != nil:
		http.Error(w, "checking the session failed; try again", http.StatusBadGateway)
	case visitor == nil:
		s.enter(w, r)
	default:
		s.serveLimited(w, s.Limits.ofRequest(visitor.Name), func() { s.actAs(w, r, visitor, gather, execute) })
	}
}

// actAs is act for a visitor.
func (s *Server) actAs(w http.ResponseWriter, r *http.Request, visitor *Visitor, gather action, execute bool) {
	if !same(r.PostFormValue("token"), visitor.Token) {
		http.Error(w, "the form is not from this session: load the page again", http.StatusForbidden)
		return
	}
	p, status, err := s.makeProposal(r, visitor, gather, execute)
	switch {
	case err != nil:
		s.show(w, visitor, refusalOf(err, objectPath(r)))
	case status == http.StatusSeeOther:
		http.Redirect(w, r, p.Back, http.StatusSeeOther)
	default:
		s.show(w, visitor, frame{Title: p.Title, Status: status, Template: "proposal", View: p})
	}
}

// makeProposal returns the proposal and the status of the response: SeeOther if the change was made.
func (s *Server) makeProposal(r *http.Request, visitor *Visitor, gather action, execute bool) (proposal, int, error) {
	c, err := s.Hub.as(visitor.User)
	if err != nil {
		return proposal{}, 0, err
	}
	p, err := s.propose(r, visitor, c, gather)
	switch {
	case err != nil:
		return proposal{}, 0, err
	case p.Refusal != "":
		return p, http.StatusUnprocessableEntity, nil
	case !execute:
		return p, http.StatusOK, nil
	}
	if r.PostFormValue("seen") == p.Seen {
		if err = p.do(r.Context()); err == nil {
			return p, http.StatusSeeOther, nil
		}
		if !isStale(err) {
			return proposal{}, 0, changeError(err)
		}
		if p, err = s.propose(r, visitor, c, gather); err != nil {
			return proposal{}, 0, err
		}
	}
	p.Problem = "Nothing was changed because the object has changed since the preview. This is the preview for its current state."
	return p, http.StatusConflict, nil
}

// propose gathers the proposal with the values that its forms have to contain.
func (s *Server) propose(r *http.Request, visitor *Visitor, c client.Client, gather action) (proposal, error) {
	p, err := gather(r.Context(), c, r)
	return p.shownTo(visitor.Token), err
}

// show writes a page without a stream.
func (s *Server) show(w http.ResponseWriter, visitor *Visitor, f frame) {
	_, f.Lost = s.Hub.contact.State()
	f.Visitor, f.Version, f.Hint = visitor, s.Version, s.Hub.managerHint()
	s.write(w, f.Status, "layout", f)
}

// refusedView is what is shown of an action that has failed.
type refusedView struct{ Title, Problem, Back string }

// refusalOf returns the page about an error of an action, which says what is known of the change.
func refusalOf(err error, back string) frame {
	title := "Not changed"
	var incomplete *incompleteError
	var unanswered *unansweredError
	switch {
	case errors.As(err, &incomplete):
		title = "Partly changed"
	case errors.As(err, &unanswered):
		title = "Possibly changed"
	}
	return frame{Title: title, Status: refusalStatus(err), Template: "refused", View: refusedView{title, err.Error(), back}}
}

// objectPath returns the path of the page about the object of an action; empty if the request names none.
func objectPath(r *http.Request) string {
	cluster, addOn := cmp.Or(r.PathValue("cluster"), r.PostFormValue("cluster")), cmp.Or(r.PathValue("addon"), r.PostFormValue("addon"))
	switch instance := r.PathValue("instance"); {
	case instance != "":
		return instancePath(cluster, instance)
	case cluster != "" && addOn != "":
		return whyPath(cluster, addOn)
	case addOn != "":
		return addOnPath(addOn)
	default:
		return ""
	}
}

// refusalStatus returns the status of a response that states an error of an action.
func refusalStatus(err error) int {
	var answer apierrors.APIStatus
	var unanswered *unansweredError
	switch {
	case errors.As(err, &answer) && answer.Status().Code >= http.StatusBadRequest:
		return int(answer.Status().Code)
	case errors.As(err, &unanswered):
		return http.StatusBadGateway
	default:
		return http.StatusUnprocessableEntity
	}
}
