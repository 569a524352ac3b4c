package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Author is a user that writes an object. Events have random names, and are counted together in each namespace.
type Author struct {
	User   string
	Kind   schema.GroupResource
	Object types.NamespacedName
}

func (a Author) String() string { return fmt.Sprintf("%s %s by %s", a.Kind, a.Object, a.User) }

// Count is the number of successful requests, and the number of them that changed the stored object.
type Count struct{ Requests, Changes int }

// ChangesIn counts the writes by author from a time on, in a log read from its beginning. The policy must log response bodies: their
// resource versions distinguish writes that change nothing.
func ChangesIn(entries []Entry, from time.Time) (map[Author]Count, error) {
	stored := map[Author]string{} // of no author
	counts := map[Author]Count{}
	for i := range entries {
		e := &entries[i]
		if !e.IsSuccess() || !e.writes() {
			continue
		}
		version, err := e.resourceVersion()
		if err != nil {
			return nil, err
		}
		author := e.author()
		object := Author{Kind: author.Kind, Object: e.Object()}
		changed := e.Verb == "delete" || e.Verb == "deletecollection" || version != "" && version != stored[object]
		if version != "" {
			stored[object] = version
		}
		if e.RequestTime().Before(from) {
			continue
		}
		count := counts[author]
		count.Requests++
		if changed {
			count.Changes++
		}
		counts[author] = count
	}
	return counts, nil
}

// writes reports whether the request may change stored objects.
func (e *Entry) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// author returns the user and object of the request; versions and subresources of an object are the same object.
func (e *Entry) author() Author {
	a := Author{
		User: e.User.Username, Object: e.Object(),
		Kind: schema.GroupResource{Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource},
	}
	if e.ObjectRef.Resource == "events" {
		a.Kind.Group, a.Object.Name = "", ""
	}
	return a
}

// resourceVersion returns the resource version in the response; empty if the response is not a stored object, such as a review or a token.
func (e *Entry) resourceVersion() (string, error) {
	if len(e.ResponseObject) == 0 {
		return "", nil
	}
	var answered struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(e.ResponseObject, &answered); err != nil {
		return "", fmt.Errorf("reading the answer to %s: %w", e, err)
	}
	return answered.Metadata.ResourceVersion, nil
}
