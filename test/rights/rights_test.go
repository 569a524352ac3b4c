package rights

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRightsByAnyNameCoverThoseByOne(t *testing.T) {
	got := Table(inOrder([]Right{
		{"leases.coordination.k8s.io", "ns", "addon-agent", "patch"},
		{"leases.coordination.k8s.io", "ns", "addon-agent", "delete"},
		{"leases.coordination.k8s.io", "ns", "", "create"},
		{"instances.kudo.dev", "ns", "store", "get"},
		{"instances.kudo.dev", "ns", anything, "get"},
		{"instances.kudo.dev", "ns", "", "list"},
		{"reviews", "", "", "create"},
	}))
	want := []string{
		"| `instances.kudo.dev` | `ns` | | get, list |",
		"| `leases.coordination.k8s.io` | `ns` | | create |",
		"| `leases.coordination.k8s.io` | `ns` | `addon-agent` | delete, patch |",
		"| `reviews` | | | create |",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDocumentedRightsAreThoseOfTheTable(t *testing.T) {
	manual := filepath.Join(t.TempDir(), "manual.md")
	text := "| no |\n\n" + heading + "| `one` | `CLUSTER` | | get |\n| `two` | | `CLUSTER` | list |\n\n| no |\n"
	if err := os.WriteFile(manual, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := DocumentedRows(manual, "c1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"| `one` | `c1` | | get |", "| `two` | | `c1` | list |"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
