package whatif

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/sample"
)

const (
	from136  = `semver(managedCluster.status.version.kubernetes, true).compareTo(semver("1.36.0")) >= 0`
	below136 = `semver(managedCluster.status.version.kubernetes, true).isLessThan(semver("1.36.0"))`
	claim136 = `managedCluster.status.clusterClaims.exists(c, c.name == "kubeversion.open-cluster-management.io" && c.value == "v1.36.0")`
)

// effectsOf returns the effects of an upgrade to v1.36.0 on one cluster, one per line.
func effectsOf(c Cluster) []string {
	data := KubernetesOf("v1.36.0", map[string]Cluster{c.Name: c})
	var lines []string
	for _, row := range data.Effects {
		lines = append(lines, fmt.Sprintf("%s%s %s: %s", row.AddOn, strings.TrimSuffix("/"+row.Instance, "/"), row.Effect, row.Reason))
	}
	for _, row := range data.Unknown {
		lines = append(lines, "unknown: "+row.Reason)
	}
	for _, name := range data.Current {
		lines = append(lines, "current: "+name)
	}
	return lines
}

func TestKubernetesVersions(t *testing.T) {
	for sentence, tc := range map[string]struct {
		world world
		want  []string
	}{
		"a version without a constraint is not affected": {world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "").runs("kafka", "1.0.0")},
		"a version that supports both is not affected": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "1.30.0").runs("kafka", "1.0.0"),
		},
		"a version that supports only the present one": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "<1.36.0").runs("kafka", "1.0.0"),
			want:  []string{"kafka NotSupported: kafka-1.0.0 runs: the package requires Kubernetes <1.36.0"},
		},
		"a version that supports neither": {world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", ">=1.37").runs("kafka", "1.0.0")},
		"suffixes of vendors do not count": {
			world: newWorld("v1.35.1-gke.7", "kafka:").withPackage("kafka", "1.0.0", ">=1.36.0").runs("kafka", "1.0.0"),
			want:  []string{"kafka Supported: kafka-1.0.0 runs: the package requires Kubernetes >=1.36.0"},
		},
		"a version that waits for the upgrade": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "1.36.0").runs("kafka", "1.0.0").starts("kafka", "2.0.0"),
			want:  []string{"kafka VersionStarts: kafka-2.0.0 is waiting now: the package requires Kubernetes 1.36.0"},
		},
		"a version that waits for a higher version still waits": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "1.37.0").runs("kafka", "1.0.0").starts("kafka", "2.0.0"),
		},
		"a version that is being applied is not stopped": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "<1.36").runs("kafka", "1.0.0").starts("kafka", "2.0.0").applies("kafka", "2.0.0"),
			want:  []string{"kafka NotSupported: kafka-2.0.0 is being applied: the package requires Kubernetes <1.36"},
		},
		"a version that is about to start does not": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "<1.36").runs("kafka", "1.0.0").starts("kafka", "2.0.0"),
			want:  []string{"kafka VersionWaits: kafka-2.0.0 would wait: the package requires Kubernetes <1.36"},
		},
		"a plan of the version that runs waits for the upgrade": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "1.36.0").runs("kafka", "1.0.0").withWaitingPlan("kafka"),
			want:  []string{"kafka VersionStarts: a plan of kafka-1.0.0 is waiting now: the package requires Kubernetes 1.36.0"},
		},
		"a cluster that reports no version": {
			world: newWorld("", "kafka:").withPackage("kafka", "1.0.0", "<1.36.0").runs("kafka", "1.0.0"),
			want: []string{"kafka NotSupported: kafka-1.0.0 runs: the package requires Kubernetes <1.36.0",
				"unknown: the current Kubernetes version, because it is not reported"},
		},
		"a cluster that reports something else": {
			world: newWorld("new", "kafka:").withPackage("kafka", "1.0.0", ">=1.30").runs("kafka", "1.0.0"),
			want:  []string{`unknown: the current Kubernetes version, because "new" is not a valid version`},
		},
		"a cluster that has it already":   {world: newWorld("v1.36.0", "kafka:").withPackage("kafka", "1.0.0", ">1.36").runs("kafka", "1.0.0"), want: []string{"current: cluster1"}},
		"a cluster with a higher version": {world: newWorld("v1.37.2", "kafka:").withPackage("kafka", "1.0.0", "<1.37").runs("kafka", "1.0.0"), want: []string{"current: cluster1"}},
		"a version that was deleted": {
			world: newWorld("v1.35.1", "kafka:").runs("kafka", "1.0.0"),
			want:  []string{"unknown: whether OperatorVersion kafka-1.0.0 of kafka supports the new Kubernetes version, because it no longer exists"},
		},
		"a version that was pushed again": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "<1.36").runs("kafka", "1.0.0").withInstalledUID("kafka", "other"),
			want:  []string{"unknown: whether OperatorVersion kafka-1.0.0 of kafka supports the new Kubernetes version, because it was deleted, and another one of that name was pushed"},
		},
		"a child of an add-on, and an Instance without one": {
			world: newWorld("v1.35.1", "kafka:").withPackage("kafka", "1.0.0", "").withPackage("disk", "1.0.0", "<1.36").runs("kafka", "1.0.0").
				instance("kafka.disk", "disk", "1.0.0", "kafka").instance("db", "disk", "1.0.0", ""),
			want: []string{"/db NotSupported: disk-1.0.0 runs: the package requires Kubernetes <1.36",
				"kafka/kafka.disk NotSupported: disk-1.0.0 runs: the package requires Kubernetes <1.36"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, effectsOf(tc.world.cluster())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKubernetesDependencies(t *testing.T) {
	for sentence, tc := range map[string]struct {
		world world
		want  []string
	}{
		"a selector that does not read the version": {world: newWorld("v1.35.1", "shop: kafka@eu", "kafka:").with("shop")},
		"one that begins to apply, and is not satisfied": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").with("shop").where("shop", "kafka", from136),
			want:  []string{"shop Unavailable: Required dependency on kafka begins to apply, and is not satisfied: NotInstalled"},
		},
		"an optional one": {
			world: newWorld("v1.35.1", "shop: kafka?", "kafka:").with("shop").where("shop", "kafka", from136),
			want:  []string{"shop Degraded: Optional dependency on kafka begins to apply, and is not satisfied: NotInstalled"},
		},
		"one that begins to apply, and is satisfied": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").with("shop", "kafka").where("shop", "kafka", from136),
			want:  []string{"shop Applies: Required dependency on kafka begins to apply"},
		},
		"one that reads OCM's claim": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").with("shop").where("shop", "kafka", claim136),
			want:  []string{"shop Unavailable: Required dependency on kafka begins to apply, and is not satisfied: NotInstalled"},
		},
		"one that ceases to apply": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").with("shop", "kafka").where("shop", "kafka", below136),
			want:  []string{"shop NoLongerApplies: Required dependency on kafka no longer applies"},
		},
		"one that ceases to apply, and is not satisfied": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").with("shop").where("shop", "kafka", below136),
			want:  []string{"shop NoLongerApplies: Required dependency on kafka no longer applies, which is not satisfied now: NotInstalled"},
		},
		"dependents of what becomes unavailable": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:", "portal: shop", "graphs: portal?").with("shop", "portal", "graphs").where("shop", "kafka", from136),
			want: []string{
				"portal Unavailable: depends on shop, which becomes unavailable: portal -> shop",
				"shop Unavailable: Required dependency on kafka begins to apply, and is not satisfied: NotInstalled",
				"graphs Degraded: depends on shop, which becomes unavailable: graphs -> portal -> shop",
			},
		},
		"a dependent that becomes unavailable for a reason of its own": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:", "portal: shop disk", "disk:").with("shop", "portal").where("shop", "kafka", from136).where("portal", "disk", from136),
			want: []string{
				"portal Unavailable: Required dependency on disk begins to apply, and is not satisfied: NotInstalled",
				"shop Unavailable: Required dependency on kafka begins to apply, and is not satisfied: NotInstalled",
			},
		},
		"an installation that waits for it": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").withDefault("shop", "1.0.0").with("shop").where("shop", "kafka", below136),
			want: []string{"shop NoLongerApplies: Required dependency on kafka no longer applies, which is not satisfied now: NotInstalled",
				"shop VersionStarts: its installation is waiting now for kafka"},
		},
		"a version that waits for a dependent that ceases to be one": {
			world: newWorld("v1.35.1", "shop: kafka", "kafka:").withPackage("kafka", "1.0.0", "").withPackage("kafka", "2.0.0", "").withPackage("shop", "1.0.0", "", "kafka", "<2").
				runs("kafka", "1.0.0").runs("shop", "1.0.0").withDefault("kafka", "2.0.0").where("shop", "kafka", below136),
			want: []string{"shop NoLongerApplies: Required dependency on kafka no longer applies",
				"kafka VersionStarts: kafka-2.0.0 is waiting now: waiting to change to kafka-2.0.0: shop runs, shop-1.0.0 requires kafka <2, and kafka-2.0.0 has version 2.0.0; " +
					"change shop to a version that accepts kafka 2.0.0, or disable it"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, effectsOf(tc.world.cluster())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestKubernetesNamesWhatIsNotRead checks that nothing is omitted silently.
func TestKubernetesNamesWhatIsNotRead(t *testing.T) {
	world := newWorld("v1.35.1", "shop: kafka", "kafka:").withPackage("shop", "1.0.0", "<1.36").runs("shop", "1.0.0").where("shop", "kafka", from136)
	world.Selected = nil
	unread := world.cluster()
	if diff := cmp.Diff([]string{
		"shop NotSupported: shop-1.0.0 runs: the package requires Kubernetes <1.36",
		"unknown: the current Kubernetes version, and which dependencies with clusters apply, because you are not allowed to get the ManagedCluster",
	}, effectsOf(unread)); diff != "" {
		t.Error(diff)
	}
	unread.Versions = Versions{Unread: map[string]bool{packages: true}}
	if diff := cmp.Diff([]string{
		"unknown: the current Kubernetes version, and which dependencies with clusters apply, because you are not allowed to get the ManagedCluster",
		"unknown: whether OperatorVersion shop-1.0.0 of shop supports the new Kubernetes version, because you are not allowed to list OperatorVersions in namespace packages",
	}, effectsOf(unread)); diff != "" {
		t.Error(diff)
	}
	unread.Instances = nil
	if diff := cmp.Diff([]string{
		"unknown: the current Kubernetes version, and which dependencies with clusters apply, because you are not allowed to get the ManagedCluster",
		"unknown: which versions run, because you are not allowed to list the Instances of the cluster",
	}, effectsOf(unread)); diff != "" {
		t.Error(diff)
	}
}

func TestKubernetesGroupsClusters(t *testing.T) {
	clusters := map[string]Cluster{}
	for name, kubernetes := range map[string]string{"east": "v1.35.1", "north": "v1.34.0", "south": "v1.36.0", "west": ""} {
		clusters[name] = newWorld(kubernetes, "kafka:", "shop: gpu", "gpu:").withName(name).withPackage("kafka", "1.0.0", "<1.36").runs("kafka", "1.0.0").cluster()
	}
	shop := newWorld("v1.35.1", "shop: gpu", "gpu:").withName("center").with("shop").where("shop", "gpu", from136)
	clusters["center"] = shop.cluster()
	want := Kubernetes{
		Version: "v1.36.0", Clusters: []string{"center", "east", "north", "west"}, Current: []string{"south"},
		Effects: []KubernetesRow{
			{AddOn: "shop", Effect: BecomesUnavailable, DependsOn: "gpu", Type: "Required", Clusters: []string{"center"},
				Reason: "Required dependency on gpu begins to apply, and is not satisfied: NotInstalled"},
			{AddOn: "kafka", Effect: NotSupported, OperatorVersion: "kafka-1.0.0", Clusters: []string{"east", "north", "west"},
				Reason: "kafka-1.0.0 runs: the package requires Kubernetes <1.36"},
		},
		Unknown: []UnknownRow{{Reason: "the current Kubernetes version, because it is not reported", Clusters: []string{"west"}}},
	}
	if diff := cmp.Diff(want, KubernetesOf("v1.36.0", clusters)); diff != "" {
		t.Error(diff)
	}
}

// with installs add-ons that run no package.
func (w world) with(names ...string) world {
	for _, name := range names {
		w.Cluster = w.With(name, sample.Works)
	}
	return w
}

// starts makes the hub start a version of an add-on that runs another one.
func (w world) starts(name, version string) world {
	w = w.withDefault(name, version)
	w.Instances[name].Spec.OperatorVersion.Name = name + "-" + version
	return w
}

// withInstalledUID sets the uid of the OperatorVersion that an add-on runs.
func (w world) withInstalledUID(name string, uid types.UID) world {
	w.Instances[name].Status.Whole.OperatorVersion.UID = uid
	return w
}

// applies makes a plan of the Instance apply a version.
func (w world) applies(name, version string) world {
	w.Instances[name].Status.Execution = &kudo.Execution{
		Plan: kudo.DeployPlan, OperatorVersion: corev1.ObjectReference{Namespace: packages, Name: name + "-" + version, UID: types.UID(name + "-" + version)},
	}
	return w
}

// withWaitingPlan marks an add-on of which a plan waits for another version of Kubernetes.
func (w world) withWaitingPlan(name string) world {
	w.Instances[name].Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionReady, "False", kudo.ReasonKubernetesVersionUnsupported, "")}
	return w
}

// instance adds an Instance that runs a version of an operator, as a child of another one if that is not empty.
func (w world) instance(name, operator, version, parent string) world {
	i := newInstance(w.Name, name, operator+"-"+version, version)
	i.OwnerReferences = nil
	if parent != "" {
		i.OwnerReferences = []metav1.OwnerReference{{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: parent, Controller: new(true)}}
		i.Labels = map[string]string{kudo.LabelRoot: parent}
	}
	w.Instances[name] = i
	return w
}
