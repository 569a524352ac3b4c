package proxy

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// view is what the program sees of the API server's changes.
type view struct {
	// thawed is closed unless watches are held.
	thawed chan struct{}
	// version is the resource version of the state that lists from the API server's cache return; empty for the current one.
	version string
	// losses counts how often events were lost: watches that began earlier have expired.
	losses int
}

func closedChannel() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Freeze holds the events of all watches until Thaw. If a resource version is given, a program that starts fills its caches with the state at
// that version, like one that was on standby and whose watches have hung since. Live reads are always current.
func (p *Proxy) Freeze(version string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.view.version = version
	if isClosed(p.view.thawed) {
		p.view.thawed = make(chan struct{})
	}
}

// Thaw ends Freeze: watches continue with the events that were held, or, if these are lost, end with the error that makes a client list again.
func (p *Proxy) Thaw(lost bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.view.version = ""
	if lost {
		p.view.losses++
	}
	if !isClosed(p.view.thawed) {
		close(p.view.thawed)
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (p *Proxy) currentView() view {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.view
}

// rewind changes a list that fills a cache to one of the older state.
func (p *Proxy) rewind(r *http.Request) {
	version, query := p.currentView().version, r.URL.Query()
	_, _, _, name, _ := locate(r.URL.Path)
	if version == "" || name != "" || !FillsCache(query) {
		return
	}
	query.Set("resourceVersion", version)
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	r.URL.RawQuery = query.Encode()
}

// FillsCache reports whether a list is one of client-go's caches: they list pages of 500 objects, or accept any resource version.
func FillsCache(query url.Values) bool {
	return query.Get("resourceVersion") == "0" || query.Get("limit") == "500" && query.Get("resourceVersion")+query.Get("continue") == ""
}

// watch forwards a watch event by event. While the view is frozen, it is answered without events; one that requires the initial events is
// refused, because they would be current: the client lists instead, as with an API server that does not support it.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request) {
	began := p.currentView()
	if began.version != "" && r.URL.Query().Get("sendInitialEvents") == "true" {
		refuse(w, http.StatusUnprocessableEntity)
		return
	}
	if !isClosed(began.thawed) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		if !p.await(w, r, began) {
			return
		}
	}
	answer, err := p.transport.RoundTrip(p.toUpstream(r))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func() { _ = answer.Body.Close() }()
	for key, values := range answer.Header {
		w.Header()[key] = values
	}
	if isClosed(began.thawed) {
		w.WriteHeader(answer.StatusCode)
	}
	p.pass(w, r, answer.Body, began)
}

// toUpstream returns the request to the API server.
func (p *Proxy) toUpstream(r *http.Request) *http.Request {
	out := r.Clone(r.Context())
	out.RequestURI, out.Host, out.URL.Scheme, out.URL.Host = "", p.target.Host, p.target.Scheme, p.target.Host
	out.Header.Del("Authorization")
	return out
}

// pass copies events until the watch ends.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, events io.Reader, began view) {
	flusher, lines := http.NewResponseController(w), bufio.NewReader(events)
	_ = flusher.Flush()
	arrived := make(chan []byte)
	go func() {
		defer close(arrived)
		for {
			line, err := lines.ReadBytes('\n')
			select {
			case arrived <- line:
			case <-r.Context().Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for line := range arrived {
		if !p.await(w, r, began) {
			return
		}
		if _, err := w.Write(line); err != nil {
			return
		}
		_ = flusher.Flush()
		p.countRequest(0)
	}
}

// await waits until the view is thawed, and reports whether the watch continues.
func (p *Proxy) await(w http.ResponseWriter, r *http.Request, began view) bool {
	for {
		now := p.currentView()
		select {
		case <-now.thawed:
		case <-r.Context().Done():
			return false
		}
		if now = p.currentView(); !isClosed(now.thawed) {
			continue
		}
		if now.losses == began.losses {
			return true
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": refusal(http.StatusGone)}) // the program may have been stopped
		_ = http.NewResponseController(w).Flush()
		return false
	}
}
