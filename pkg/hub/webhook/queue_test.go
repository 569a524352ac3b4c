package webhook

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAQueueServesSomeRequestsAtATime(t *testing.T) {
	var started, served atomic.Int32
	full, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(newQueue(admissionCost, maxAdmissionCost, time.Minute).through(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if started.Add(1) == maxPeerServed {
			close(full)
		}
		<-release
		served.Add(1)
	})))
	defer server.Close()
	var clients sync.WaitGroup
	for range 3 * maxPeerServed {
		clients.Go(func() {
			response, err := http.Post(server.URL, "application/json", strings.NewReader("{}"))
			if err != nil || response.StatusCode != http.StatusOK {
				t.Error(response, err)
			}
		})
	}
	<-full
	if got := started.Load(); got != maxPeerServed {
		t.Errorf("%d requests are served at a time, want %d", got, maxPeerServed)
	}
	for range 3 * maxPeerServed {
		release <- struct{}{}
	}
	clients.Wait()
	if got := served.Load(); got != 3*maxPeerServed {
		t.Errorf("%d requests are served, want %d", got, 3*maxPeerServed)
	}
}

func TestAQueueAnswersWhatWaitsTooLong(t *testing.T) {
	for name, fill := range map[string]func(l *limiter){
		"because others take all the memory": func(l *limiter) { l.used = l.total },
		"because the peer has its maximum":   func(l *limiter) { l.usedBy["192.0.2.1"] = l.maxPerPeer },
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(admissionCost, maxAdmissionCost, time.Millisecond)
			fill(q.memory)
			answer := &timeless{httptest.NewRecorder()}
			q.through(http.NotFoundHandler()).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
			if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "1" {
				t.Errorf("got %d, Retry-After %q: the API server would not try again", answer.Code, answer.Header().Get("Retry-After"))
			}
		})
	}
}

// timeless is a response to a connection without deadlines.
type timeless struct{ *httptest.ResponseRecorder }

func (timeless) SetReadDeadline(time.Time) error  { return nil }
func (timeless) SetWriteDeadline(time.Time) error { return nil }

func TestRequestsAreNotDecodedUnlessTheyAreSmall(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		code int
		want string
	}{
		"an object":                           {` {"a": [1]}`, http.StatusOK, ""},
		"nothing":                             {"", http.StatusBadRequest, "not a JSON object"},
		"a list":                              {"[{}]", http.StatusBadRequest, "not a JSON object"},
		"YAML":                                {"a: &x [b, *x]", http.StatusBadRequest, "not a JSON object"},
		"YAML in braces":                      {"{a: b}", http.StatusBadRequest, "not a JSON object"},
		"an object that does not end":         {`{"a":`, http.StatusBadRequest, "not a JSON object"},
		"two objects":                         {`{}{}`, http.StatusBadRequest, "not a JSON object"},
		"10,001 levels":                       {`{"a":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + "}", http.StatusBadRequest, "not a JSON object"},
		"more bytes than an API server sends": {`{"a":"` + strings.Repeat("x", maxRequest) + `"}`, http.StatusRequestEntityTooLarge, "more than 8388608 bytes"},
		"a million tiny maps":                 {`{"a":[{}` + strings.Repeat(",{}", 1_000_000) + `]}`, http.StatusRequestEntityTooLarge, "takes more than the limit of 72 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			decoded := false
			answer := &timeless{httptest.NewRecorder()}
			newQueue(admissionCost, maxAdmissionCost, time.Minute).through(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				decoded = err == nil && string(body) == test.body
			})).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.body)))
			if answer.Code != test.code || !strings.Contains(answer.Body.String(), test.want) || decoded != (test.code == http.StatusOK) {
				t.Errorf("got %d %.100q, decoded %t", answer.Code, answer.Body.String(), decoded)
			}
		})
	}
}
