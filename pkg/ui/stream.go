package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// coalescing is the shortest time between two updates of a stream. A page that takes long to render is updated less often, but at least as
	// often as the stream is checked, because the delay may come from a hub that does not respond.
	coalescing = 250 * time.Millisecond
	// recheck is how often a stream checks its session and permissions without a change.
	recheck = 10 * time.Second
)

// stream sends the content of a page: a snapshot, its end, and then each content that differs from the last one. Session and permissions are
// checked for each of them.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, p page) {
	control := http.NewResponseController(w)
	s.meters.livePages.Inc()
	defer s.meters.livePages.Dec()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	changed, end := s.Hub.changes.listen()
	defer end()
	tick := time.NewTicker(recheck)
	defer tick.Stop()
	last := update{}
	for first := true; ; first = false {
		start := time.Now()
		next, err := s.update(r, p, last)
		if err == nil { // a stream does not end, but each update has to be received in time
			err = control.SetWriteDeadline(time.Now().Add(s.Limits.Timeouts.Response))
		}
		if err == nil {
			err = next.send(w, last, first)
		}
		if err == nil {
			err = control.Flush()
		}
		if err != nil || next.over {
			return
		}
		last = next
		if !pause(r, min(max(coalescing, 10*time.Since(start)), recheck), nil, nil) || !pause(r, 0, changed, tick.C) {
			return
		}
	}
}

// pause waits for a duration or, if it is zero, for a change or a tick. It reports whether the browser is still there.
func pause(r *http.Request, wait time.Duration, changed <-chan struct{}, tick <-chan time.Time) bool {
	var timer <-chan time.Time
	if wait > 0 {
		timer = time.After(wait)
	}
	select {
	case <-timer:
	case <-changed:
	case <-tick:
	case <-r.Context().Done():
		return false
	}
	return true
}

// update is one state of a page in a stream.
type update struct {
	content []byte
	lost    time.Time
	// over is set if the session has ended.
	over bool
}

// update renders the content of a page for a stream. While the hub cannot be asked for the user and the user's permissions, the last content
// remains.
func (s *Server) update(r *http.Request, p page, last update) (update, error) {
	visitor, err := s.Gate.Visitor(r)
	if err == nil && visitor == nil {
		return update{over: true}, nil
	}
	if err != nil {
		if last.content == nil {
			return update{}, err
		}
		_, last.lost = s.Hub.contact.State()
		return last, nil
	}
	f := s.gather(r, visitor, p)
	if f.Status == http.StatusInternalServerError && !f.Lost.IsZero() && last.content != nil {
		last.lost = f.Lost
		return last, nil
	}
	content, err := s.render("content", f)
	return update{content: content, lost: f.Lost}, err
}

// send sends what differs from the last update.
func (u update) send(w http.ResponseWriter, last update, first bool) error {
	var b bytes.Buffer
	if u.over {
		b.WriteString("event: over\ndata:\n\n")
	} else {
		u.write(&b, last, first)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (u update) write(b *bytes.Buffer, last update, first bool) {
	name := "change"
	if first {
		name = "snapshot"
	}
	if first || !bytes.Equal(u.content, last.content) {
		fmt.Fprintf(b, "event: %s\n", name)
		for line := range bytes.SplitSeq(u.content, []byte("\n")) {
			fmt.Fprintf(b, "data: %s\n", line)
		}
		b.WriteString("\n")
	}
	if first {
		b.WriteString("event: end\ndata:\n\n")
	}
	if first || u.lost != last.lost {
		lost, _ := json.Marshal(u.lost) // a time has an encoding
		fmt.Fprintf(b, "event: hub\ndata: %s\n\n", lost)
	}
	if b.Len() == 0 {
		b.WriteString(": still here\n\n")
	}
}
