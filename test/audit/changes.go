package audit

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Author is somebody who writes an object. Events have random names, and are counted together in each namespace.
type Author struct {
	User   string
	Kind   schema.GroupResource
	Object types.NamespacedName
}

func (a Author) String() string { return fmt.Sprintf("%s %s by %s", a.Kind, a.Object, a.User) }

// Count is how often: requests that the API server granted, and those of them after which something else was stored than before.
type Count struct{ Requests, Changes int }

// ChangesIn counts who wrote what from a time on, in a log from its beginning. Its policy must ask for the bodies of answers: by the
// resource version in them a write that changes nothing is told from one that does.
func ChangesIn(entries []Entry, from time.Time) (map[Author]Count, error) {
	stored := map[Author]string{} // of nobody
	counts := map[Author]Count{}
	for i := range entries {
		e := &entries[i]
		if !e.Succeeded() || !e.writes() {
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
		if e.Received().Before(from) {
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

// writes says whether the request may change what is stored.
func (e *Entry) writes() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// author is who the request is by, and about what: an object is the same in all of its versions and subresources.
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

// resourceVersion is that of the object in the answer; empty where it is none that is stored, such as a review or a token.
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
