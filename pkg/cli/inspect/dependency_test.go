package inspect

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/explanation"
	"github.com/tandem-addons/tandem/pkg/fleet"
)

func TestTreeText(t *testing.T) {
	shop := func() clitest.Cluster {
		return clitest.Defined("shop: kafka monitoring? search", "kafka: zookeeper", "search: zookeeper kafka", "zookeeper:", "monitoring:", "lonely:")
	}
	for name, tc := range map[string]struct {
		view  clitest.Cluster
		roots []string
	}{
		"tree-healthy": {view: shop().With("shop", clitest.Works).With("kafka", clitest.Works).With("search", clitest.Works).With("zookeeper", clitest.Works).
			With("monitoring", clitest.Works).With("lonely", clitest.Works)},
		"tree-every-state": {view: clitest.Defined("top: failing silent none absent deleting unknown optional?", "failing:", "silent:", "absent:",
			"deleting:", "unknown:", "optional: absent?").With("top", clitest.Works).With("failing", clitest.Fails).With("silent").With("deleting", clitest.Works).
			With("unknown", clitest.NoProbe).With("optional", clitest.Works).Deleting("deleting").Judged()},
		"tree-one-add-on":        {view: shop().With("shop", clitest.Works).With("kafka", clitest.Works).Judged(), roots: []string{"kafka"}},
		"tree-not-installed":     {view: shop(), roots: []string{"shop"}},
		"tree-nothing-installed": {view: shop()},
		"tree-over-an-absent-one": {view: clitest.Defined("monitor: shop", "shop: portal", "portal: auth", "auth:").With("monitor", clitest.Works).
			With("portal", clitest.Works).With("auth", clitest.Works).Judged()},
		"tree-cycle": {view: clitest.Defined("shop: a", "a: b", "b: a? c", "c:").With("shop", clitest.Works).With("a", clitest.Works).With("b", clitest.Works).With("c", clitest.Works).Judged()},
		"tree-cycles-without-a-root": {view: clitest.Defined("a: b", "b: c", "c: b", "d: a", "a: d b", "e: e").With("a", clitest.Works).With("b", clitest.Works).
			With("c", clitest.Works).With("d", clitest.Works).With("e", clitest.Works)},
		"tree-out-of-touch": {view: clitest.Defined("a: b c", "b:", "c:").With("a", clitest.OutOfTouch,
			clitest.Condition(addonv1alpha1.ConditionDegraded, "True", addonv1alpha1.ReasonRequiredDependencyNotSatisfied, "Required addon 'c' is not installed or not available."),
		).With("b", clitest.OutOfTouch).With("c", clitest.OutOfTouch)},
		"tree-malformed": {view: clitest.Defined("a: b", "b:").With("a", clitest.Works).With("b", clitest.Works).Annotated("b", "{")},
		"tree-a-name-that-is-no-word": {view: clitest.Defined("a:").With("a", clitest.Works).
			Annotated("a", `[{"name":"two words"},{"name":"\u001b[31m"},{"name":"tab\there"}]`)},
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
			view := clitest.Defined(lines...)
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
func checkRoots(t *testing.T, view clitest.Cluster, lines []string) {
	t.Helper()
	roots, reached := fleet.Roots(view.Cluster), map[string]bool{}
	for _, root := range roots {
		below := map[string]bool{}
		fleet.Reach(view.Cluster, root, below)
		for _, other := range roots {
			if other != root && below[other] {
				t.Errorf("%v on %v: of the roots %v, %s leads to %s", lines, view.Installed(), roots, root, other)
			}
		}
		maps.Copy(reached, below)
	}
	for _, name := range view.Installed() {
		if !reached[name] {
			t.Errorf("%v on %v: roots %v do not show %s", lines, view.Installed(), roots, name)
		}
	}
}

func TestWhyText(t *testing.T) {
	chain := func() clitest.Cluster { return clitest.Defined("shop: kafka", "kafka: zookeeper", "zookeeper:") }
	for name, view := range map[string]clitest.Cluster{
		"why-healthy":           chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Works).Judged(),
		"why-healthy-alone":     clitest.Defined("shop:").With("shop", clitest.Works),
		"why-not-installed":     chain(),
		"why-not-installed-top": chain().With("kafka", clitest.Works).With("zookeeper", clitest.Works),
		"why-chain-end-not-installed": chain().Saying("shop", "kafka", "Orders are not taken").
			With("shop", clitest.Works).With("kafka", clitest.Works).Judged(),
		"why-chain-end-fails":     chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Fails, clitest.Resolved).Judged(),
		"why-chain-end-lease":     chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.NoProbe).Judged(),
		"why-chain-end-silent":    chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper").Judged(),
		"why-chain-end-deleting":  chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Works).Deleting("zookeeper", "x/y").Judged(),
		"why-chain-end-unknown":   clitest.Defined("shop: kafka", "kafka: zookeper").With("shop", clitest.Works).With("kafka", clitest.Works).Judged(),
		"why-chain-end-config":    chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.NotThereYet, clitest.BadConfig).Judged(),
		"why-chain-end-recovers":  chain().With("shop", clitest.Works).With("kafka", clitest.HeldBack).With("zookeeper", clitest.Works).Judged(),
		"why-chain-end-malformed": chain().With("shop", clitest.Works).With("kafka", clitest.HeldBack).Annotated("kafka", "{").Judged(),
		"why-chain-end-not-installed-plans": chain().Plans("zookeeper").With("shop", clitest.Works).With("kafka", clitest.Works).In("shop", "web").
			In("kafka", "data").Judged(),
		"why-chain-end-missing": chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Missing, clitest.Resolved).Started("zookeeper", "backup").Judged(),
		"why-chain-end-failed":  chain().With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Fails, clitest.Resolved).Started("zookeeper", "upgrade").Judged(),
		"why-missing":           clitest.Defined("shop:").With("shop", clitest.Missing, clitest.Resolved).Started("shop", "deploy"),
		"why-unhealthy":         clitest.Defined("shop:").With("shop", clitest.Unhealthy, clitest.Resolved).Started("shop", "deploy"),
		"why-two-causes": clitest.Defined("shop: kafka search", "kafka: zookeeper", "search:", "zookeeper:").
			With("shop", clitest.Works).With("kafka", clitest.Works).With("search", clitest.Fails).Judged(),
		"why-waiting":          chain().With("shop", clitest.NotThereYet, clitest.Held).With("kafka", clitest.Works).With("zookeeper", clitest.Works).Deleting("kafka").Judged(),
		"why-config":           clitest.Defined("shop:").With("shop", clitest.NotThereYet, clitest.BadConfig),
		"why-change-held-up":   clitest.Defined("shop:").With("shop", clitest.Works, clitest.BadParameters),
		"why-change-unseen":    clitest.Defined("shop:").With("shop", clitest.Works, clitest.Resolved).Edited("shop"),
		"why-config-available": clitest.Defined("shop:").With("shop", clitest.Works, clitest.BadConfig),
		"why-config-ignored":   clitest.Defined("shop:").With("shop", clitest.Works, clitest.Remarked),
		"why-said-once":        clitest.Defined("shop:").With("shop", clitest.NotThereFor, clitest.BadConfig),
		"why-fails":            clitest.Defined("shop:").With("shop", clitest.Fails, clitest.Resolved),
		"why-fails-lease":      clitest.Defined("shop:").With("shop", clitest.Fails),
		"why-silent":           clitest.Defined("shop:").With("shop"),
		"why-deleting":         chain().With("shop", clitest.Works).Deleting("shop", "a/b", "c/d"),
		"why-agent-deleting": clitest.Defined("shop:").With("shop", clitest.Condition(addonv1alpha1.ConditionAddOnsRemaining, "True", addonv1alpha1.ReasonWaitingForRemoval,
			"addon-agent stays on the cluster for add-on kafka")).Deleting("shop", addonv1alpha1.FinalizerAgent),
		"why-degraded-optional":           clitest.Defined("shop: monitoring?", "monitoring:").Saying("shop", "monitoring", "There are no graphs.").With("shop", clitest.Works).Judged(),
		"why-degraded-own":                clitest.Defined("shop:").With("shop", clitest.Works, clitest.DiskFull),
		"why-cycle":                       clitest.Defined("shop: kafka", "kafka: zookeeper", "zookeeper: shop").With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Works).Judged(),
		"why-cycle-optional":              clitest.Defined("shop: kafka?", "kafka: shop").With("shop", clitest.Works).With("kafka", clitest.Works).Judged(),
		"why-cycle-itself":                clitest.Defined("shop: shop").With("shop", clitest.Works).Judged(),
		"why-below-a-cycle":               clitest.Defined("shop: a", "a: b", "b: a").With("shop", clitest.Works).With("a", clitest.Works).With("b", clitest.Works).Judged(),
		"why-out-of-touch":                chain().With("shop", clitest.OutOfTouch).With("kafka", clitest.OutOfTouch).With("zookeeper", clitest.OutOfTouch),
		"why-out-of-touch-held":           clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.OutOfTouch, clitest.VerdictThen).With("zookeeper", clitest.OutOfTouch),
		"why-hub-behind":                  clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.Works),
		"why-hub-behind-again":            clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.HeldBack, clitest.VerdictThen).With("zookeeper", clitest.Works),
		"why-agent-behind":                clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.HeldBack).With("zookeeper", clitest.Works),
		"why-agent-behind-plans":          clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.HeldBack, clitest.Resolved).With("zookeeper", clitest.Works),
		"why-agent-behind-hosted":         clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.HeldBack).With("zookeeper", clitest.Works).Hosted("shop"),
		"why-agent-behind-customized":     clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.HeldBack).With("zookeeper", clitest.Works).Customized("shop"),
		"why-agent-behind-optional":       clitest.Defined("shop: zookeeper?", "zookeeper:").With("shop", clitest.HeldBack).Judged().Customized("shop"),
		"why-agent-behind-silent":         clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.VerdictThen),
		"why-chain-end-recovers-custom":   chain().With("shop", clitest.Works).With("kafka", clitest.HeldBack).With("zookeeper", clitest.Works).Customized("kafka").Judged(),
		"why-chain-end-malformed-fails":   chain().With("shop", clitest.Works).With("kafka", clitest.Fails).Annotated("kafka", "{").Judged(),
		"why-shared":                      clitest.Defined("shop: kafka search?", "kafka: zookeeper", "search: zookeeper", "zookeeper:").With("shop", clitest.Works).With("kafka", clitest.Works).With("search", clitest.Works).Judged(),
		"why-cycle-required-and-optional": clitest.Defined("shop: a b?", "a: b", "b: a").With("shop", clitest.Works).With("a", clitest.Works).With("b", clitest.Works).Judged(),
		"why-malformed-available":         clitest.Defined("shop:").With("shop", clitest.Works).Annotated("shop", "{"),
		"why-malformed-waiting":           clitest.Defined("shop:").With("shop", clitest.NotThereYet, clitest.Held).Annotated("shop", "{"),
		"why-undefined":                   clitest.Defined().With("shop").Customized("shop"),
		"why-undefined-available":         clitest.Defined().With("shop", clitest.Works),
		"why-chain-end-undefined":         clitest.Defined("shop: kafka").With("shop", clitest.Works).With("kafka", clitest.Fails).Judged(),
		"why-agent-behind-true":           clitest.Defined("shop: zookeeper", "zookeeper:").With("shop", clitest.Works, clitest.VerdictThen),
		"why-malformed":                   clitest.Defined("shop:").With("shop", clitest.HeldBack, clitest.VerdictThen).Annotated("shop", `[{"name":"zookeeper","type":"Nice"}]`),
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, explanation.Of(view.Cluster, "shop").Text()) })
	}
}

// TestWhyBreaksACircleInOnePlace checks that the advice for all members of a cycle names the same dependency to remove.
func TestWhyBreaksACircleInOnePlace(t *testing.T) {
	for want, lines := range map[string][]string{
		"kubectl edit clustermanagementaddon kafka":     {"shop: kafka", "kafka: zookeeper", "zookeeper: shop"},
		"kubectl edit clustermanagementaddon zookeeper": {"shop: kafka", "kafka: zookeeper", "zookeeper: shop?"},
	} {
		for _, name := range []string{"shop", "kafka", "zookeeper"} {
			view := clitest.Defined(lines...).With("shop", clitest.Works).With("kafka", clitest.Works).With("zookeeper", clitest.Works).Judged()
			if text := explanation.Of(view.Cluster, name).Text(); !strings.HasSuffix(text, "\n\n  "+want+"\n") {
				t.Errorf("%v: want %q of %s, got\n%s", lines, want, name, text)
			}
		}
	}
}

func TestDependentsText(t *testing.T) {
	needs := map[string][]addonv1alpha1.AddonDependency{}
	for _, line := range []string{
		"kafka: zookeeper", "search: zookeeper", "shop: kafka monitoring?", "portal: shop search", "monitoring: zookeeper?", "nowhere: kafka",
	} {
		d := clitest.Define(line)
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
	_, problem := dependency.Declared(&addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: "other", Annotations: map[string]string{addonv1alpha1.AnnotationDependencies: malformed},
	}})
	for name, tc := range map[string]struct {
		view fleet.DependentsView
		wide bool
	}{
		"dependents":           {view: fleet.DependentsView{AddOn: "zookeeper", There: places}},
		"dependents-wide":      {view: fleet.DependentsView{AddOn: "zookeeper", There: places}, wide: true},
		"dependents-of-nobody": {view: fleet.DependentsView{AddOn: "portal", There: places}},
		"dependents-malformed": {view: fleet.DependentsView{AddOn: "monitoring", There: places, Malformed: []error{problem}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.Direct = dependency.Direct(needs)
			clitest.Golden(t, name, dependentsText(fleet.DependentsOf(tc.view), tc.wide))
		})
	}
}
