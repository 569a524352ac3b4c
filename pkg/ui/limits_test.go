package ui

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// TestAStreamEndsWhoseClientDoesNotRead covers a client that opens a live page and does not read it: buffers of the connection fill up.
func TestAStreamEndsWhoseClientDoesNotRead(t *testing.T) {
	s := server(t)
	s.Limits.Timeouts = endpoint.Timeouts{Response: 100 * time.Millisecond}
	large := strings.Repeat("x", 32<<20)
	ended := make(chan struct{})
	session, _ := s.Gate.(*Local).open(s.Gate.(*Local).key)
	serving := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.stream(w, r, func(context.Context, visit) (frame, error) {
			return frame{Title: "Large", Template: "absent", View: large}, nil
		})
		close(ended)
	}))
	defer serving.Close()
	client, err := net.Dial("tcp", serving.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	fmt.Fprintf(client, "GET / HTTP/1.1\r\nHost: a\r\nCookie: tandem=%s\r\n\r\n", session)
	<-ended
	if got := value(t, s.meters.livePages); got != 0 {
		t.Errorf("%v pages are live", got)
	}
}

func TestRequestsOfAUserAreLimited(t *testing.T) {
	s := server(t)
	session, _ := s.Gate.(*Local).open(s.Gate.(*Local).key)
	ask := func(ctx context.Context, method string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, method, "/enable", nil)
		r.Host = "127.0.0.1"
		r.AddCookie(&http.Cookie{Name: "tandem", Value: session})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for range maxUserRequests {
		s.seats.Take(s.Limits.ofRequest("")...)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		w := ask(t.Context(), method)
		if body, _ := io.ReadAll(w.Body); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(string(body), "you have sent too many requests") {
			t.Errorf("%s: got %d %s", method, w.Code, body)
		}
	}
	if got := value(t, s.meters.refusals.WithLabelValues(limitUserRequests)); got != 2 {
		t.Errorf("%v refusals are counted, want 2", got)
	}
}

// value returns the value of a gauge or counter.
func value(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var written dto.Metric
	if err := metric.Write(&written); err != nil {
		t.Fatal(err)
	}
	return written.GetGauge().GetValue() + written.GetCounter().GetValue()
}
