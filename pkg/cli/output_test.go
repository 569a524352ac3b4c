package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// printed is what a command prints in a format.
func printed(t *testing.T, format string, s shown) string {
	t.Helper()
	o := newOutput(formatWide, formatName)
	if err := o.Set(format); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := o.print(&out, s); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestWhatProgramsRead holds the names of fields: programs rely on them.
func TestWhatProgramsRead(t *testing.T) {
	cluster := defined("shop: kafka search?", "kafka: zookeeper shop?", "search:", "broken:").
		with("shop", condition(addon.ConditionAvailable, "True", "Fine", "")).with("kafka").with("broken").annotated("broken", "{").judged()
	tree, why := treeOf(cluster.clusterView, nil), explained(cluster.clusterView, "shop")
	dependents := dependentsOf(dependentsView{
		addOn:     "zookeeper",
		direct:    dependency.Direct(map[string][]addon.AddonDependency{"kafka": define("kafka: zookeeper").Spec.Dependencies, "shop": define("shop: kafka?").Spec.Dependencies}),
		there:     map[string]map[string]bool{"cluster1": {"kafka": true, "shop": true}, "cluster2": {"kafka": true, "zookeeper": true}},
		malformed: []error{errors.New(`ClusterManagementAddOn "broken": no list`)},
	})
	for name, s := range map[string]shown{
		"tree": {data: tree, names: tree.names(cluster.clusterView)}, "why": {data: why.data("shop")},
		"dependents": {data: dependents, names: dependents.names()},
	} {
		t.Run(name, func(t *testing.T) {
			text := printed(t, "yaml", s)
			if len(s.names) > 0 {
				text += "---\n" + printed(t, "name", s)
			}
			golden(t, "data-"+name, text)
		})
	}
}

// TestWhatProgramsReadOfPlans holds the names of fields: programs rely on them.
func TestWhatProgramsReadOfPlans(t *testing.T) {
	held := addon.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"}}
	held.Status.Conditions = []metav1.Condition{condition(addon.ConditionResolved, "False", addon.ReasonWaitingForDependencies, "waits for zookeeper")}
	for name, s := range map[string]shown{
		"status": statusView{instance: failed(), version: sampleVersion()}.shown(), "status-children": family().shown(),
		"addon": {data: addOnData(&held)},
	} {
		t.Run(name, func(t *testing.T) {
			text := printed(t, "yaml", s)
			if len(s.names) > 0 {
				text += "---\n" + printed(t, "name", s)
			}
			golden(t, "data-"+name, text)
		})
	}
}

func TestFormats(t *testing.T) {
	s := shown{text: "a \x1b[31mtable\n", data: map[string]any{"text": "a <b> & \x1b[31m"}, names: []string{"x.kudo.dev/a", "x.kudo.dev/b"}}
	for format, want := range map[string]string{
		"table":                     "a ^[[31mtable\n",
		"wide":                      "a ^[[31mtable\n",
		"name":                      "x.kudo.dev/a\nx.kudo.dev/b\n",
		"json":                      "{\n    \"text\": \"a <b> & \\u001b[31m\"\n}\n",
		"yaml":                      "text: \"a <b> & \\e[31m\"\n",
		"go-template={{len .text}}": "13",
	} {
		if got := printed(t, format, s); got != want {
			t.Errorf("-o %s: got %q, want %q", format, got, want)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{
		ExitOK:      nil,
		ExitFailure: errors.New("no"),
		ExitUsage:   fmt.Errorf("more: %w", &usageError{"no"}),
		ExitTimeout: fmt.Errorf("more: %w", timeoutf("%s is late", "it")),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}
