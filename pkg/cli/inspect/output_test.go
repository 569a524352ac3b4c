package inspect

import (
	"errors"
	"testing"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

// TestWhatProgramsRead pins the names of fields, because programs rely on them.
func TestWhatProgramsRead(t *testing.T) {
	cluster := clitest.Defined("shop: kafka search?", "kafka: zookeeper shop?", "search:", "broken:").
		With("shop", clitest.Condition(addonv1alpha1.ConditionAvailable, "True", "Fine", "")).With("kafka").With("broken").Annotated("broken", "{").Judged()
	tree, why := treeOf(cluster.Cluster, nil), Explained(cluster.Cluster, "shop")
	dependents := dependentsOf(dependentsView{
		addOn:     "zookeeper",
		direct:    dependency.Direct(map[string][]addonv1alpha1.AddonDependency{"kafka": clitest.Define("kafka: zookeeper").Spec.Dependencies, "shop": clitest.Define("shop: kafka?").Spec.Dependencies}),
		there:     map[string]map[string]bool{"cluster1": {"kafka": true, "shop": true}, "cluster2": {"kafka": true, "zookeeper": true}},
		malformed: []error{errors.New(`ClusterManagementAddOn "broken": no list`)},
	})
	for name, s := range map[string]terminal.Shown{
		"tree": {Data: tree, Names: tree.names(cluster.Cluster)}, "why": {Data: why.data("shop")},
		"dependents": {Data: dependents, Names: dependents.names()},
	} {
		t.Run(name, func(t *testing.T) {
			text := clitest.Printed(t, "yaml", s)
			if len(s.Names) > 0 {
				text += "---\n" + clitest.Printed(t, "name", s)
			}
			clitest.Golden(t, "data-"+name, text)
		})
	}
}
