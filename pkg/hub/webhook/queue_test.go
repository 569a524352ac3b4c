package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestAQueueServesSomeRequestsAtATime(t *testing.T) {
	var begun, served atomic.Int32
	full, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(newQueue(time.Minute).through(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if begun.Add(1) == mostAtATime {
			close(full)
		}
		<-release
		served.Add(1)
	})))
	defer server.Close()
	var clients sync.WaitGroup
	for range 3 * mostAtATime {
		clients.Go(func() {
			response, err := http.Post(server.URL, "application/json", strings.NewReader("{}"))
			if err != nil || response.StatusCode != http.StatusOK {
				t.Error(response, err)
			}
		})
	}
	<-full
	if got := begun.Load(); got != mostAtATime {
		t.Errorf("%d requests are served at a time, want %d", got, mostAtATime)
	}
	for range 3 * mostAtATime {
		release <- struct{}{}
	}
	clients.Wait()
	if got := served.Load(); got != 3*mostAtATime {
		t.Errorf("%d requests are served, want %d", got, 3*mostAtATime)
	}
}

func TestAQueueAnswersWhatWaitsTooLong(t *testing.T) {
	q := newQueue(time.Millisecond)
	for range mostAtATime {
		q.slots <- struct{}{}
	}
	answer := httptest.NewRecorder()
	q.through(http.NotFoundHandler()).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/", nil))
	if answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d, Retry-After %q: the API server would not try again", answer.Code, answer.Header().Get("Retry-After"))
	}
}
