package packages

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	versions, err := stored("web-1.9.0", "web-1.10.0", "kafka-1.0.0")()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"web": "web-1.10.0", "web-1.9.0": "web-1.9.0",
		"kafkaa":  `package "kafkaa" not found: did you mean kafka?`,
		"unheard": `package "unheard" not found: run 'kubectl addon package list' to list the available packages`,
	} {
		found, err := Named(name, versions)
		if got := found.Name; got != want && fmt.Sprint(err) != want {
			t.Errorf("%s: got %q, %v, want %s", name, got, err, want)
		}
	}
	if _, err := Named("web", nil); err == nil || !strings.Contains(err.Error(), "push one with") {
		t.Errorf("got %v", err)
	}
}
