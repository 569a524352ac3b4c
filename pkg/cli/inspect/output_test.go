package inspect

import (
	"errors"
	"testing"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/test/sample"
)

// TestWhatProgramsRead pins the names of fields, because programs rely on them.
func TestWhatProgramsRead(t *testing.T) {
	cluster := sample.NewCluster("shop: kafka search?", "kafka: zookeeper shop?", "search:", "broken:").
		With("shop", sample.Condition(addonv1alpha1.ConditionAvailable, "True", "Fine", "")).With("kafka").With("broken").WithAnnotation("broken", "{").WithVerdicts()
	tree, explained := fleet.TreeOf(cluster.Cluster, nil), why.Of(cluster.Cluster, "shop", sample.Now)
	dependents := fleet.DependentsOf(fleet.DependentsView{
		AddOn:     "zookeeper",
		Direct:    dependency.Direct(map[string][]addonv1alpha1.AddonDependency{"kafka": sample.Define("kafka: zookeeper").Spec.Dependencies, "shop": sample.Define("shop: kafka?").Spec.Dependencies}),
		There:     map[string]map[string]bool{"cluster1": {"kafka": true, "shop": true}, "cluster2": {"kafka": true, "zookeeper": true}},
		Malformed: []error{errors.New(`ClusterManagementAddOn "broken": no list`)},
	})
	for name, s := range map[string]terminal.Shown{
		"tree": {Data: tree, Names: treeNames(tree, cluster.Cluster)}, "why": {Data: explained.Data("shop")},
		"dependents": {Data: dependents, Names: dependentsNames(dependents)},
	} {
		t.Run(name, func(t *testing.T) {
			text := clitest.Render(t, "yaml", s)
			if len(s.Names) > 0 {
				text += "---\n" + clitest.Render(t, "name", s)
			}
			clitest.Golden(t, "data-"+name, text)
		})
	}
}
