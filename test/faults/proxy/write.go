package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Write is a write of a program.
type Write struct {
	// Verb is create, update, patch, apply, delete or deletecollection.
	Verb                                          string
	Group, Resource, Subresource, Namespace, Name string
	// Manager is the field manager.
	Manager string
	// IsDryRun is true if the API server only answers what it would have done.
	IsDryRun bool
	// Body is the request, if it is an object in JSON or YAML.
	Body map[string]any
	// Raw is the request as sent.
	Raw []byte
	// Received and Answered are the times of the request and of the API server's answer; zero if it was not forwarded.
	Received, Answered time.Time
	// Code is the status code of the API server's answer, and Version and UID the resource version and the uid in it.
	Code         int
	Version, UID string
}

// IsSuccess reports whether the API server executed the write.
func (w *Write) IsSuccess() bool { return w.Code >= 200 && w.Code < 300 }

// Kind returns the resource with its subresource.
func (w *Write) Kind() string {
	if w.Subresource == "" {
		return w.Resource
	}
	return w.Resource + "/" + w.Subresource
}

// Object returns the name of the written object.
func (w *Write) Object() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
}

func (w *Write) String() string {
	return fmt.Sprintf("%s %s %s/%s: %d", w.Verb, w.Kind(), w.Namespace, w.Name, w.Code)
}

// Periodic reports whether the write reports only that the program is alive or what it does, or asks the API server a question.
func (w *Write) Periodic() bool {
	return w.Resource == "events" || w.Resource == "leases" || strings.HasSuffix(w.Group, "authorization.k8s.io") && w.Verb == "create" &&
		strings.HasSuffix(w.Resource, "reviews") || w.Group == "authentication.k8s.io"
}

// verbs are those of HTTP methods.
var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}

// parse reads a request.
func parse(r *http.Request, body []byte) *Write {
	w := &Write{Verb: verbs[r.Method], Manager: r.URL.Query().Get("fieldManager"), Raw: body, Received: time.Now()}
	w.IsDryRun = r.URL.Query().Has("dryRun")
	w.Group, w.Namespace, w.Resource, w.Name, w.Subresource = locate(r.URL.Path)
	if r.Method == http.MethodDelete && w.Name == "" {
		w.Verb = "deletecollection"
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch") {
		w.Verb = "apply"
	}
	if err := yaml.Unmarshal(body, &w.Body); err != nil {
		w.Body = nil // a list of JSON patches, or protobuf
	}
	if w.Name == "" {
		w.Name = w.nameOf(w.Body)
	}
	return w
}

// nameOf returns the name in an object; empty if there is none.
func (w *Write) nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

// locate parses the path of a request.
func locate(path string) (group, namespace, resource, name, subresource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return "", "", path, "", ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	return group, namespace, parts[0], parts[1], parts[2]
}

// recordAnswer records the API server's answer.
func (w *Write) recordAnswer(answer *httptest.ResponseRecorder) {
	w.Answered, w.Code = time.Now(), answer.Code
	var object struct {
		Metadata struct{ Name, ResourceVersion, UID string }
		Details  struct{ UID string } // of a deletion that is complete
	}
	if json.Unmarshal(answer.Body.Bytes(), &object) != nil || !w.IsSuccess() {
		return
	}
	w.Version, w.UID = object.Metadata.ResourceVersion, cmp.Or(object.Metadata.UID, object.Details.UID)
	if w.Name == "" {
		w.Name = object.Metadata.Name
	}
}

// reasons are the reasons of the status codes that a proxy answers.
var reasons = map[int]metav1.StatusReason{
	http.StatusConflict: metav1.StatusReasonConflict, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
	http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid, http.StatusGone: metav1.StatusReasonExpired,
}

// refusal returns the answer of an API server that refuses a request.
func refusal(code int) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reasons[code],
		Message: "refused by the fault proxy",
	}
}

// refuse answers like an API server that refuses a request. One that is overloaded asks to try again after a second.
func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(refusal(code)) // the program may have been stopped
}
