// Package audit reads the audit log of an API server: the requests, their users and times. It touches no cluster.
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

// Entry is an event of the log: one request, if the policy logs each request at one stage only.
type Entry struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	UserAgent  string
	ObjectRef  struct {
		APIGroup, APIVersion, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct{ Code int }
	// RequestObject and ResponseObject are the bodies of the request and the response, if the policy logs them.
	RequestObject, ResponseObject json.RawMessage

	RequestReceivedTimestamp metav1.MicroTime
	// StageTimestamp is when the response was complete, because no other stage of a write is logged.
	StageTimestamp metav1.MicroTime
}

// Object returns the name of the requested object.
func (e *Entry) Object() types.NamespacedName {
	return types.NamespacedName{Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
}

// Is reports whether the request is for a resource and subresource.
func (e *Entry) Is(resource, subresource string) bool {
	return e.ObjectRef.Resource == resource && e.ObjectRef.Subresource == subresource
}

// IsSuccess reports whether the request succeeded.
func (e *Entry) IsSuccess() bool { return e.ResponseStatus.Code < 300 }

// Conflicts reports whether the request failed because of a concurrent write: a conflict, or a JSON patch with a failed test.
func (e *Entry) Conflicts() bool {
	return e.ResponseStatus.Code == http.StatusConflict || e.ResponseStatus.Code == http.StatusUnprocessableEntity
}

func (e *Entry) String() string {
	return fmt.Sprintf("%s %s by %s: %d", e.Verb, e.RequestURI, e.User.Username, e.ResponseStatus.Code)
}

// RequestTime returns when the request arrived.
func (e *Entry) RequestTime() time.Time { return e.RequestReceivedTimestamp.Time }

// ResponseTime returns when the response was complete.
func (e *Entry) ResponseTime() time.Time { return e.StageTimestamp.Time }

// Log reads an audit log while the API server writes it.
type Log struct {
	file *os.File
	// part is the beginning of an incomplete line.
	part []byte
}

// Open opens a log at its beginning.
func Open(file string) (*Log, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return &Log{file: opened}, nil
}

// Next returns the entries logged since the last call.
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

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }
