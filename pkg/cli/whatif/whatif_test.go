package whatif

import (
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestWhatIfDisableText(t *testing.T) {
	cluster := func(names ...string) fleet.Cluster {
		view := sample.NewCluster("zookeeper:", "kafka: zookeeper", "search: zookeeper|kafka", "graphs: zookeeper?", "shop: kafka").Protecting("kafka", "zookeeper")
		for _, name := range names {
			view = view.With(name, sample.Works)
		}
		return view.Cluster
	}
	clusters := map[string]fleet.Cluster{
		"cluster1": cluster("zookeeper", "kafka", "shop", "graphs"), "cluster2": cluster("zookeeper", "kafka"), "cluster3": cluster("zookeeper", "graphs", "search"),
		"cluster4": cluster("zookeeper"), "cluster5": cluster("kafka", "shop"),
	}
	clusters["cluster6"] = sample.Cluster{Cluster: cluster("zookeeper", "graphs")}.WithDeletion("zookeeper").Cluster
	clitest.Golden(t, "what-if-disable", disablingText(whatif.DisablingOf("zookeeper", clusters), false))
	clitest.Golden(t, "what-if-disable-wide", disablingText(whatif.DisablingOf("graphs", clusters), true))
}

// kubernetes has each effect, and clusters that are not upgraded or not known.
var kubernetes = whatif.Kubernetes{
	Version: "v1.36.0", Clusters: []string{"cluster1", "cluster2", "cluster3", "cluster4"}, Current: []string{"cluster5"},
	Effects: []whatif.KubernetesRow{
		{AddOn: "shop", Effect: whatif.BecomesUnavailable, DependsOn: "gpu", Type: "Required", Clusters: []string{"cluster1"},
			Reason: "Required dependency on gpu begins to apply, and is not satisfied: NotInstalled"},
		{AddOn: "kafka", Effect: whatif.NotSupported, OperatorVersion: "kafka-1.0.0", Clusters: []string{"cluster1", "cluster2", "cluster3", "cluster4"},
			Reason: "kafka-1.0.0 runs: the package requires Kubernetes <1.36"},
		{AddOn: "kafka", Instance: "kafka.disk", Effect: whatif.Supported, OperatorVersion: "disk-1.0.0", Clusters: []string{"cluster2"},
			Reason: `disk-1.0.0 runs: chart "disk.tgz" requires Kubernetes >=1.36`},
		{Instance: "db", Effect: whatif.VersionStarts, OperatorVersion: "db-2.0.0", Clusters: []string{"cluster3"}, Reason: "db-2.0.0 is waiting now"},
	},
	Unknown: []whatif.UnknownRow{{Reason: "the current Kubernetes version, because it is not reported", Clusters: []string{"cluster4"}}},
}

func TestKubernetesText(t *testing.T) {
	clitest.Golden(t, "what-if-kubernetes", kubernetesText(kubernetes, false))
	clitest.Golden(t, "what-if-kubernetes-wide", kubernetesText(kubernetes, true))
	clitest.Golden(t, "what-if-kubernetes-nothing", kubernetesText(whatif.Kubernetes{Version: "v1.36.0", Clusters: []string{"cluster1"}}, false))
	clitest.Golden(t, "what-if-kubernetes-current", kubernetesText(whatif.Kubernetes{Version: "v1.36.0", Current: []string{"cluster1"}}, false))
}

// upgrades has each outcome and each effect.
var upgrades = whatif.Upgrades{
	AddOn: "kafka", Version: "2.0.0", Without: []string{"cluster9"},
	Groups: []whatif.UpgradeGroup{
		{Outcome: whatif.Refused, Clusters: []string{"cluster1"}, From: "kafka-1.0.0", Problem: "a plan would fail: no disk"},
		{Outcome: whatif.Waits, Clusters: []string{"cluster2", "cluster3", "cluster4", "cluster5"}, From: "kafka-1.0.0", To: "kafka-2.0.0",
			WaitsFor:   []string{"waiting to change to kafka-2.0.0: shop runs, shop-1.0.0 requires kafka <2, and kafka-2.0.0 has version 2.0.0; first changes shop"},
			Dependents: []whatif.ConstraintRow{{RequirementRow: whatif.RequirementRow{AddOn: "shop", Type: "Required", Reason: "runs version 2.0.0, which does not satisfy <2"}, Effect: whatif.HoldsBack}}},
		{Outcome: whatif.NotKnown, Clusters: []string{"cluster6"}, Problem: "reading OperatorVersion packages/kafka-1.0.0: forbidden"},
		{Outcome: whatif.Starts, Clusters: []string{"cluster7"}, From: "kafka-1.0.0", To: "kafka-2.0.0",
			Requires: []whatif.RequirementRow{{AddOn: "zookeeper", Type: "Optional", Reason: "runs version 3.7.0, which does not satisfy >=3.8"}},
			Dependents: []whatif.ConstraintRow{
				{RequirementRow: whatif.RequirementRow{AddOn: "graphs", Type: "Optional", Reason: "runs version 2.0.0, which does not satisfy <2"}, Effect: whatif.Degraded},
				{RequirementRow: whatif.RequirementRow{AddOn: "portal", Type: "Required", Reason: "runs version 1.0.0, which does not satisfy >=2"}, Effect: whatif.Met},
			},
			Warnings: []string{"the add-on stays in namespace data"}, NotRead: []string{"whether the version supports the Kubernetes version, because the cluster does not report it"}},
		{Outcome: whatif.Changing, Clusters: []string{"cluster8"}, To: "kafka-2.0.0"},
		{Outcome: whatif.Runs, Clusters: []string{"cluster10"}, From: "kafka-2.0.0", To: "kafka-2.0.0"},
	},
}

func TestUpgradesText(t *testing.T) {
	clitest.Golden(t, "what-if-upgrade", upgradesText(upgrades, false))
	clitest.Golden(t, "what-if-upgrade-wide", upgradesText(upgrades, true))
}

// TestHostileNames checks that a hostile name does not reach a terminal.
func TestHostileNames(t *testing.T) {
	data := whatif.Upgrades{AddOn: "\x1b[31m", Groups: []whatif.UpgradeGroup{{Outcome: whatif.Waits, Clusters: []string{"cluster1"}, WaitsFor: []string{"\x1b[2J"}}}}
	if shown := clitest.Render(t, "table", terminal.Shown{Text: upgradesText(data, false)}); strings.Contains(shown, "\x1b") {
		t.Errorf("it contains an escape sequence: %q", shown)
	}
}

// TestWhatProgramsRead pins the names of fields, because programs rely on them.
func TestWhatProgramsRead(t *testing.T) {
	disabling := whatif.DisablingOf("kafka", map[string]fleet.Cluster{"cluster1": sample.NewCluster("shop: kafka", "kafka:").With("shop").With("kafka").Protecting("shop", "kafka").Cluster})
	for name, s := range map[string]terminal.Shown{
		"what-if": {Data: disabling, Names: disablingNames(disabling)}, "what-if-kubernetes": {Data: kubernetes}, "what-if-upgrade": {Data: upgrades},
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
