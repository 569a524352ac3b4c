package dependency_test

import (
	stdcmp "cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// release returns a release of an add-on with constraints such as "zookeeper >=3.8".
// target returns a release to which an add-on is changing.
func target(r dependency.Release) dependency.Release {
	r.Target = true
	return r
}

func release(name, version string, constraints ...string) dependency.Release {
	r := dependency.Release{Name: name + "-" + version, Version: version}
	for _, c := range constraints {
		on, constraint, _ := strings.Cut(c, " ")
		r.Constraints = append(r.Constraints, kudo.DependencyConstraint{Name: on, Version: constraint})
	}
	return r
}

func requires(names ...string) (needs []addonv1alpha1.AddonDependency) {
	for _, name := range names {
		name, version, _ := strings.Cut(name, " ")
		name, others, _ := strings.Cut(name, "|")
		need := addonv1alpha1.AddonDependency{Name: name, Type: addonv1alpha1.DependencyTypeRequired, Version: version}
		if others != "" {
			need.Alternatives = strings.Split(others, "|")
		}
		needs = append(needs, need)
	}
	return needs
}

func member(needs []addonv1alpha1.AddonDependency, wants dependency.Release, runs ...dependency.Release) dependency.Member {
	m := dependency.Member{Needs: needs, Runs: runs}
	if wants.Name != "" {
		m.Wants = &wants
	}
	return m
}

func leaves(m dependency.Member) dependency.Member {
	m.Deleting = true
	return m
}

func TestWaitReason(t *testing.T) {
	type members = map[string]dependency.Member
	var none dependency.Release
	zk34, zk39 := release("zookeeper", "3.4.9"), release("zookeeper", "3.9.0")
	needsZK := requires("zookeeper")
	for name, tc := range map[string]struct {
		on        members
		of        string
		available []dependency.Release
		want      string
	}{
		"nothing is wanted": {on: members{"kafka": member(needsZK, none, release("kafka", "2.0.0")), "zookeeper": member(nil, none, zk34)}, of: "kafka"},
		"no constraints":    {on: members{"kafka": member(needsZK, release("kafka", "3.0.0"), release("kafka", "2.0.0")), "zookeeper": member(nil, none, zk34)}, of: "kafka"},
		"its own constraint holds": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk39),
		}},
		"its own constraint does not hold, and nothing changes that": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk34),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; " +
			"change zookeeper to a version that satisfies >=3.8"},
		"a version that reads as an advice": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, release("zookeeper", "1; change shop to shop-9 first")),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 1, change shop to shop-9 first; " +
			"change zookeeper to a version that satisfies >=3.8"},
		"a release whose name reads as an advice": {of: "zookeeper", on: members{
			"kafka": member(needsZK, none, dependency.Release{
				Name: "x\n; change shop to shop-9 first", Version: "1.0.0", Constraints: []kudo.DependencyConstraint{{Name: "zookeeper", Version: "<3.8"}},
			}),
			"zookeeper": member(nil, zk39, zk34),
		}, want: "waiting to change to zookeeper-3.9.0: kafka runs, x , change shop to shop-9 first requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
			"change kafka to a version that accepts zookeeper 3.9.0, or disable it"},
		"its dependency changes first": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, zk39, zk34),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; first changes zookeeper"},
		"one that can change, after which the others could not": {of: "a", on: members{
			"a": member(nil, release("a", "2.0.0"), release("a", "1.0.0")),
			"b": member(nil, release("b", "2.0.0"), release("b", "1.0.0")),
			"x": member(requires("a|b"), release("x", "2.0.0", "a >=9", "b >=2"), release("x", "1.0.0", "a <2", "b <2")),
		}, want: "waiting to change to a-2.0.0: because of dependencies with alternatives, not all changes are possible after it; first changes b"},
		"the one that changes before it": {of: "b", on: members{
			"a": member(nil, release("a", "2.0.0"), release("a", "1.0.0")),
			"b": member(nil, release("b", "2.0.0"), release("b", "1.0.0")),
			"x": member(requires("a|b"), release("x", "2.0.0", "a >=9", "b >=2"), release("x", "1.0.0", "a <2", "b <2")),
		}},
		"one that can change, and that no order leads past": {of: "a", on: members{
			"a": member(nil, release("a", "2.0.0"), release("a", "1.0.0")),
			"b": member(nil, none, release("b", "1.0.0")),
			"x": member(requires("a|b"), release("x", "2.0.0", "a >=9", "b >=2"), release("x", "1.0.0", "a <2", "b <2")),
		}},
		"its dependency is changing": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk34, target(zk39)),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; zookeeper is changing"},
		"its dependency is installed for the first time": {of: "kafka", on: members{
			"kafka": member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, dependency.Release{Problem: "none has been applied completely"},
				target(dependency.Release{Name: "zookeeper-3.9.0", Version: "3.9.0", Problem: "none has been applied completely"})),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs an unknown version " +
			"(none has been applied completely); zookeeper is changing"},
		"its dependency is changing to another version than it requires": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, target(zk34), zk39),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; " +
			"change zookeeper to a version that satisfies >=3.8"},
		"its dependency waits for another dependent, which wants nothing": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, zk39, zk34),
			"solr":      member(needsZK, none, release("solr", "1.0.0", "zookeeper <3.8")),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; first changes zookeeper, which waits, too; " +
			"change solr to a version that accepts zookeeper 3.9.0, or disable it"},
		"its dependency waits for others, which wait for each other": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, zk39, zk34),
			"solr":      member(needsZK, release("solr", "2.0.0", "zookeeper >=3.8"), release("solr", "1.0.0", "zookeeper <3.8")),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; first changes zookeeper, which waits, too"},
		"the constraint of the definition": {of: "kafka", on: members{
			"kafka":     member(requires("zookeeper >=3.8"), release("kafka", "3.0.0"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk34),
		}, want: "waiting to change to kafka-3.0.0: ClusterManagementAddOn kafka requires zookeeper >=3.8, which runs version 3.4.9; " +
			"change zookeeper to a version that satisfies >=3.8"},
		"a dependency that is not installed keeps nothing back": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none),
		}},
		"an Optional dependency keeps nothing back": {of: "kafka", on: members{
			"kafka": member([]addonv1alpha1.AddonDependency{{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeOptional, Version: ">=3.8"}},
				release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk34),
		}},
		"a constraint on what is not declared does not apply": {of: "kafka", on: members{
			"kafka":     member(nil, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk34),
		}},
		"an unknown version": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, dependency.Release{Problem: "none has been applied completely"}),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs an unknown version " +
			"(none has been applied completely); change zookeeper to a version that satisfies >=3.8"},
		"a dependent that runs": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, none, release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34),
		}, want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
			"change kafka to a version that accepts zookeeper 3.9.0, or disable it"},
		"a dependent that changes first": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0"), release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34),
		}, want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
			"first changes kafka"},
		"a dependent that is changing counts with both": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, none, target(release("kafka", "3.0.0")), release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34),
		}, want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; kafka is changing"},
		"a constraint that does not hold now either keeps nothing back": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, none, release("kafka", "4.0.0", "zookeeper >=4")),
			"zookeeper": member(nil, zk39, zk34),
		}},
		"a dependent with another candidate": {of: "kafka", on: members{
			"shop":     member(requires("kafka|redpanda"), none, release("shop", "1.0.0", "kafka <3")),
			"kafka":    member(nil, release("kafka", "3.0.0"), release("kafka", "2.0.0")),
			"redpanda": member(nil, none, release("redpanda", "24.0.0")),
		}},
		"a candidate that is being deleted does not replace one that stays": {of: "shop", on: members{
			"shop":     member(requires("kafka|redpanda"), release("shop", "2.0.0", "redpanda >=24"), release("shop", "1.0.0")),
			"kafka":    leaves(member(nil, none, release("kafka", "3.0.0"))),
			"redpanda": member(nil, none, release("redpanda", "22.0.0")),
		}, want: "waiting to change to shop-2.0.0: shop-2.0.0 requires redpanda >=24, which runs version 22.0.0; change redpanda to a version that satisfies >=24"},
		"a candidate that is being deleted does not release one that stays": {of: "redpanda", on: members{
			"shop":     member(requires("kafka|redpanda"), none, release("shop", "1.0.0", "redpanda <24")),
			"kafka":    leaves(member(nil, none, release("kafka", "3.0.0"))),
			"redpanda": member(nil, release("redpanda", "24.0.0"), release("redpanda", "22.0.0")),
		}, want: "waiting to change to redpanda-24.0.0: shop runs, shop-1.0.0 requires redpanda <24, and redpanda-24.0.0 has version 24.0.0; " +
			"change shop to a version that accepts redpanda 24.0.0, or disable it"},
		"a dependency that is being deleted runs until then": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": leaves(member(nil, none, zk34)),
		}, want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; " +
			"change zookeeper to a version that satisfies >=3.8"},
		"a dependent that is being deleted runs until then": {of: "zookeeper", on: members{
			"kafka":     leaves(member(needsZK, none, release("kafka", "2.0.0", "zookeeper <3.8"))),
			"zookeeper": member(nil, zk39, zk34),
		}, want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
			"change kafka to a version that accepts zookeeper 3.9.0, or disable it"},
		"a dependency that changes to an OperatorVersion that does not exist": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0")),
			"zookeeper": member(nil, none, zk39, dependency.MissingRelease("zookeeper-9")),
		}, want: `waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs an unknown version (OperatorVersion "zookeeper-9" does ` +
			"not exist); change zookeeper to a version that satisfies >=3.8"},
		"what is not known of the add-on itself does not release it": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, none, release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34, dependency.MissingRelease("zookeeper-9")),
		}, want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
			"change kafka to a version that accepts zookeeper 3.9.0, or disable it"},
		"deadlock with a release in between": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34),
		}, available: []dependency.Release{release("kafka", "2.0.0", "zookeeper <3.8"), release("kafka", "2.8.0", "zookeeper >=3.4"),
			release("kafka", "3.0.0", "zookeeper >=3.8")},
			want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
				"deadlock: kafka cannot change before it; change kafka to kafka-2.8.0 first"},
		"the same deadlock from its other side": {of: "kafka", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34),
		}, available: []dependency.Release{release("kafka", "2.8.0", "zookeeper >=3.4")},
			want: "waiting to change to kafka-3.0.0: kafka-3.0.0 requires zookeeper >=3.8, which runs version 3.4.9; " +
				"deadlock: zookeeper cannot change before it; change kafka to kafka-2.8.0 first"},
		"deadlock without a release in between": {of: "zookeeper", on: members{
			"kafka":     member(needsZK, release("kafka", "3.0.0", "zookeeper >=3.8"), release("kafka", "2.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, zk39, zk34),
		}, available: []dependency.Release{release("kafka", "2.8.0", "zookeeper <3.7")},
			want: "waiting to change to zookeeper-3.9.0: kafka runs, kafka-2.0.0 requires zookeeper <3.8, and zookeeper-3.9.0 has version 3.9.0; " +
				"deadlock: kafka cannot change before it, and no OperatorVersion in between accepts what runs and what is wanted: push one, or change what is wanted"},
	} {
		t.Run(name, func(t *testing.T) {
			got := dependency.WaitReason(tc.of, tc.on, func(addOn string) (found []dependency.Release) {
				for _, r := range tc.available {
					if strings.HasPrefix(r.Name, addOn) {
						found = append(found, r)
					}
				}
				return found
			})
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			addOn, release := dependency.ChangeFirst(got)
			if (addOn != "") != strings.Contains(got, "; change ") || addOn != "" && !strings.Contains(got, "; change "+addOn+" to "+stdcmp.Or(release, "a version")) {
				t.Errorf("it says to change %q to %q: %s", addOn, release, got)
			}
		})
	}
}

func TestMissingReason(t *testing.T) {
	type members = map[string]dependency.Member
	var none dependency.Release
	zk34, zk39, missing := release("zookeeper", "3.4.9"), release("zookeeper", "3.9.0"), dependency.MissingRelease("kafka-9")
	const held = `waiting to change to zookeeper-3.9.0: kafka depends on this add-on and is changing to a version whose constraints are unknown, because ` +
		`OperatorVersion "kafka-9" does not exist; change kafka to a version that exists`
	optional := []addonv1alpha1.AddonDependency{{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeOptional}}
	for name, tc := range map[string]struct {
		kafka, zookeeper dependency.Member
		want             string
	}{
		"a dependent whose OperatorVersion is missing": {member(requires("zookeeper"), none, release("kafka", "2.0.0"), missing), member(nil, zk39, zk34), held},
		"an alternative":         {member(requires("other|zookeeper"), none, missing), member(nil, zk39, zk34), held},
		"nothing is wanted":      {member(requires("zookeeper"), none, missing), member(nil, none, zk34), ""},
		"an Optional dependency": {member(optional, none, missing), member(nil, zk39, zk34), ""},
		"no dependency":          {member(requires("other"), none, missing), member(nil, zk39, zk34), ""},
		"nothing is missing":     {member(requires("zookeeper"), none, release("kafka", "2.0.0")), member(nil, zk39, zk34), ""},
		"its own is missing":     {member(nil, none), member(requires("zookeeper"), zk39, missing), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := dependency.MissingReason("zookeeper", members{"kafka": tc.kafka, "zookeeper": tc.zookeeper})
			if got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if addOn, _ := dependency.ChangeFirst(got); got != "" && addOn != "kafka" {
				t.Errorf("it says to change %q", addOn)
			}
		})
	}
}

func TestHasConstraints(t *testing.T) {
	optional := []addonv1alpha1.AddonDependency{{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeOptional, Version: ">=3.8"}}
	for name, tc := range map[string]struct {
		needs []addonv1alpha1.AddonDependency
		to    dependency.Release
		want  bool
	}{
		"none":                             {requires("zookeeper"), release("kafka", "3.0.0"), false},
		"of the release":                   {requires("zookeeper"), release("kafka", "3.0.0", "zookeeper >=3.8"), true},
		"of the release on an alternative": {requires("other|zookeeper"), release("kafka", "3.0.0", "zookeeper >=3.8"), true},
		"of the release on what is no dependency": {requires("other"), release("kafka", "3.0.0", "zookeeper >=3.8"), false},
		"of the declaration":                      {requires("zookeeper >=3.8"), release("kafka", "3.0.0"), true},
		"of an Optional dependency":               {optional, release("kafka", "3.0.0", "zookeeper >=3.8"), false},
	} {
		if got := dependency.HasConstraints(tc.needs, tc.to); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestNeedsOfMalformedDeclarations(t *testing.T) {
	releases := []dependency.Release{release("kafka", "2.0.0", "zookeeper <3.8"), release("kafka", "3.0.0", "zookeeper >=3.4", "vault 1.x")}
	if diff := cmp.Diff(requires("zookeeper", "vault"), dependency.NeedsOf(releases)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestOrderIsSafe plays random fleets in random orders: no change violates a constraint that held before it. If what is wanted can run together, and
// nothing has alternatives, all orders end at the same point.
func TestOrderIsSafe(t *testing.T) {
	reached, moved := 0, 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		on := randomFleet(random)
		if !consistent(current(on)) {
			continue
		}
		moved++
		ends := map[string]bool{}
		for range 4 {
			ends[play(t, on, random)] = true
		}
		if !consistent(afterwards(on)) || haveAlternatives(on) {
			continue
		}
		reached++
		if len(ends) > 1 {
			t.Fatalf("seed %d: the end depends on the order: %v, from %+v", seed, ends, on)
		}
	}
	if moved < 500 || reached < 100 {
		t.Errorf("only %d fleets are consistent before, and %d of them after the changes: the test proves little", moved, reached)
	}
}

// TestDeadlockIsReal searches all orders of changes: no deadlock is named for an add-on that can change in one of them. If all that is wanted can run together,
// no other upgrade is demanded either.
func TestDeadlockIsReal(t *testing.T) {
	deadlocks, demands := 0, 0
	none := func(string) []dependency.Release { return nil }
	for seed := range uint64(4000) {
		on := randomFleet(rand.New(rand.NewPCG(seed, 1)))
		if !consistent(current(on)) {
			continue
		}
		for name := range on {
			why := dependency.WaitReason(name, on, none)
			deadlock, demand := strings.Contains(why, "; deadlock: "), strings.Contains(why, "; change ") && consistent(afterwards(on))
			if deadlock {
				deadlocks++
			}
			if demand {
				demands++
			}
			if (deadlock || demand) && canChange(name, on, map[string]bool{}) {
				t.Fatalf("seed %d: %s can change, but: %s", seed, name, why)
			}
		}
	}
	if deadlocks < 50 {
		t.Errorf("only %d deadlocks and %d demands: the test proves little", deadlocks, demands)
	}
}

// canChange reports whether there is an order of changes in which the add-on of that name changes; met has the states that were searched.
func canChange(name string, on map[string]dependency.Member, met map[string]bool) bool {
	if on[name].Wants == nil {
		return true
	}
	state := ""
	for _, other := range slices.Sorted(maps.Keys(on)) {
		state += fmt.Sprint(on[other].Wants == nil, " ")
	}
	if met[state] {
		return false
	}
	met[state] = true
	for other, m := range on {
		if m.Wants == nil || len(dependency.Exclusions(other, *m.Wants, on)) > 0 {
			continue
		}
		next := maps.Clone(on)
		m.Runs, m.Wants = []dependency.Release{*m.Wants}, nil
		next[other] = m
		if canChange(name, next, met) {
			return true
		}
	}
	return false
}

// randomFleet returns up to six add-ons, each of which may want another release.
func randomFleet(random *rand.Rand) map[string]dependency.Member {
	names := []string{"a", "b", "c", "d", "e", "f"}[:2+random.IntN(5)]
	constraints := []string{">=1", "<2", ">=2", "<3", ">=1 <3"}
	on := map[string]dependency.Member{}
	for i, name := range names {
		var m dependency.Member
		releaseOf := func(version int) dependency.Release {
			r := dependency.Release{Name: fmt.Sprintf("%s-%d", name, version), Version: fmt.Sprintf("%d.0.0", version)}
			for _, need := range m.Needs {
				for _, candidate := range dependency.Candidates(need) {
					if random.IntN(2) == 0 {
						r.Constraints = append(r.Constraints, kudo.DependencyConstraint{Name: candidate, Version: constraints[random.IntN(len(constraints))]})
					}
				}
			}
			return r
		}
		for j, other := range names[:i] {
			switch random.IntN(4) {
			case 0:
				m.Needs = append(m.Needs, requires(other)...)
			case 1:
				if j > 0 {
					m.Needs = append(m.Needs, requires(other+"|"+names[0])...)
				}
			}
		}
		m.Runs = []dependency.Release{releaseOf(1 + random.IntN(2))}
		if random.IntN(4) > 0 {
			wants := releaseOf(1 + random.IntN(3))
			m.Wants = &wants
		}
		on[name] = m
	}
	return on
}

func haveAlternatives(on map[string]dependency.Member) bool {
	for _, m := range on {
		if slices.ContainsFunc(m.Needs, func(n addonv1alpha1.AddonDependency) bool { return len(n.Alternatives) > 0 }) {
			return true
		}
	}
	return false
}

// play starts changes in a random order until none can start, and returns what runs in the end.
func play(t *testing.T, on map[string]dependency.Member, random *rand.Rand) string {
	t.Helper()
	on = maps.Clone(on)
	names := slices.Sorted(maps.Keys(on))
	for idle := 0; idle < 64; {
		name := names[random.IntN(len(names))]
		m := on[name]
		if m.Wants == nil || len(dependency.Exclusions(name, *m.Wants, on)) > 0 {
			idle++
			continue
		}
		idle = 0
		during := maps.Clone(on)
		during[name] = dependency.Member{Needs: m.Needs, Runs: append(slices.Clone(m.Runs), *m.Wants)}
		m.Runs, m.Wants = []dependency.Release{*m.Wants}, nil
		on[name] = m
		if !consistent(during) || !consistent(on) {
			t.Fatalf("the change of %s violates a constraint: %+v", name, during)
		}
	}
	var end []string
	for _, name := range names {
		end = append(end, on[name].Runs[0].Name)
	}
	return strings.Join(end, " ")
}

// current returns the fleet without what is wanted, and afterwards the fleet after all changes.
func current(on map[string]dependency.Member) map[string]dependency.Member {
	now := map[string]dependency.Member{}
	for name, m := range on {
		now[name] = dependency.Member{Needs: m.Needs, Runs: m.Runs}
	}
	return now
}

func afterwards(on map[string]dependency.Member) map[string]dependency.Member {
	then := map[string]dependency.Member{}
	for name, m := range on {
		if then[name] = (dependency.Member{Needs: m.Needs, Runs: m.Runs}); m.Wants != nil {
			then[name] = dependency.Member{Needs: m.Needs, Runs: []dependency.Release{*m.Wants}}
		}
	}
	return then
}

// consistent reports whether every constraint of what runs holds, written without the code under test: each dependency has a candidate whose
// releases satisfy all constraints of each release that runs.
func consistent(on map[string]dependency.Member) bool {
	for _, m := range on {
		for _, need := range m.Needs {
			for _, runs := range m.Runs {
				if !slices.ContainsFunc(dependency.Candidates(need), func(candidate string) bool { return accepts(runs, candidate, on[candidate].Runs) }) {
					return false
				}
			}
		}
	}
	return true
}

// accepts interprets the few constraints of randomFleet.
func accepts(r dependency.Release, candidate string, runs []dependency.Release) bool {
	for _, c := range r.Constraints {
		if c.Name != candidate {
			continue
		}
		for _, run := range runs {
			major := int(run.Version[0] - '0')
			ok := map[string]bool{">=1": major >= 1, "<2": major < 2, ">=2": major >= 2, "<3": major < 3, ">=1 <3": major < 3}[c.Version]
			if !ok {
				return false
			}
		}
	}
	return true
}

func TestRunningReleases(t *testing.T) {
	named := func(name string, uid types.UID) corev1.ObjectReference {
		return corev1.ObjectReference{Namespace: "packages", Name: name, UID: uid}
	}
	one := []kudo.DependencyConstraint{{Name: "zookeeper", Version: "<3.8"}}
	two := []kudo.DependencyConstraint{{Name: "zookeeper", Version: ">=3.4"}, {Name: "vault", Version: "1.x"}}
	whole := &kudo.WholeVersion{OperatorVersion: named("kafka-1", "1"), Version: "1.0.0", Dependencies: one}
	second := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "packages", Name: "kafka-2"},
		Spec: kudo.OperatorVersionSpec{Version: "2.0.0", Dependencies: two}}
	applied := func(name string, uid types.UID, version string, constraints []kudo.DependencyConstraint) *kudo.Execution {
		return &kudo.Execution{OperatorVersion: named(name, uid), DependencyVersion: version, Dependencies: constraints}
	}
	first, next := dependency.Release{Name: "kafka-1", Version: "1.0.0", Constraints: one}, dependency.Release{Name: "kafka-2", Version: "2.0.0", Constraints: two}
	const neverWhole = "none has been applied completely"
	for name, tc := range map[string]struct {
		status      kudo.InstanceStatus
		names       string
		named       *kudo.OperatorVersion
		want        []dependency.Release
		constraints map[string][]string
	}{
		"one that is applied completely": {kudo.InstanceStatus{Whole: whole, Execution: applied("kafka-1", "1", "1.0.0", one)}, "kafka-1", nil,
			[]dependency.Release{first}, map[string][]string{"zookeeper": {"<3.8"}}},
		"another one that the spec names": {kudo.InstanceStatus{Whole: whole, Execution: applied("kafka-1", "1", "1.0.0", one)}, "kafka-2", second,
			[]dependency.Release{first, target(next)}, map[string][]string{"zookeeper": {"<3.8"}}},
		"another one that a plan applies": {kudo.InstanceStatus{Whole: whole, Execution: applied("kafka-2", "2", "2.0.0", two)}, "kafka-2", second,
			[]dependency.Release{first, target(next)}, map[string][]string{"zookeeper": {"<3.8", ">=3.4"}, "vault": {"1.x"}}},
		"a third one that the spec names": {kudo.InstanceStatus{Whole: whole, Execution: applied("kafka-3", "3", "3.0.0", nil)}, "kafka-2", second,
			[]dependency.Release{first, {Name: "kafka-3", Version: "3.0.0"}, target(next)}, map[string][]string{"zookeeper": {"<3.8"}}},
		"the former one that the spec names again": {kudo.InstanceStatus{Whole: whole, Execution: applied("kafka-2", "2", "2.0.0", two)}, "kafka-1", nil,
			[]dependency.Release{target(first), next}, map[string][]string{"zookeeper": {"<3.8", ">=3.4"}, "vault": {"1.x"}}},
		"one that no longer exists": {kudo.InstanceStatus{Whole: whole}, "kafka-9", nil, []dependency.Release{first}, map[string][]string{"zookeeper": {"<3.8"}}},
		"the first installation": {kudo.InstanceStatus{Execution: applied("kafka-2", "2", "2.0.0", two)}, "kafka-2", second,
			[]dependency.Release{{Problem: neverWhole}, {Name: "kafka-2", Version: "2.0.0", Problem: neverWhole, Constraints: two, Target: true}},
			map[string][]string{"zookeeper": {">=3.4"}, "vault": {"1.x"}}},
		"nothing yet": {kudo.InstanceStatus{}, "kafka-2", second, []dependency.Release{{Problem: neverWhole}, target(next)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &kudo.Instance{Spec: kudo.InstanceSpec{OperatorVersion: named(tc.names, "")}, Status: tc.status}
			if diff := cmp.Diff(tc.want, dependency.RunningReleases(instance, tc.named)); diff != "" {
				t.Errorf("releases (-want +got)\n%s", diff)
			}
			reported := slices.ContainsFunc(dependency.RunningReleases(instance, nil), func(r dependency.Release) bool { return r.Name == tc.names })
			if got := dependency.RunsNamed(instance); got != reported {
				t.Errorf("runs the one that its spec names: got %v, want %v", got, reported)
			}
			if diff := cmp.Diff(tc.constraints, dependency.RunningConstraints(instance)); diff != "" {
				t.Errorf("constraints (-want +got)\n%s", diff)
			}
		})
	}
}
