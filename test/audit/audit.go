// Package audit reads the audit log of an API server: who asked for what, and when it was answered. It touches no cluster.
package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Entry is what is read of an event of the log: one request, if the policy lets each be logged at one stage only.
type Entry struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	UserAgent  string
	ObjectRef  struct {
		APIGroup, APIVersion, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct{ Code int }
	// RequestObject is the body, and ResponseObject the one of the answer, where the policy asks for them.
	RequestObject, ResponseObject json.RawMessage

	RequestReceivedTimestamp metav1.MicroTime
	// StageTimestamp is when the response was complete, for no other stage of a write is logged.
	StageTimestamp metav1.MicroTime
}

// Object names what the request is about.
func (e *Entry) Object() types.NamespacedName {
	return types.NamespacedName{Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
}

// Is says whether the request is about objects of a resource, or about their subresource.
func (e *Entry) Is(resource, subresource string) bool {
	return e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == subresource
}

// Succeeded says that the API server did what it was asked for.
func (e *Entry) Succeeded() bool { return e.ResponseStatus.Code < 300 }

// Conflicts says that somebody else was faster: a conflict, or a JSON patch whose tests fail.
func (e *Entry) Conflicts() bool {
	return e.ResponseStatus.Code == http.StatusConflict || e.ResponseStatus.Code == http.StatusUnprocessableEntity
}

func (e *Entry) String() string {
	return fmt.Sprintf("%s %s by %s: %d", e.Verb, e.RequestURI, e.User.Username, e.ResponseStatus.Code)
}

// Received is when the request arrived.
func (e *Entry) Received() time.Time { return e.RequestReceivedTimestamp.Time }

// Answered is when the response was complete.
func (e *Entry) Answered() time.Time { return e.StageTimestamp.Time }

// Log reads an audit log while the API server writes it.
type Log struct {
	file *os.File
	// part is the beginning of a line whose end is not written yet.
	part []byte
}

// Open opens a log to be read from its beginning.
func Open(file string) (*Log, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &Log{file: opened}, nil
}

// Next reads what was logged since the last call.
func (l *Log) Next() ([]Entry, error) {
	fresh, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	lines := append(l.part, fresh...)
	end := bytes.LastIndexByte(lines, '\n') + 1
	l.part = bytes.Clone(lines[end:])
	var entries []Entry
	for decoder := json.NewDecoder(bytes.NewReader(lines[:end])); ; {
		var e Entry
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return nil, fmt.Errorf("parsing the audit log: %w", err)
		}
		entries = append(entries, e)
	}
}

// Close lets the file go.
func (l *Log) Close() error { return l.file.Close() }
