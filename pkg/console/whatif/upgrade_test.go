package whatif

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/sample"
)

// upgradeOf returns the upgrade of kafka to kafka-2.0.0.
func upgradeOf(w world) Upgrade {
	return Upgrade{Cluster: w.cluster(), AddOn: "kafka", To: w.versions[types.NamespacedName{Namespace: packages, Name: "kafka-2.0.0"}]}
}

func TestUpgrade(t *testing.T) {
	fleet := func(lines ...string) world {
		return newWorld("v1.36.0", append(lines, "kafka: zookeeper? disk", "zookeeper:", "disk:")...).withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "").with("disk")
	}
	for sentence, tc := range map[string]struct {
		upgrade Upgrade
		want    UpgradeGroup
	}{
		"nothing keeps it from starting": {upgradeOf(fleet().runs("kafka", "1.0.0")), UpgradeGroup{Outcome: Starts, From: "kafka-1.0.0", To: "kafka-2.0.0"}},
		"it runs already":                {upgradeOf(fleet().runs("kafka", "2.0.0")), UpgradeGroup{Outcome: Runs, From: "kafka-2.0.0", To: "kafka-2.0.0"}},
		"it runs already, and lacks a version of a dependency": {
			upgradeOf(fleet().withPackage("kafka", "2.0.0", "", "zookeeper", ">=3").withPackage("zookeeper", "1.0.0", "").runs("kafka", "2.0.0").runs("zookeeper", "1.0.0")),
			UpgradeGroup{Outcome: Runs, From: "kafka-2.0.0", To: "kafka-2.0.0"},
		},
		"it is starting already": {
			upgradeOf(fleet().runs("kafka", "1.0.0").starts("kafka", "2.0.0")), UpgradeGroup{Outcome: Changing, From: "kafka-1.0.0", To: "kafka-2.0.0"},
		},
		"it is refused": {
			Upgrade{Cluster: fleet().runs("kafka", "1.0.0").cluster(), AddOn: "kafka", Problem: "no"}, UpgradeGroup{Outcome: Refused, From: "kafka-1.0.0", Problem: "no"},
		},
		"it cannot be read": {
			Upgrade{Cluster: fleet().runs("kafka", "1.0.0").cluster(), AddOn: "kafka", Unread: "forbidden"},
			UpgradeGroup{Outcome: NotKnown, From: "kafka-1.0.0", Problem: "forbidden"},
		},
		"the cluster has another version of Kubernetes": {
			Upgrade{Cluster: fleet().runs("kafka", "1.0.0").cluster(), AddOn: "kafka", To: fleet().versions[types.NamespacedName{Namespace: packages, Name: "kafka-2.0.0"}],
				Unsupported: []string{"plan waits"}},
			UpgradeGroup{Outcome: Waits, From: "kafka-1.0.0", To: "kafka-2.0.0", WaitsFor: []string{"plan waits"}},
		},
		"it is not installed yet": {
			upgradeOf(newWorld("v1.36.0", "kafka: disk", "disk:").withPackage("kafka", "2.0.0", "").withDefault("kafka", "1.0.0").with("kafka")),
			UpgradeGroup{Outcome: Waits, To: "kafka-2.0.0", WaitsFor: []string{"its first installation waits for required add-ons: Required disk (NotInstalled)"}},
		},
		"it is not installed yet, and a dependent that runs does not accept it": {
			upgradeOf(fleet("shop: kafka").withPackage("shop", "1.0.0", "", "kafka", "<2").withDefault("kafka", "1.0.0").with("kafka").runs("shop", "1.0.0")),
			UpgradeGroup{Outcome: Waits, To: "kafka-2.0.0", WaitsFor: []string{
				"waiting to install kafka-2.0.0: shop runs, shop-1.0.0 requires kafka <2, and kafka-2.0.0 has version 2.0.0; " +
					"change shop to a version that accepts kafka 2.0.0, or disable it",
			}, Dependents: []ConstraintRow{{RequirementRow{"shop", "Required", "runs version 2.0.0, which does not satisfy <2"}, HoldsBack}}},
		},
		"it is not installed yet, and does not accept a dependency that runs": {
			upgradeOf(fleet().withPackage("kafka", "2.0.0", "", "disk", ">=3").withPackage("disk", "1.0.0", "").withDefault("kafka", "1.0.0").with("kafka").runs("disk", "1.0.0")),
			UpgradeGroup{Outcome: Waits, To: "kafka-2.0.0", WaitsFor: []string{
				"waiting to install kafka-2.0.0: kafka-2.0.0 requires disk >=3, which runs version 1.0.0; change disk to a version that satisfies >=3",
			}, Requires: []RequirementRow{{"disk", "Required", "runs version 1.0.0, which does not satisfy >=3"}}},
		},
		"a dependent is changing to a version that does not exist": {
			upgradeOf(fleet("shop: kafka").withPackage("shop", "1.0.0", "").runs("kafka", "1.0.0").runs("shop", "1.0.0").starts("shop", "2.0.0")),
			UpgradeGroup{Outcome: Waits, From: "kafka-1.0.0", To: "kafka-2.0.0", WaitsFor: []string{
				"waiting to change to kafka-2.0.0: shop depends on this add-on and is changing to a version whose constraints are unknown, because " +
					"OperatorVersion \"shop-2.0.0\" does not exist; change shop to a version that exists",
			}},
		},
		"a required dependent does not accept it": {
			upgradeOf(fleet("shop: kafka").withPackage("shop", "1.0.0", "", "kafka", "<2").runs("kafka", "1.0.0").runs("shop", "1.0.0")),
			UpgradeGroup{Outcome: Waits, From: "kafka-1.0.0", To: "kafka-2.0.0", WaitsFor: []string{
				"waiting to change to kafka-2.0.0: shop runs, shop-1.0.0 requires kafka <2, and kafka-2.0.0 has version 2.0.0; " +
					"change shop to a version that accepts kafka 2.0.0, or disable it",
			}, Dependents: []ConstraintRow{{RequirementRow{"shop", "Required", "runs version 2.0.0, which does not satisfy <2"}, HoldsBack}}},
		},
		"a required dependent changes first by itself": {
			upgradeOf(fleet("shop: kafka").withPackage("shop", "1.0.0", "", "kafka", "<2").withPackage("shop", "2.0.0", "", "kafka", "<3").
				runs("kafka", "1.0.0").runs("shop", "1.0.0").withDefault("shop", "2.0.0")),
			UpgradeGroup{Outcome: Waits, From: "kafka-1.0.0", To: "kafka-2.0.0", WaitsFor: []string{
				"waiting to change to kafka-2.0.0: shop runs, shop-1.0.0 requires kafka <2, and kafka-2.0.0 has version 2.0.0; first changes shop",
			}, Dependents: []ConstraintRow{{RequirementRow{"shop", "Required", "runs version 2.0.0, which does not satisfy <2"}, HoldsBack}}},
		},
		"a deadlock ends with the lowest version in between": {
			upgradeOf(fleet("shop: kafka").withPackage("shop", "1.0.0", "", "kafka", "<2").withPackage("shop", "1.10.0", "", "kafka", "<3").withPackage("shop", "1.6.0", "", "kafka", "<3").
				withPackage("shop", "1.7.0", "", "kafka", "<3").withPackage("shop", "1.8.0", "", "kafka", "<3").withPackage("shop", "1.5.0", "", "kafka", "<3").withPackage("shop", "2.0.0", "", "kafka", ">=2").
				runs("kafka", "1.0.0").runs("shop", "1.0.0").withDefault("shop", "2.0.0")),
			UpgradeGroup{Outcome: Waits, From: "kafka-1.0.0", To: "kafka-2.0.0", WaitsFor: []string{
				"waiting to change to kafka-2.0.0: shop runs, shop-1.0.0 requires kafka <2, and kafka-2.0.0 has version 2.0.0; " +
					"deadlock: shop cannot change before it; change shop to shop-1.5.0 first",
			}, Dependents: []ConstraintRow{{RequirementRow{"shop", "Required", "runs version 2.0.0, which does not satisfy <2"}, HoldsBack}}},
		},
		"an optional dependent is degraded, whether or not kafka works now": {
			upgradeOf(fleet("shop: kafka?").withPackage("shop", "1.0.0", "", "kafka", "<2").runs("kafka", "1.0.0").runs("shop", "1.0.0").fails("kafka")),
			UpgradeGroup{Outcome: Starts, From: "kafka-1.0.0", To: "kafka-2.0.0",
				Dependents: []ConstraintRow{{RequirementRow{"shop", "Optional", "runs version 2.0.0, which does not satisfy <2"}, Degraded}}},
		},
		"a constraint begins to hold": {
			upgradeOf(fleet("shop: kafka").withPackage("shop", "1.0.0", "", "kafka", ">=2").runs("kafka", "1.0.0").runs("shop", "1.0.0")),
			UpgradeGroup{Outcome: Starts, From: "kafka-1.0.0", To: "kafka-2.0.0",
				Dependents: []ConstraintRow{{RequirementRow{"shop", "Required", "runs version 1.0.0, which does not satisfy >=2"}, Met}}},
		},
		"an alternative satisfies the dependent": {
			upgradeOf(fleet("shop: kafka|disk").withPackage("shop", "1.0.0", "", "kafka", "<2").runs("kafka", "1.0.0").runs("shop", "1.0.0")),
			UpgradeGroup{Outcome: Starts, From: "kafka-1.0.0", To: "kafka-2.0.0"},
		},
		"its own constraint on an optional dependency does not hold": {
			upgradeOf(fleet().withPackage("kafka", "2.0.0", "", "zookeeper", ">=3").withPackage("zookeeper", "1.0.0", "").runs("kafka", "1.0.0").runs("zookeeper", "1.0.0")),
			UpgradeGroup{Outcome: Starts, From: "kafka-1.0.0", To: "kafka-2.0.0",
				Requires: []RequirementRow{{"zookeeper", "Optional", "runs version 1.0.0, which does not satisfy >=3"}}},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.want.Clusters = []string{"cluster1"}
			if diff := cmp.Diff(tc.want, tc.upgrade.Effect()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpgradesAreGroupedWorstFirst(t *testing.T) {
	on := func(name, version string) Upgrade {
		return upgradeOf(newWorld("v1.36.0", "kafka:").withName(name).withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "").runs("kafka", version))
	}
	refused := func(name string) Upgrade {
		u := on(name, "1.0.0")
		u.Problem = "no room on " + name
		return u
	}
	var outcomes []string
	data := UpgradesOf("kafka", "2.0.0", []Upgrade{on("a", "2.0.0"), on("b", "1.0.0"), refused("c"), on("d", "1.0.0"), refused("e")})
	for _, group := range data.Groups {
		outcomes = append(outcomes, string(group.Outcome)+" "+group.Problem)
		outcomes = append(outcomes, group.Clusters...)
	}
	if diff := cmp.Diff([]string{"Refused no room on c", "c", "e", "Starts ", "b", "d", "Runs ", "a"}, outcomes); diff != "" {
		t.Error(diff)
	}
}

// TestUpgradeIsNotMade checks that the decision changes nothing that it is given.
func TestUpgradeIsNotMade(t *testing.T) {
	upgrade := upgradeOf(newWorld("v1.36.0", "kafka:", "shop: kafka").withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "").
		withPackage("shop", "1.0.0", "", "kafka", "<2").runs("kafka", "1.0.0").runs("shop", "1.0.0"))
	before := map[string]*kudo.Instance{}
	for name, instance := range upgrade.Instances {
		before[name] = instance.DeepCopy()
	}
	upgrade.Effect()
	if diff := cmp.Diff(before, upgrade.Instances); diff != "" {
		t.Error(diff)
	}
}

// fails makes an add-on unavailable.
func (w world) fails(name string) world {
	w.Cluster = w.With(name, sample.Fails)
	return w
}
