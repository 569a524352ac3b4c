package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

//go:embed audit.yaml
var auditPolicy []byte

// entry is what is read of an event of the audit log: one request that changes something.
type entry struct {
	Verb       string
	RequestURI string
	User       struct{ Username string }
	UserAgent  string
	ObjectRef  struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus struct{ Code int }
	RequestObject  json.RawMessage

	RequestReceivedTimestamp metav1.MicroTime
	// StageTimestamp is when the response was complete, for no other stage is logged.
	StageTimestamp metav1.MicroTime
}

func (e *entry) object() types.NamespacedName {
	return types.NamespacedName{Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name}
}

func (e *entry) isEvent() bool { return e.ObjectRef.Resource == "events" }

// isStatus says that the request is about the status of an add-on on a cluster.
func (e *entry) isStatus() bool {
	return e.ObjectRef.Resource == "managedclusteraddons" && e.ObjectRef.Subresource == "status"
}

func (e *entry) succeeded() bool { return e.ResponseStatus.Code < 300 }

// conflicts says that somebody else was faster: a conflict, or a JSON patch whose tests fail.
func (e *entry) conflicts() bool {
	return e.ResponseStatus.Code == http.StatusConflict || e.ResponseStatus.Code == http.StatusUnprocessableEntity
}

func (e *entry) String() string {
	return fmt.Sprintf("%s %s by %s: %d", e.Verb, e.RequestURI, e.User.Username, e.ResponseStatus.Code)
}

func (e *entry) received() time.Time { return e.RequestReceivedTimestamp.Time }
func (e *entry) answered() time.Time { return e.StageTimestamp.Time }

// auditLog reads the audit log while the API server writes it.
type auditLog struct {
	file *os.File
	// part is the beginning of a line whose end is not written yet.
	part []byte
}

// next reads what was logged since the last call.
func (l *auditLog) next() ([]entry, error) {
	fresh, err := io.ReadAll(l.file)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	lines := append(l.part, fresh...)
	end := bytes.LastIndexByte(lines, '\n') + 1
	l.part = bytes.Clone(lines[end:])
	var entries []entry
	for decoder := json.NewDecoder(bytes.NewReader(lines[:end])); ; {
		var e entry
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return entries, nil
		} else if err != nil {
			return nil, fmt.Errorf("parsing the audit log: %w", err)
		}
		entries = append(entries, e)
	}
}
