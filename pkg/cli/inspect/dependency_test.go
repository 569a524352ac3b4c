package inspect

import (
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestTreeText(t *testing.T) {
	shop := func() sample.Cluster {
		return sample.NewCluster("shop: kafka monitoring? search", "kafka: zookeeper", "search: zookeeper kafka", "zookeeper:", "monitoring:", "lonely:")
	}
	for name, tc := range map[string]struct {
		view  sample.Cluster
		roots []string
	}{
		"tree-healthy": {view: shop().With("shop", sample.Works).With("kafka", sample.Works).With("search", sample.Works).With("zookeeper", sample.Works).
			With("monitoring", sample.Works).With("lonely", sample.Works)},
		"tree-every-state": {view: sample.NewCluster("top: failing silent none absent deleting unknown updating blocked worse waiting optional?", "failing:", "silent:", "absent:",
			"deleting:", "unknown:", "updating:", "blocked:", "worse:", "waiting:", "optional: absent?").With("top", sample.Works).With("updating", sample.Updates).With("failing", sample.Fails).With("silent").With("deleting", sample.Works).
			With("blocked", sample.Works, sample.BadParameters).With("worse", sample.Fails, sample.BadParameters).With("waiting", sample.Works, sample.NotRolledOut).
			With("unknown", sample.NoProbe).With("optional", sample.Works).WithDeletion("deleting").WithVerdicts()},
		"tree-versions": {view: sample.NewCluster("shop: kafka vault?", "kafka:", "vault:").WithConstraint("shop", "kafka", ">=3.8").WithWhole("kafka", "3.7.0").
			WithConstraint("shop", "vault", "^1.2").WithVersion("vault", "1.3").With("shop", sample.Works).With("kafka", sample.Works).With("vault", sample.Works).WithVerdicts()},
		"tree-candidates": {view: sample.NewCluster("shop: kafka|redpanda|warp search|elastic vault|safe auth@eu? gpu@gpu? tpu|npu@tpu?", "kafka:", "redpanda: disk", "search:",
			"elastic:", "gpu:", "auth:", "disk:").Labelled("eu").With("shop", sample.Works).With("redpanda", sample.Works).With("disk", sample.Works).
			With("elastic", sample.Fails).With("auth", sample.Works).WithVerdicts()},
		"tree-cluster-unread": {view: sample.NewCluster("shop: kafka@eu gpu@gpu", "kafka:", "gpu:").With("shop", sample.Works,
			sample.Condition(addonv1alpha1.ConditionDegraded, "True", addonv1alpha1.ReasonRequiredDependencyNotSatisfied, "Required addon 'kafka' is not installed or not available."))},
		"tree-one-add-on":        {view: shop().With("shop", sample.Works).With("kafka", sample.Works).WithVerdicts(), roots: []string{"kafka"}},
		"tree-not-installed":     {view: shop(), roots: []string{"shop"}},
		"tree-nothing-installed": {view: shop()},
		"tree-over-an-absent-one": {view: sample.NewCluster("monitor: shop", "shop: portal", "portal: auth", "auth:").With("monitor", sample.Works).
			With("portal", sample.Works).With("auth", sample.Works).WithVerdicts()},
		"tree-cycle": {view: sample.NewCluster("shop: a", "a: b", "b: a? c", "c:").With("shop", sample.Works).With("a", sample.Works).With("b", sample.Works).With("c", sample.Works).WithVerdicts()},
		"tree-cycles-without-a-root": {view: sample.NewCluster("a: b", "b: c", "c: b", "d: a", "a: d b", "e: e").With("a", sample.Works).With("b", sample.Works).
			With("c", sample.Works).With("d", sample.Works).With("e", sample.Works)},
		"tree-out-of-touch": {view: sample.NewCluster("a: b c", "b:", "c:").With("a", sample.OutOfTouch,
			sample.Condition(addonv1alpha1.ConditionDegraded, "True", addonv1alpha1.ReasonRequiredDependencyNotSatisfied, "Required addon 'c' is not installed or not available."),
		).With("b", sample.OutOfTouch).With("c", sample.OutOfTouch)},
		"tree-malformed": {view: sample.NewCluster("a: b", "b:").With("a", sample.Works).With("b", sample.Works).WithAnnotation("b", "{")},
		"tree-a-name-that-is-no-word": {view: sample.NewCluster("a:").With("a", sample.Works).
			WithAnnotation("a", `[{"name":"two words"},{"name":"\u001b[31m"},{"name":"tab\there"}]`)},
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, treeText(fleet.TreeOf(tc.view.Cluster, tc.roots))) })
	}
}

// TestTreeShowsEverythingInstalled checks the roots of all graphs of three add-ons, each of which may be missing.
func TestTreeShowsEverythingInstalled(t *testing.T) {
	names := []string{"a", "b", "c"}
	for edges := range 1 << 9 {
		var lines []string
		for i, name := range names {
			line := name + ":"
			for k, need := range names {
				if edges>>(3*i+k)&1 != 0 {
					line += " " + need
				}
			}
			lines = append(lines, line)
		}
		for there := range 1 << len(names) {
			view := sample.NewCluster(lines...)
			for i, name := range names {
				if there>>i&1 != 0 {
					view.With(name)
				}
			}
			checkRoots(t, view, lines)
		}
	}
}

// checkRoots checks that all installed add-ons are reachable from the roots, and that no root is reachable from another one.
func checkRoots(t *testing.T, view sample.Cluster, lines []string) {
	t.Helper()
	roots, reached := fleet.Roots(view.Cluster), map[string]bool{}
	for _, root := range roots {
		below := map[string]bool{}
		fleet.Reach(view.Nearest, root, below)
		for _, other := range roots {
			if other != root && below[other] {
				t.Errorf("%v on %v: of the roots %v, %s leads to %s", lines, view.AddOnNames(), roots, root, other)
			}
		}
		maps.Copy(reached, below)
	}
	for _, name := range view.AddOnNames() {
		if !reached[name] {
			t.Errorf("%v on %v: roots %v do not show %s", lines, view.AddOnNames(), roots, name)
		}
	}
}

func TestWhyText(t *testing.T) {
	chain := func() sample.Cluster { return sample.NewCluster("shop: kafka", "kafka: zookeeper", "zookeeper:") }
	for name, view := range map[string]sample.Cluster{
		"why-healthy":             chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Works).WithVerdicts(),
		"why-updating":            sample.NewCluster("shop:").With("shop", sample.Updates),
		"why-healthy-alone":       sample.NewCluster("shop:").With("shop", sample.Works),
		"why-not-installed":       chain(),
		"why-not-installed-top":   chain().With("kafka", sample.Works).With("zookeeper", sample.Works),
		"why-not-installed-plans": sample.NewCluster("shop:").Plans("shop"),
		"why-chain-end-not-installed": chain().WithNeedMessage("shop", "kafka", "Orders are not taken").
			With("shop", sample.Works).With("kafka", sample.Works).WithVerdicts(),
		"why-chain-end-fails":     chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Fails, sample.Resolved).WithVerdicts(),
		"why-chain-end-lease":     chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.NoProbe).WithVerdicts(),
		"why-chain-end-silent":    chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper").WithVerdicts(),
		"why-chain-end-deleting":  chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Works).WithDeletion("zookeeper", "x/y").WithVerdicts(),
		"why-chain-end-unknown":   sample.NewCluster("shop: kafka", "kafka: zookeper").With("shop", sample.Works).With("kafka", sample.Works).WithVerdicts(),
		"why-chain-end-config":    chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.NotThereYet, sample.BadConfig).WithVerdicts(),
		"why-chain-end-recovers":  chain().With("shop", sample.Works).With("kafka", sample.HeldBack).With("zookeeper", sample.Works).WithVerdicts(),
		"why-chain-end-malformed": chain().With("shop", sample.Works).With("kafka", sample.HeldBack).WithAnnotation("kafka", "{").WithVerdicts(),
		"why-chain-end-not-installed-plans": chain().Plans("zookeeper").With("shop", sample.Works).With("kafka", sample.Works).In("shop", "web").
			In("kafka", "data").WithVerdicts(),
		"why-chain-end-missing": chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Missing, sample.Resolved).WithExecution("zookeeper", "backup").WithVerdicts(),
		"why-chain-end-failed":  chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Fails, sample.Resolved).WithExecution("zookeeper", "upgrade").WithVerdicts(),
		"why-chain-end-version": chain().WithConstraint("kafka", "zookeeper", ">=3.8 <5").WithWhole("zookeeper", "3.7.0").
			With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Works).WithVerdicts(),
		"why-no-candidate": sample.NewCluster("shop: kafka|redpanda", "kafka:", "redpanda:").Labelled().With("shop", sample.Works).WithVerdicts(),
		"why-candidate-fails": sample.NewCluster("shop: kafka|redpanda", "kafka:", "redpanda: disk", "disk:").Labelled().
			With("shop", sample.Works).With("redpanda", sample.Works).WithVerdicts(),
		"why-candidate-satisfies": sample.NewCluster("shop: kafka|redpanda gpu@gpu", "kafka:", "redpanda:").Labelled().
			With("shop", sample.Works).With("redpanda", sample.Works).WithVerdicts(),
		"why-version-label": sample.NewCluster("shop: vault", "vault:").WithConstraint("shop", "vault", "^1.2").WithVersion("vault", "2.0.0").
			With("shop", sample.Works).With("vault", sample.Works).WithVerdicts(),
		"why-version-unread": sample.NewCluster("shop: vault", "vault:").WithConstraint("shop", "vault", "^1.2").
			With("shop", sample.Works).With("vault", sample.Works).WithVerdicts().Plans("vault"),
		"why-missing":   sample.NewCluster("shop:").With("shop", sample.Missing, sample.Resolved).WithExecution("shop", "deploy"),
		"why-unhealthy": sample.NewCluster("shop:").With("shop", sample.Unhealthy, sample.Resolved).WithExecution("shop", "deploy"),
		"why-drifted":   withDrift(sample.NewCluster("shop:").With("shop", sample.Works, sample.Resolved)),
		"why-scaled-to-zero": withDrift(sample.NewCluster("shop:").With("shop", sample.Resolved, sample.Condition(addonv1alpha1.ConditionAvailable, "False", kudo.ReasonUnhealthy,
			"Deployment shop/web: has 0 replicas where 3 were applied (by kubectl-scale)"))),
		"why-two-causes": sample.NewCluster("shop: kafka search", "kafka: zookeeper", "search:", "zookeeper:").
			With("shop", sample.Works).With("kafka", sample.Works).With("search", sample.Fails).WithVerdicts(),
		"why-waiting":        chain().With("shop", sample.NotThereYet, sample.Held).With("kafka", sample.Works).With("zookeeper", sample.Works).WithDeletion("kafka").WithVerdicts(),
		"why-config":         sample.NewCluster("shop:").With("shop", sample.NotThereYet, sample.BadConfig),
		"why-change-held-up": sample.NewCluster("shop:").With("shop", sample.Works, sample.BadParameters),
		"why-change-unseen":  sample.NewCluster("shop:").With("shop", sample.Works, sample.Resolved).WithChangedSpec("shop"),
		"why-rollout-failed": sample.NewCluster("shop:").With("shop", sample.Works, sample.NotRolledOut).
			RolledOut("shop", "cluster2", sample.Fails, sample.Resolved).RolledOut("shop", "cluster4", sample.Works, sample.Resolved),
		"why-rollout-invalid": sample.NewCluster("shop:").With("shop", sample.Works, sample.NotRolledOut).RolledOut("shop", "cluster2", sample.Works, sample.BadConfig),
		"why-rollout-progressing": sample.NewCluster("shop:").With("shop", sample.Works, sample.NotRolledOut).
			RolledOut("shop", "cluster4", sample.Works, sample.Resolved).RolledOut("shop", "cluster2", sample.Works, sample.Resolved),
		"why-rollout-soaking": sample.NewCluster("shop:").With("shop", sample.Works, sample.NotRolledOut).
			RolledOut("shop", "cluster2", sample.Works, sample.Resolved, sample.Soaking),
		"why-soaking": sample.NewCluster("shop:").With("shop", sample.Works, sample.Resolved, sample.Soaking).WithExecution("shop", "deploy"),
		"why-healthy-for-invalid": sample.NewCluster("shop:").With("shop", sample.Works, sample.Resolved, sample.Condition(addonv1alpha1.ConditionManifestApplied, "False",
			addonv1alpha1.ReasonHealthyForInvalid, `annotation kudo.dev/healthy-for of AddOnDeploymentConfig default/shop is malformed, and no rollout counts a cluster as done: "soon"`)),
		"why-agent-too-old": sample.NewCluster("shop:").With("shop", sample.Works, sample.Resolved, sample.Condition(addonv1alpha1.ConditionManifestApplied, "False",
			addonv1alpha1.ReasonAgentTooOld, "the agent of the cluster does not report that, because its version is too old: upgrade it")),
		"why-rollout-unknown": sample.NewCluster("shop:").With("shop", sample.NotThereYet, sample.NotRolledOut),
		"why-rollout-below": chain().With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.NotThereYet, sample.NotRolledOut).WithVerdicts().
			RolledOut("zookeeper", "cluster2", sample.Fails, sample.Resolved),
		"why-rollouts-wait-slot": stuck().Stuck("shop cluster1: kafka", "kafka cluster2: shop").With("shop", sample.Works, sample.UpgradeWaits).WithWhole("shop", "1.0.0").
			With("kafka", sample.Works, sample.NotRolledOut).RolledOut("kafka", "cluster2", sample.Works, sample.UpgradeWaits),
		"why-rollouts-wait-queued": stuck().Stuck("kafka cluster1: shop", "shop cluster2: kafka").With("shop", sample.Works, sample.NotRolledOut).With("kafka", sample.Works).
			RolledOut("shop", "cluster2", sample.Works, sample.UpgradeWaits).Progressive("kafka", 1),
		"why-rollouts-wait-many": sample.NewCluster("shop: kafka", "kafka:", "auth:").With("shop", sample.Works, sample.NotRolledOut).With("kafka", sample.Works).
			RolledOut("shop", "cluster2", sample.Works, sample.UpgradeWaits).Progressive("shop", 1).PlacedBy("kafka", "everywhere").Stuck("kafka c1: shop", "kafka c2: shop", "kafka c3: shop",
			"kafka c4: shop", "kafka c5: auth", "auth c6: kafka", "shop cluster2: kafka", "shop cluster3: kafka", "portal c1: shop"),
		"why-rollout-waits-first": sample.NewCluster("shop: kafka", "kafka:").With("shop", sample.Works, sample.UpgradeWaits).WithWhole("shop", "1.0.0").
			With("kafka", sample.Works, sample.NotRolledOut).RolledOut("kafka", "cluster2", sample.Works, sample.Resolved),
		"why-rollout-installs-first": sample.NewCluster("shop: kafka", "kafka:").With("kafka", sample.NotThereYet, sample.NotRolledOut).With("shop", sample.NotThereYet,
			sample.Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies, dependency.AvailabilityOpening+"kafka")).
			RolledOut("kafka", "cluster2", sample.Works, sample.Resolved).WithVerdicts(),
		"why-config-available": sample.NewCluster("shop:").With("shop", sample.Works, sample.BadConfig),
		"why-config-ignored":   sample.NewCluster("shop:").With("shop", sample.Works, sample.Remarked),
		"why-said-once":        sample.NewCluster("shop:").With("shop", sample.NotThereFor, sample.BadConfig),
		"why-fails":            sample.NewCluster("shop:").With("shop", sample.Fails, sample.Resolved),
		"why-fails-lease":      sample.NewCluster("shop:").With("shop", sample.Fails),
		"why-silent":           sample.NewCluster("shop:").With("shop"),
		"why-deleting":         chain().With("shop", sample.Works).WithDeletion("shop", "a/b", "c/d"),
		"why-agent-deleting": sample.NewCluster("shop:").With("shop", sample.Condition(addonv1alpha1.ConditionAddOnsRemaining, "True", addonv1alpha1.ReasonWaitingForRemoval,
			"addon-agent stays on the cluster for add-on kafka")).WithDeletion("shop", addonv1alpha1.FinalizerAgent),
		"why-degraded-optional":           sample.NewCluster("shop: monitoring?", "monitoring:").WithNeedMessage("shop", "monitoring", "There are no graphs.").With("shop", sample.Works).WithVerdicts(),
		"why-degraded-own":                sample.NewCluster("shop:").With("shop", sample.Works, sample.DiskFull),
		"why-cycle":                       sample.NewCluster("shop: kafka", "kafka: zookeeper", "zookeeper: shop").With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Works).WithVerdicts(),
		"why-cycle-optional":              sample.NewCluster("shop: kafka?", "kafka: shop").With("shop", sample.Works).With("kafka", sample.Works).WithVerdicts(),
		"why-cycle-itself":                sample.NewCluster("shop: shop").With("shop", sample.Works).WithVerdicts(),
		"why-below-a-cycle":               sample.NewCluster("shop: a", "a: b", "b: a").With("shop", sample.Works).With("a", sample.Works).With("b", sample.Works).WithVerdicts(),
		"why-out-of-touch":                chain().With("shop", sample.OutOfTouch).With("kafka", sample.OutOfTouch).With("zookeeper", sample.OutOfTouch),
		"why-out-of-touch-held":           sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.OutOfTouch, sample.VerdictThen).With("zookeeper", sample.OutOfTouch),
		"why-hub-behind":                  sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.Works),
		"why-hub-behind-again":            sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.HeldBack, sample.VerdictThen).With("zookeeper", sample.Works),
		"why-agent-behind":                sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.HeldBack).With("zookeeper", sample.Works),
		"why-agent-behind-plans":          sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.HeldBack, sample.Resolved).With("zookeeper", sample.Works),
		"why-agent-behind-hosted":         sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.HeldBack).With("zookeeper", sample.Works).WithHosting("shop"),
		"why-agent-behind-customized":     sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.HeldBack).With("zookeeper", sample.Works).WithCustomHealth("shop"),
		"why-agent-behind-optional":       sample.NewCluster("shop: zookeeper?", "zookeeper:").With("shop", sample.HeldBack).WithVerdicts().WithCustomHealth("shop"),
		"why-agent-behind-silent":         sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.VerdictThen),
		"why-chain-end-recovers-custom":   chain().With("shop", sample.Works).With("kafka", sample.HeldBack).With("zookeeper", sample.Works).WithCustomHealth("kafka").WithVerdicts(),
		"why-chain-end-malformed-fails":   chain().With("shop", sample.Works).With("kafka", sample.Fails).WithAnnotation("kafka", "{").WithVerdicts(),
		"why-shared":                      sample.NewCluster("shop: kafka search?", "kafka: zookeeper", "search: zookeeper", "zookeeper:").With("shop", sample.Works).With("kafka", sample.Works).With("search", sample.Works).WithVerdicts(),
		"why-cycle-required-and-optional": sample.NewCluster("shop: a b?", "a: b", "b: a").With("shop", sample.Works).With("a", sample.Works).With("b", sample.Works).WithVerdicts(),
		"why-malformed-available":         sample.NewCluster("shop:").With("shop", sample.Works).WithAnnotation("shop", "{"),
		"why-malformed-waiting":           sample.NewCluster("shop:").With("shop", sample.NotThereYet, sample.Held).WithAnnotation("shop", "{"),
		"why-undefined":                   sample.NewCluster().With("shop").WithCustomHealth("shop"),
		"why-undefined-available":         sample.NewCluster().With("shop", sample.Works),
		"why-chain-end-undefined":         sample.NewCluster("shop: kafka").With("shop", sample.Works).With("kafka", sample.Fails).WithVerdicts(),
		"why-agent-behind-true":           sample.NewCluster("shop: zookeeper", "zookeeper:").With("shop", sample.Works, sample.VerdictThen),
		"why-malformed":                   sample.NewCluster("shop:").With("shop", sample.HeldBack, sample.VerdictThen).WithAnnotation("shop", `[{"name":"zookeeper","type":"Nice"}]`),
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, why.Of(view.Cluster, "shop", sample.Now).Text()) })
	}
}

// withDrift adds the Instance of add-on shop, objects of which differ from what its last plan has applied.
func withDrift(view sample.Cluster) sample.Cluster {
	instance := sample.Instance()
	instance.Name, instance.OwnerReferences = "shop", []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "shop", Controller: ptr.To(true)}}
	instance.Status.Execution = &kudo.Execution{Plan: kudo.DeployPlan}
	instance.Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionDrifted, "True", kudo.ReasonDrifted, "Deployment shop/web: /spec/replicas is 0 instead of 3")}
	view.Instances = map[string]*kudo.Instance{"shop": instance}
	return view
}

// stuck returns a cluster without add-ons, for rollouts of shop and kafka that wait for each other.
func stuck() sample.Cluster {
	return sample.NewCluster("shop: kafka", "kafka:").PlacedBy("shop", "everywhere").PlacedBy("kafka", "everywhere")
}

// TestWhyBreaksACycleInOnePlace checks that the advice for all members of a cycle names the same dependency to remove.
func TestWhyBreaksACycleInOnePlace(t *testing.T) {
	for want, lines := range map[string][]string{
		"kubectl edit clustermanagementaddon kafka":     {"shop: kafka", "kafka: zookeeper", "zookeeper: shop"},
		"kubectl edit clustermanagementaddon zookeeper": {"shop: kafka", "kafka: zookeeper", "zookeeper: shop?"},
	} {
		for _, name := range []string{"shop", "kafka", "zookeeper"} {
			view := sample.NewCluster(lines...).With("shop", sample.Works).With("kafka", sample.Works).With("zookeeper", sample.Works).WithVerdicts()
			if text := why.Of(view.Cluster, name, sample.Now).Text(); !strings.HasSuffix(text, "\n\n  "+want+"\n") {
				t.Errorf("%v: want %q of %s, got\n%s", lines, want, name, text)
			}
		}
	}
}

// TestWhyQuotesNames covers plans, whose names no API server validates: users copy the commands into a shell.
func TestWhyQuotesNames(t *testing.T) {
	view := sample.NewCluster("shop:").With("shop", sample.Fails)
	available := meta.FindStatusCondition(view.AddOns["shop"].Status.Conditions, addonv1alpha1.ConditionAvailable)
	available.Reason = kudo.ReasonPlanFailed
	instance := sample.Instance()
	instance.Name, instance.Status.Execution = "shop", &kudo.Execution{Plan: "$(reboot)"}
	view.Instances = map[string]*kudo.Instance{"shop": instance}
	const want = "kubectl addon plan run shop '$(reboot)' --cluster cluster1"
	if text := why.Of(view.Cluster, "shop", sample.Now).Text(); !strings.Contains(text, want) {
		t.Errorf("want %q, got\n%s", want, text)
	}
}

func TestWhyExplainsRetryOfFailedPlan(t *testing.T) {
	view := sample.NewCluster("shop:").With("shop", sample.Fails)
	instance := sample.Instance()
	instance.Name = "shop"
	instance.Status.Execution = &kudo.Execution{Plan: "backup", Owed: []kudo.OwedPlan{{Plan: "deploy", Outcome: kudo.OwedFailed,
		RetryTime: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}}}
	view.Instances = map[string]*kudo.Instance{"shop": instance}
	text := why.Of(view.Cluster, "shop", sample.Now).Text()
	for _, want := range []string{
		"Fix the cause: plan deploy starts again at 2026-01-02T03:04:05Z, or run it now.", "kubectl addon plan run shop deploy --cluster cluster1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q, got\n%s", want, text)
		}
	}
}

func TestWhyExplainsMissingMirror(t *testing.T) {
	view := sample.NewCluster("shop:").With("shop", sample.Fails)
	instance := sample.Instance()
	instance.Name, instance.Generation = "shop", 1
	ready := sample.Condition(kudo.ConditionReady, "False", kudo.ReasonNotMirrored, `namespace "shop" of the managed cluster is being deleted`)
	ready.ObservedGeneration = 1
	instance.Status.Conditions = []metav1.Condition{sample.Condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, ""), ready}
	view.Instances = map[string]*kudo.Instance{"shop": instance}
	text := why.Of(view.Cluster, "shop", sample.Now).Text()
	const want = `The plans of shop do not run yet: namespace "shop" of the managed cluster is being deleted.`
	if !strings.Contains(text, want) || strings.Contains(text, "check that addon-agent is running") {
		t.Errorf("want %q, got\n%s", want, text)
	}
}

func TestWhyExplainsTheOrderOfRemoval(t *testing.T) {
	const first = "it is removed once portal is gone, which depends on it"
	view := sample.NewCluster("shop:", "portal: shop", "other: shop").Plans("shop").With("other").
		With("shop", sample.Works, sample.Condition(addonv1alpha1.ConditionAddOnsRemaining, "True", addonv1alpha1.ReasonWaitingForDependents, first)).
		With("portal", sample.Works).WithDeletion("portal", "a/b").WithDeletion("shop", kudo.Finalizer)
	instance := sample.Instance()
	instance.Name = "shop"
	instance.OwnerReferences = []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "shop", Controller: new(true)}}
	view.Instances = map[string]*kudo.Instance{"shop": instance}
	clitest.Golden(t, "why-deleting-in-order", why.Of(view.Cluster, "shop", sample.Now).Text())
	if j := view.Judge("other")[0]; j.Cause == dependency.Deleting {
		t.Errorf("a removal that has not started counts: %+v", j)
	}
	instance.DeletionTimestamp = view.AddOns["shop"].DeletionTimestamp
	view.AddOns["shop"].Status.Conditions = nil
	if text := why.Of(view.Cluster, "shop", sample.Now).Text(); strings.Contains(text, first) {
		t.Errorf("a removal that has started waits for none: %s", text)
	}
	if j := view.Judge("other")[0]; j.Cause != dependency.Deleting {
		t.Errorf("a removal that has started does not count: %+v", j)
	}
}

func TestDependentsText(t *testing.T) {
	needs := map[string][]addonv1alpha1.AddonDependency{}
	for _, line := range []string{
		"kafka: zookeeper", "search: zookeeper", "shop: kafka monitoring?", "portal: shop search", "monitoring: zookeeper?", "nowhere: kafka",
		"db: disk", "ledger: db|flash", "gpu-job: disk@gpu",
	} {
		d := sample.Define(line)
		needs[d.Name] = d.Spec.Dependencies
	}
	all := map[string]bool{"zookeeper": true, "kafka": true, "search": true, "shop": true, "portal": true, "monitoring": true}
	places := map[string]map[string]bool{
		"cluster1": all, "cluster2": all, "cluster3": all, "cluster4": all,
		"cluster5": {"zookeeper": true, "kafka": true, "shop": true, "portal": true},
		"cluster6": {"kafka": true},
		"cluster7": {"zookeeper": true, "portal": true},
	}
	malformed := "{"
	_, problem := dependency.DeclaredBy(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: "other", Annotations: map[string]string{addonv1alpha1.AnnotationDependencies: malformed},
	}})
	for name, tc := range map[string]struct {
		view fleet.DependentsView
		wide bool
	}{
		"dependents":           {view: fleet.DependentsView{AddOn: "zookeeper", There: places}},
		"dependents-wide":      {view: fleet.DependentsView{AddOn: "zookeeper", There: places}, wide: true},
		"dependents-of-nobody": {view: fleet.DependentsView{AddOn: "portal", There: places}},
		"dependents-candidates": {view: fleet.DependentsView{AddOn: "disk", There: map[string]map[string]bool{
			"cluster1": {"disk": true, "db": true, "ledger": true}, "cluster2": {"disk": true, "db": true, "flash": true, "ledger": true},
			"cluster3": {"disk": true, "gpu-job": true}, "cluster4": {"disk": true, "gpu-job": true},
		}, Selected: map[string]selector.Cluster{"cluster3": {Labels: map[string]string{"gpu": "true"}}, "cluster4": {}, "cluster1": {}, "cluster2": {}}}, wide: true},
		"dependents-malformed": {view: fleet.DependentsView{AddOn: "monitoring", There: places, Malformed: []error{problem}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.Needs, tc.view.Direct = needs, dependency.Direct(needs)
			clitest.Golden(t, name, dependentsText(fleet.DependentsOf(tc.view), tc.wide))
		})
	}
}
