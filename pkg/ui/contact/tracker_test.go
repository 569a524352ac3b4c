package contact

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestTracker(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	tracker := &Tracker{}
	for i, step := range []struct {
		sentence, path string
		failed         bool
		changes        bool
		lost           time.Time
	}{
		{"a request succeeds", "/a", false, false, time.Time{}},
		{"a request fails: the hub is lost", "/a", true, true, at(1)},
		{"it fails again: the hub is lost since the first time", "/a", true, false, at(1)},
		{"another one fails", "/b", true, true, at(1)},
		{"the first one succeeds: the other kind is not current yet", "/a", false, true, at(3)},
		{"the other one succeeds: everything is current", "/b", false, true, time.Time{}},
	} {
		if changes := tracker.note(step.path, step.failed, at(i)); changes != step.changes {
			t.Errorf("%s: got %t, want %t", step.sentence, changes, step.changes)
		}
		if _, lost := tracker.State(); !lost.Equal(step.lost) {
			t.Errorf("%s: lost since %s, want %s", step.sentence, lost, step.lost)
		}
	}
}

func TestWhatFails(t *testing.T) {
	for sentence, test := range map[string]struct {
		path   string
		status int
		err    error
		want   bool
	}{
		"a list":                                   {"/apis/kudo.dev/v1beta1/instances", http.StatusOK, nil, false},
		"no connection":                            {"/apis/kudo.dev/v1beta1/instances", 0, errors.New("refused"), true},
		"a proxy without the hub":                  {"/apis/kudo.dev/v1beta1/instances", http.StatusBadGateway, nil, true},
		"credentials that have expired":            {"/apis/kudo.dev/v1beta1/instances", http.StatusUnauthorized, nil, true},
		"a permission that was withdrawn":          {"/apis/kudo.dev/v1beta1/instances", http.StatusForbidden, nil, true},
		"a hub that does not return its version":   {VersionPath, http.StatusForbidden, nil, false},
		"a hub that is not ready":                  {VersionPath, http.StatusServiceUnavailable, nil, true},
		"a hub that does not answer about version": {VersionPath, 0, errors.New("deadline exceeded"), true},
	} {
		response := &http.Response{StatusCode: test.status}
		if test.err != nil {
			response = nil
		}
		if got := fails(test.path, response, test.err); got != test.want {
			t.Errorf("%s: got %t, want %t", sentence, got, test.want)
		}
	}
}
