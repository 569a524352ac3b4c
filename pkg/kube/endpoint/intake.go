package endpoint

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrFull is the error of a body for which there is no memory.
var ErrFull = errors.New("too many bodies at a time")

// stalled is the time without progress after which a client loses its place to others.
const stalled = time.Second

// Intake reads bodies of requests into memory of a limited size. If that is full, the client that has sent nothing for longest is disconnected,
// so that slow clients do not keep out others.
type Intake struct {
	max     int64
	now     func() time.Time
	lock    sync.Mutex
	held    int64
	readers map[*reader]bool
}

// reader is a body that is being read.
type reader struct {
	held     int64
	progress time.Time
	// end ends the connection's reads; ended is set if that was called.
	end   func()
	ended bool
}

// NewIntake returns an intake for a number of bytes.
func NewIntake(maxBytes int64) *Intake {
	return &Intake{max: maxBytes, now: time.Now, readers: map[*reader]bool{}}
}

// Read reads the body of a request. The memory of its content is taken until release is called.
func (i *Intake) Read(w http.ResponseWriter, r *http.Request) (content []byte, release func(), err error) {
	reading := &reader{progress: i.now(), end: func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) // the connection may have ended
	}}
	i.add(reading)
	release = sync.OnceFunc(func() { i.release(reading) })
	for chunk := make([]byte, 32<<10); ; {
		n, err := r.Body.Read(chunk)
		if n > 0 && !i.take(reading, int64(n)) {
			release()
			return nil, nil, ErrFull
		}
		content = grow(content, n, r.ContentLength)
		content = append(content, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			i.finish(reading)
			return content, release, nil
		}
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("reading the body: %w", err)
		}
	}
}

// grow makes room for more bytes of a content: for as many as there are already, but not for more than its declared length.
func grow(content []byte, more int, contentLength int64) []byte {
	if len(content)+more <= cap(content) {
		return content
	}
	room := max(len(content), more)
	if left := contentLength - int64(len(content)); left >= int64(more) {
		room = int(min(int64(room), left))
	}
	return append(make([]byte, 0, len(content)+room), content...)
}

func (i *Intake) add(reading *reader) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.readers[reading] = true
}

// take takes memory for a body, and disconnects slow clients until there is enough. It reports false if there is none, or if the client was
// disconnected.
func (i *Intake) take(reading *reader, bytes int64) bool {
	i.lock.Lock()
	defer i.lock.Unlock()
	now := i.now()
	reading.progress = now
	for !reading.ended && i.held+bytes > i.max {
		slowest := i.slowest(reading)
		if slowest == nil || now.Sub(slowest.progress) < stalled {
			return false
		}
		slowest.ended = true
		slowest.end()
		i.held -= slowest.held
		slowest.held = 0
	}
	if reading.ended {
		return false
	}
	reading.held += bytes
	i.held += bytes
	return true
}

// slowest returns the other reader that has sent nothing for longest, of those that hold memory.
func (i *Intake) slowest(reading *reader) *reader {
	var slowest *reader
	for other := range i.readers {
		if other != reading && other.held > 0 && (slowest == nil || other.progress.Before(slowest.progress)) {
			slowest = other
		}
	}
	return slowest
}

// finish keeps the memory of a body that was read.
func (i *Intake) finish(reading *reader) {
	i.lock.Lock()
	defer i.lock.Unlock()
	delete(i.readers, reading)
}

func (i *Intake) release(reading *reader) {
	i.lock.Lock()
	defer i.lock.Unlock()
	delete(i.readers, reading)
	i.held -= reading.held
	reading.held = 0
}
