package endpoint

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// sender is a request whose body the test sends.
type sender struct {
	body   *io.PipeWriter
	result chan error
	// release releases the memory of the body; valid after the result.
	release func()
	content string
}

// begin begins to read a body.
func begin(i *Intake) *sender {
	body, more := io.Pipe()
	s := &sender{body: more, result: make(chan error, 1)}
	r := httptest.NewRequest(http.MethodPost, "/", body)
	w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder(), end: func() { body.CloseWithError(errors.New("the deadline has passed")) }}
	go func() {
		content, release, err := i.Read(w, r)
		s.content, s.release = string(content), release
		body.Close()
		s.result <- err
	}()
	return s
}

// deadlineWriter is the writer of a connection whose reads can be ended.
type deadlineWriter struct {
	*httptest.ResponseRecorder
	end func()
}

func (w *deadlineWriter) SetReadDeadline(time.Time) error {
	w.end()
	return nil
}

// send sends a number of bytes, which are read when it returns.
func (s *sender) send(t *testing.T, bytes int) {
	t.Helper()
	if _, err := io.WriteString(s.body, strings.Repeat("x", bytes)); err != nil {
		t.Fatalf("sending: %v", err)
	}
	_, _ = s.body.Write(nil) // returns when the next read begins: the bytes are counted
}

func TestSlowBodiesDoNotKeepOutOthers(t *testing.T) {
	i := NewIntake(100)
	now := time.Unix(1_000_000, 0)
	i.now = func() time.Time { return now }
	slow, slower := begin(i), begin(i)
	slower.send(t, 40)
	now = now.Add(10 * time.Millisecond)
	slow.send(t, 40)

	hasty := begin(i)
	hasty.send(t, 30)
	if err := <-hasty.result; !errors.Is(err, ErrFull) {
		t.Errorf("beside two that make progress, a body without memory has error %v", err)
	}
	now = now.Add(2 * stalled)
	quick := begin(i)
	quick.send(t, 30)
	quick.body.Close()
	if err := <-quick.result; err != nil || quick.content != strings.Repeat("x", 30) {
		t.Errorf("beside two that are stalled, a body is read with error %v, and content %q", err, quick.content)
	}
	if err := <-slower.result; err == nil {
		t.Error("the slowest one is not disconnected")
	}
	slow.send(t, 10)
	slow.body.Close()
	if err := <-slow.result; err != nil || len(slow.content) != 50 {
		t.Errorf("the other one is read with error %v, and %d bytes", err, len(slow.content))
	}
	if i.held != 80 || len(i.readers) > 0 {
		t.Errorf("%d bytes are held by bodies that were read, of %d readers", i.held, len(i.readers))
	}
	full := begin(i)
	full.send(t, 30)
	if err := <-full.result; !errors.Is(err, ErrFull) {
		t.Errorf("beside bodies that were read, one without memory has error %v", err)
	}
	for _, s := range []*sender{slow, quick} {
		s.release()
		s.release()
	}
	if i.held != 0 {
		t.Errorf("%d bytes are held after all are released", i.held)
	}
}
