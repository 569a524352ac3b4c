package tree_test

import (
	"fmt"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

func TestFind(t *testing.T) {
	versions := []kudo.OperatorVersion{candidate("web", "1.9.0"), candidate("web", "1.10.0"), candidate("kafka", "1.0.0")}
	for name, want := range map[string]string{
		"web": "web-1.10.0", "web-1.9.0": "web-1.9.0",
		"kafkaa":  `package "kafkaa" not found: did you mean kafka?`,
		"unheard": `package "unheard" not found: run 'kubectl addon package list' to list the available packages`,
	} {
		found, err := tree.Find(name, versions)
		if got := found.Name; got != want && fmt.Sprint(err) != want {
			t.Errorf("%s: got %q, %v, want %s", name, got, err, want)
		}
	}
	if _, err := tree.Find("web", nil); err == nil || !strings.Contains(err.Error(), "push one with") {
		t.Errorf("got %v", err)
	}
}
