package browser

import (
	"context"
	"net/url"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// evil is a text that a user may write.
const evil = `"><script>window.taken=1</script><img src=x onerror="window.taken=1"><svg onload="window.taken=1">{{.}}` + "'`</title></textarea>-->javascript:window.taken=1"

// evilObjects returns a package, definitions, an add-on and an Instance with that text wherever the API server accepts it.
func evilObjects(cluster string) []client.Object {
	annotations := map[string]string{"evil": evil}
	version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: "evil", Annotations: annotations}}
	version.Spec.Operator, version.Spec.Version, version.Spec.AppVersion, version.Spec.ConnectionString = corev1.ObjectReference{Name: evil}, evil, evil, evil
	version.Spec.Parameters = []kudo.Parameter{{Name: evil, DisplayName: evil, Description: evil, Default: ptr.To(evil), Trigger: evil, Enum: []string{evil}}}
	version.Spec.Tasks = []kudo.Task{{Name: evil, Kind: kudo.TaskDummy}}
	version.Spec.Plans = map[string]kudo.Plan{evil: {Strategy: kudo.Serial, Phases: []kudo.Phase{
		{Name: evil, Strategy: kudo.Serial, Steps: []kudo.Step{{Name: evil, Tasks: []string{evil}}}},
	}}}
	operator := &kudo.Operator{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: "evil"}}
	operator.Spec.Maintainers, operator.Spec.Description, operator.Spec.URL = []kudo.Maintainer{{Name: evil, Email: evil}}, evil, evil
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "evil", Annotations: annotations}}
	definition.Spec.AddOnMeta.DisplayName, definition.Spec.AddOnMeta.Description = evil, evil
	definition.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}
	definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: "nowhere", Type: addonv1alpha1.DependencyTypeRequired, Message: evil}}
	malformed := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: "malformed", Annotations: map[string]string{addonv1alpha1.AnnotationDependencies: evil},
	}}
	malformed.Spec.InstallStrategy = definition.Spec.InstallStrategy
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "evil", Annotations: annotations}}
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "evil"}}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: "evil"}
	instance.Spec.Parameters = map[string]string{"A": evil, evil: evil}
	return []client.Object{version, operator, definition, malformed, addOn, instance}
}

// reportEvil sets the status of the add-on and of the Instance.
func reportEvil(ctx context.Context, cluster string) {
	GinkgoHelper()
	key := metav1.ObjectMeta{Namespace: cluster, Name: "evil"}
	Expect(environment.EditStatus(ctx, hub, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: key}, func(a *addonv1alpha1.ManagedClusterAddOn) {
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "Evil", Message: evil,
		})
	})).To(Succeed())
	status := kudo.PlanStatus{Name: evil, Status: kudo.InProgress, Message: evil, Phases: []kudo.PhaseStatus{{
		Name: evil, Status: kudo.InProgress, Message: evil, Steps: []kudo.StepStatus{{
			Name: evil, Status: kudo.InProgress, Message: evil, Tasks: []kudo.TaskStatus{{Name: evil, Status: kudo.InProgress, Message: evil}},
		}},
	}}}
	Expect(environment.EditStatus(ctx, hub, &kudo.Instance{ObjectMeta: key}, func(i *kudo.Instance) {
		i.Status.Execution = &kudo.Execution{UID: "1", Plan: evil, OperatorVersion: i.Spec.OperatorVersion}
		i.Status.PlanStatus = map[string]kudo.PlanStatus{evil: status}
		i.Status.Diagnosis = &kudo.Diagnosis{
			Request: "x", Time: metav1.Now(), Message: evil, Events: []kudo.DiagnosedEvent{{Object: evil, Reason: evil, Message: evil}},
			Pods: []kudo.DiagnosedPod{{
				Namespace: evil, Name: evil, Phase: evil, Ready: evil, Reason: evil, Image: evil, Logs: []kudo.DiagnosedLog{{Container: evil, Lines: []string{evil}}},
			}},
		}
		i.Status.Inventory = []kudo.InventoryEntry{{Group: "apps", Kind: "StatefulSet", Namespace: "kafka", Name: evil}}
		meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: "Evil", Message: evil})
	})).To(Succeed())
}

var _ = Describe("A text of a user", func() {
	It("never runs as a script, on any page", func(ctx context.Context) {
		for _, object := range evilObjects("cluster-12") {
			Expect(hub.Create(ctx, object)).To(Succeed(), "%T", object)
			DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed()) })
		}
		reportEvil(ctx, "cluster-12")
		address, gate := serve()
		page := tab()
		enter(page, address, gate)
		text := url.QueryEscape(evil)
		harmless := func(path string) {
			GinkgoHelper()
			const untaken = `window.taken === undefined && !document.querySelector("main script, main img, main [onload], main [onerror]")`
			Expect(chromedp.Run(page, chromedp.Evaluate[bool](untaken))).To(BeTrue(), path)
		}
		for path, shown := range map[string]bool{
			"/": false, "/?cluster=" + text + "&selector=" + text + "&reason=" + text + "&addon=" + text + "&state=" + text + "&alike=" + text: true,
			"/addons/evil": false, "/addons/malformed": false, "/clusters/cluster-12": false, "/clusters/cluster-12/addons/evil": true,
			"/packages": true, "/packages/addon-packages/evil": true, "/clusters/" + url.PathEscape(evil): false, "/clusters/cluster-12/instances/evil": true,
		} {
			open(page, address, path)
			harmless(path)
			if shown {
				Expect(chromedp.Run(page, chromedp.TextContent("main"))).To(ContainSubstring("window.taken=1"), path)
			}
		}

		open(page, address, "/clusters/cluster-12/instances/evil")
		Expect(chromedp.Run(page, chromedp.Evaluate[chromedp.Void](`document.querySelector("select[name=plan]").selectedIndex = 1`))).Error().NotTo(HaveOccurred())
		Expect(chromedp.Do(page, chromedp.Click(`//button[text()="Run…"]`), chromedp.WaitVisible("#effects"))).To(Succeed())
		Expect(chromedp.Run(page, chromedp.TextContent("main"))).To(ContainSubstring("window.taken=1"))
		harmless("the preview of a plan")
		open(page, address, "/clusters/cluster-12/instances/evil")
		Expect(chromedp.Do(page, chromedp.Click(`//button[starts-with(text(), "Cancel plan")]`), chromedp.WaitVisible("#effects"))).To(Succeed())
		harmless("the preview of a cancellation")
	})
})
