package cli

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/dependency"
)

var onceUponATime = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// define makes the definition of the add-on "a" out of "a: b c?", in which ? stands for Optional.
func define(line string) *addon.ClusterManagementAddOn {
	name, needs, _ := strings.Cut(line, ":")
	d := &addon.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for need := range strings.FieldsSeq(needs) {
		need, isOptional := strings.CutSuffix(need, "?")
		t := addon.DependencyTypeRequired
		if isOptional {
			t = addon.DependencyTypeOptional
		}
		d.Spec.Dependencies = append(d.Spec.Dependencies, addon.AddonDependency{Name: need, Type: t})
	}
	return d
}

// sampleCluster is a cluster with add-ons that a test puts on it.
type sampleCluster struct{ clusterView }

// defined are the definitions of all lines.
func defined(lines ...string) sampleCluster {
	view := sampleCluster{clusterView{
		cluster: "cluster1", definitions: map[string]definition{}, addOns: map[string]*addon.ManagedClusterAddOn{},
	}}
	for _, line := range lines {
		d := define(line)
		view.definitions[d.Name] = definitionOf(d)
	}
	return view
}

// with puts an add-on on the cluster.
func (v sampleCluster) with(name string, conditions ...metav1.Condition) sampleCluster {
	addOn := &addon.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v.cluster}}
	for i := range conditions {
		conditions[i].LastTransitionTime = onceUponATime
	}
	addOn.Status.Conditions = conditions
	v.addOns[name] = addOn
	return v
}

// judged writes the verdict over each add-on as addon-manager and the agent do, as often as it takes to settle.
func (v sampleCluster) judged() sampleCluster {
	for range v.addOns {
		for name, addOn := range v.addOns {
			verdict := v.judge(name).Condition()
			if verdict == nil {
				continue
			}
			conditions := []metav1.Condition{*verdict}
			for _, c := range addOn.Status.Conditions {
				if c.Type == addon.ConditionAvailable && verdict.Reason == addon.ReasonRequiredDependencyNotSatisfied &&
					c.Status != metav1.ConditionUnknown {
					c.Status, c.Reason, c.Message = metav1.ConditionFalse, verdict.Reason, verdict.Message
				}
				if c.Type != addon.ConditionDegraded {
					conditions = append(conditions, c)
				}
			}
			addOn.Status.Conditions = conditions
		}
	}
	return v
}

// deleting marks an add-on as being deleted.
func (v sampleCluster) deleting(name string, finalizers ...string) sampleCluster {
	v.addOns[name].DeletionTimestamp = &onceUponATime
	v.addOns[name].Finalizers = finalizers
	return v
}

// saying adds what is lost without a dependency.
func (v sampleCluster) saying(name, need, message string) sampleCluster {
	needs := v.needs(name)
	for i := range needs {
		if needs[i].Name == need {
			needs[i].Message = message
		}
	}
	return v
}

// customized says that the add-on has a controller of its own that looks after its health.
func (v sampleCluster) customized(name string) sampleCluster {
	v.addOns[name].Status.HealthCheck.Mode = upstream.HealthCheckModeCustomized
	return v
}

// started says which plan was started last of the add-on's Instance.
func (v sampleCluster) started(name, plan string) sampleCluster {
	if v.instances == nil {
		v.instances = map[string]*kudo.Instance{}
	}
	v.instances[name] = &kudo.Instance{Status: kudo.InstanceStatus{Execution: &kudo.Execution{Plan: plan}}}
	return v
}

// edited says that the add-on's Instance was changed since its agent looked at it.
func (v sampleCluster) edited(name string) sampleCluster {
	v = v.started(name, kudo.DeployPlan)
	v.instances[name].Generation, v.instances[name].Status.ObservedGeneration = 2, 1
	v.instances[name].Status.Conditions = []metav1.Condition{condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, "")}
	return v
}

// plans says that Tandem runs the add-on.
func (v sampleCluster) plans(name string) sampleCluster {
	d := v.definitions[name]
	d.byPlans = true
	v.definitions[name] = d
	return v
}

// in says where an add-on is installed.
func (v sampleCluster) in(name, namespace string) sampleCluster {
	v.addOns[name].Spec.InstallNamespace = namespace
	return v
}

// hosted says that the add-on's agent runs on another cluster.
func (v sampleCluster) hosted(name string) sampleCluster {
	v.addOns[name].Annotations = map[string]string{upstream.HostingClusterNameAnnotationKey: "hosting"}
	return v
}

// annotated gives an add-on the annotation instead of the field.
func (v sampleCluster) annotated(name, text string) sampleCluster {
	v.definitions[name] = definitionOf(&addon.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: map[string]string{addon.AnnotationDependencies: text},
	}})
	return v
}

var (
	works         = condition(addon.ConditionAvailable, "True", addon.ReasonPlanComplete, "")
	fails         = condition(addon.ConditionAvailable, "False", "PlanFailed", "plan deploy: Deployment kafka/kafka: image not found.")
	missing       = condition(addon.ConditionAvailable, "False", "Unhealthy", "StatefulSet data/zookeeper: is missing")
	unhealthy     = condition(addon.ConditionAvailable, "False", "Unhealthy", "StatefulSet data/zookeeper: 0 of 3 pods ready")
	outOfTouch    = condition(addon.ConditionAvailable, "Unknown", addon.ReasonClusterLeaseStopped, "Registration agent stopped updating its lease.")
	noProbe       = condition(addon.ConditionAvailable, "Unknown", "ProbeUnavailable", "")
	held          = condition(addon.ConditionResolved, "False", addon.ReasonWaitingForDependencies, "waits for zookeeper")
	resolved      = condition(addon.ConditionResolved, "True", "Resolved", "")
	badParameters = condition(addon.ConditionResolved, "False", kudo.ReasonParametersInvalid, `parameter "X": value "two": want an integer, such as 3`)
	badConfig     = condition(addon.ConditionResolved, "False", addon.ReasonConfigurationInvalid, `variable "X" is not defined`)
	notThereYet   = condition(addon.ConditionAvailable, "False", addon.ReasonNotInstalled, "the add-on is not installed")
	notThereFor   = condition(addon.ConditionAvailable, "False", addon.ReasonNotInstalled, "the add-on is not installed: ConfigurationInvalid: "+badConfig.Message)
	diskFull      = condition(addon.ConditionDegraded, "True", "DiskFull", "5 % left.")
	verdictThen   = condition(addon.ConditionDegraded, "True", addon.ReasonRequiredDependencyNotSatisfied,
		"Required addon 'zookeeper' is not installed or not available.")
	heldBack = condition(addon.ConditionAvailable, "False", addon.ReasonRequiredDependencyNotSatisfied,
		"Required addon 'zookeeper' is not installed or not available.")
)

func TestTreeText(t *testing.T) {
	shop := func() sampleCluster {
		return defined("shop: kafka monitoring? search", "kafka: zookeeper", "search: zookeeper kafka", "zookeeper:", "monitoring:", "lonely:")
	}
	for name, tc := range map[string]struct {
		view  sampleCluster
		roots []string
	}{
		"tree-healthy": {view: shop().with("shop", works).with("kafka", works).with("search", works).with("zookeeper", works).
			with("monitoring", works).with("lonely", works)},
		"tree-every-state": {view: defined("top: failing silent none absent deleting unknown optional?", "failing:", "silent:", "absent:",
			"deleting:", "unknown:", "optional: absent?").with("top", works).with("failing", fails).with("silent").with("deleting", works).
			with("unknown", noProbe).with("optional", works).deleting("deleting").judged()},
		"tree-one-add-on":        {view: shop().with("shop", works).with("kafka", works).judged(), roots: []string{"kafka"}},
		"tree-not-installed":     {view: shop(), roots: []string{"shop"}},
		"tree-nothing-installed": {view: shop()},
		"tree-over-an-absent-one": {view: defined("monitor: shop", "shop: portal", "portal: auth", "auth:").with("monitor", works).
			with("portal", works).with("auth", works).judged()},
		"tree-circle": {view: defined("shop: a", "a: b", "b: a? c", "c:").with("shop", works).with("a", works).with("b", works).with("c", works).judged()},
		"tree-circles-without-a-root": {view: defined("a: b", "b: c", "c: b", "d: a", "a: d b", "e: e").with("a", works).with("b", works).
			with("c", works).with("d", works).with("e", works)},
		"tree-out-of-touch": {view: defined("a: b c", "b:", "c:").with("a", outOfTouch,
			condition(addon.ConditionDegraded, "True", addon.ReasonRequiredDependencyNotSatisfied, "Required addon 'c' is not installed or not available."),
		).with("b", outOfTouch).with("c", outOfTouch)},
		"tree-malformed": {view: defined("a: b", "b:").with("a", works).with("b", works).annotated("b", "{")},
		"tree-a-name-that-is-no-word": {view: defined("a:").with("a", works).
			annotated("a", `[{"name":"two words"},{"name":"\u001b[31m"},{"name":"tab\there"}]`)},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, treeOf(tc.view.clusterView, tc.roots).text()) })
	}
}

// TestTreeShowsEverythingInstalled holds the roots of all graphs of three add-ons, of which any may be absent, against what is to
// be shown.
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
			view := defined(lines...)
			for i, name := range names {
				if there>>i&1 != 0 {
					view.with(name)
				}
			}
			checkRoots(t, view, lines)
		}
	}
}

// checkRoots checks that what is installed is reached from the roots, and that no root is reached from another one.
func checkRoots(t *testing.T, view sampleCluster, lines []string) {
	t.Helper()
	roots, reached := treeRoots(view.clusterView), map[string]bool{}
	for _, root := range roots {
		below := map[string]bool{}
		reachable(view.clusterView, root, below)
		for _, other := range roots {
			if other != root && below[other] {
				t.Errorf("%v on %v: of the roots %v, %s leads to %s", lines, view.installed(), roots, root, other)
			}
		}
		maps.Copy(reached, below)
	}
	for _, name := range view.installed() {
		if !reached[name] {
			t.Errorf("%v on %v: roots %v do not show %s", lines, view.installed(), roots, name)
		}
	}
}

func TestWhyText(t *testing.T) {
	chain := func() sampleCluster { return defined("shop: kafka", "kafka: zookeeper", "zookeeper:") }
	for name, view := range map[string]sampleCluster{
		"why-healthy":           chain().with("shop", works).with("kafka", works).with("zookeeper", works).judged(),
		"why-healthy-alone":     defined("shop:").with("shop", works),
		"why-not-installed":     chain(),
		"why-not-installed-top": chain().with("kafka", works).with("zookeeper", works),
		"why-chain-end-not-installed": chain().saying("shop", "kafka", "Orders are not taken").
			with("shop", works).with("kafka", works).judged(),
		"why-chain-end-fails":     chain().with("shop", works).with("kafka", works).with("zookeeper", fails, resolved).judged(),
		"why-chain-end-lease":     chain().with("shop", works).with("kafka", works).with("zookeeper", noProbe).judged(),
		"why-chain-end-silent":    chain().with("shop", works).with("kafka", works).with("zookeeper").judged(),
		"why-chain-end-deleting":  chain().with("shop", works).with("kafka", works).with("zookeeper", works).deleting("zookeeper", "x/y").judged(),
		"why-chain-end-unknown":   defined("shop: kafka", "kafka: zookeper").with("shop", works).with("kafka", works).judged(),
		"why-chain-end-config":    chain().with("shop", works).with("kafka", works).with("zookeeper", notThereYet, badConfig).judged(),
		"why-chain-end-recovers":  chain().with("shop", works).with("kafka", heldBack).with("zookeeper", works).judged(),
		"why-chain-end-malformed": chain().with("shop", works).with("kafka", heldBack).annotated("kafka", "{").judged(),
		"why-chain-end-not-installed-plans": chain().plans("zookeeper").with("shop", works).with("kafka", works).in("shop", "web").
			in("kafka", "data").judged(),
		"why-chain-end-missing": chain().with("shop", works).with("kafka", works).with("zookeeper", missing, resolved).started("zookeeper", "backup").judged(),
		"why-chain-end-failed":  chain().with("shop", works).with("kafka", works).with("zookeeper", fails, resolved).started("zookeeper", "upgrade").judged(),
		"why-missing":           defined("shop:").with("shop", missing, resolved).started("shop", "deploy"),
		"why-unhealthy":         defined("shop:").with("shop", unhealthy, resolved).started("shop", "deploy"),
		"why-two-causes": defined("shop: kafka search", "kafka: zookeeper", "search:", "zookeeper:").
			with("shop", works).with("kafka", works).with("search", fails).judged(),
		"why-waiting":          chain().with("shop", notThereYet, held).with("kafka", works).with("zookeeper", works).deleting("kafka").judged(),
		"why-config":           defined("shop:").with("shop", notThereYet, badConfig),
		"why-change-held-up":   defined("shop:").with("shop", works, badParameters),
		"why-change-unseen":    defined("shop:").with("shop", works, resolved).edited("shop"),
		"why-config-available": defined("shop:").with("shop", works, badConfig),
		"why-said-once":        defined("shop:").with("shop", notThereFor, badConfig),
		"why-fails":            defined("shop:").with("shop", fails, resolved),
		"why-fails-lease":      defined("shop:").with("shop", fails),
		"why-silent":           defined("shop:").with("shop"),
		"why-deleting":         chain().with("shop", works).deleting("shop", "a/b", "c/d"),
		"why-agent-deleting": defined("shop:").with("shop", condition(addon.ConditionAddOnsRemaining, "True", addon.ReasonWaitingForRemoval,
			"addon-agent stays on the cluster for add-on kafka")).deleting("shop", addon.FinalizerAgent),
		"why-degraded-optional":            defined("shop: monitoring?", "monitoring:").saying("shop", "monitoring", "There are no graphs.").with("shop", works).judged(),
		"why-degraded-own":                 defined("shop:").with("shop", works, diskFull),
		"why-circle":                       defined("shop: kafka", "kafka: zookeeper", "zookeeper: shop").with("shop", works).with("kafka", works).with("zookeeper", works).judged(),
		"why-circle-optional":              defined("shop: kafka?", "kafka: shop").with("shop", works).with("kafka", works).judged(),
		"why-circle-itself":                defined("shop: shop").with("shop", works).judged(),
		"why-below-a-circle":               defined("shop: a", "a: b", "b: a").with("shop", works).with("a", works).with("b", works).judged(),
		"why-out-of-touch":                 chain().with("shop", outOfTouch).with("kafka", outOfTouch).with("zookeeper", outOfTouch),
		"why-out-of-touch-held":            defined("shop: zookeeper", "zookeeper:").with("shop", outOfTouch, verdictThen).with("zookeeper", outOfTouch),
		"why-hub-behind":                   defined("shop: zookeeper", "zookeeper:").with("shop", works),
		"why-hub-behind-again":             defined("shop: zookeeper", "zookeeper:").with("shop", heldBack, verdictThen).with("zookeeper", works),
		"why-agent-behind":                 defined("shop: zookeeper", "zookeeper:").with("shop", heldBack).with("zookeeper", works),
		"why-agent-behind-plans":           defined("shop: zookeeper", "zookeeper:").with("shop", heldBack, resolved).with("zookeeper", works),
		"why-agent-behind-hosted":          defined("shop: zookeeper", "zookeeper:").with("shop", heldBack).with("zookeeper", works).hosted("shop"),
		"why-agent-behind-customized":      defined("shop: zookeeper", "zookeeper:").with("shop", heldBack).with("zookeeper", works).customized("shop"),
		"why-agent-behind-optional":        defined("shop: zookeeper?", "zookeeper:").with("shop", heldBack).judged().customized("shop"),
		"why-agent-behind-silent":          defined("shop: zookeeper", "zookeeper:").with("shop", verdictThen),
		"why-chain-end-recovers-custom":    chain().with("shop", works).with("kafka", heldBack).with("zookeeper", works).customized("kafka").judged(),
		"why-chain-end-malformed-fails":    chain().with("shop", works).with("kafka", fails).annotated("kafka", "{").judged(),
		"why-shared":                       defined("shop: kafka search?", "kafka: zookeeper", "search: zookeeper", "zookeeper:").with("shop", works).with("kafka", works).with("search", works).judged(),
		"why-circle-required-and-optional": defined("shop: a b?", "a: b", "b: a").with("shop", works).with("a", works).with("b", works).judged(),
		"why-malformed-available":          defined("shop:").with("shop", works).annotated("shop", "{"),
		"why-malformed-waiting":            defined("shop:").with("shop", notThereYet, held).annotated("shop", "{"),
		"why-undefined":                    defined().with("shop").customized("shop"),
		"why-undefined-available":          defined().with("shop", works),
		"why-chain-end-undefined":          defined("shop: kafka").with("shop", works).with("kafka", fails).judged(),
		"why-agent-behind-true":            defined("shop: zookeeper", "zookeeper:").with("shop", works, verdictThen),
		"why-malformed":                    defined("shop:").with("shop", heldBack, verdictThen).annotated("shop", `[{"name":"zookeeper","type":"Nice"}]`),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, explained(view.clusterView, "shop").text()) })
	}
}

// TestWhyBreaksACircleInOnePlace asks all members: whoever follows the advice of each removes one dependency, not one each.
func TestWhyBreaksACircleInOnePlace(t *testing.T) {
	for want, lines := range map[string][]string{
		"kubectl edit clustermanagementaddon kafka":     {"shop: kafka", "kafka: zookeeper", "zookeeper: shop"},
		"kubectl edit clustermanagementaddon zookeeper": {"shop: kafka", "kafka: zookeeper", "zookeeper: shop?"},
	} {
		for _, name := range []string{"shop", "kafka", "zookeeper"} {
			view := defined(lines...).with("shop", works).with("kafka", works).with("zookeeper", works).judged()
			if text := explained(view.clusterView, name).text(); !strings.HasSuffix(text, "\n\n  "+want+"\n") {
				t.Errorf("%v: want %q of %s, got\n%s", lines, want, name, text)
			}
		}
	}
}

func TestDependentsText(t *testing.T) {
	needs := map[string][]addon.AddonDependency{}
	for _, line := range []string{
		"kafka: zookeeper", "search: zookeeper", "shop: kafka monitoring?", "portal: shop search", "monitoring: zookeeper?", "nowhere: kafka",
	} {
		d := define(line)
		needs[d.Name] = d.Spec.Dependencies
	}
	all := map[string]bool{"zookeeper": true, "kafka": true, "search": true, "shop": true, "portal": true, "monitoring": true}
	fleet := map[string]map[string]bool{
		"cluster1": all, "cluster2": all, "cluster3": all, "cluster4": all,
		"cluster5": {"zookeeper": true, "kafka": true, "shop": true, "portal": true},
		"cluster6": {"kafka": true},
		"cluster7": {"zookeeper": true, "portal": true},
	}
	malformed := "{"
	_, fault := dependency.Declared(&addon.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: "other", Annotations: map[string]string{addon.AnnotationDependencies: malformed},
	}})
	for name, tc := range map[string]struct {
		view dependentsView
		wide bool
	}{
		"dependents":           {view: dependentsView{addOn: "zookeeper", there: fleet}},
		"dependents-wide":      {view: dependentsView{addOn: "zookeeper", there: fleet}, wide: true},
		"dependents-of-nobody": {view: dependentsView{addOn: "portal", there: fleet}},
		"dependents-malformed": {view: dependentsView{addOn: "monitoring", there: fleet, malformed: []error{fault}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.direct = dependency.Direct(needs)
			golden(t, name, dependentsOf(tc.view).text(tc.wide))
		})
	}
}

func TestClusterViewLacks(t *testing.T) {
	view := defined("shop:", "kafka:").with("kafka").with("odd")
	for name, want := range map[string]string{
		"shop": "<nil>", "odd": "<nil>",
		"other": `there is no add-on "other"; add-ons of cluster "cluster1": kafka, odd; ClusterManagementAddOns: kafka, shop`,
	} {
		if diff := cmp.Diff(want, fmt.Sprint(view.lacks(name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
