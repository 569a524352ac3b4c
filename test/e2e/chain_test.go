package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const (
	// depth is the number of plan-based add-ons in the chain, each requiring the next one.
	depth = 10
	// base is the add-on that the last of them requires, which another writer runs.
	base = "base"
)

var _ = Describe("A chain of ten add-ons, each requiring the next", Ordered, func() {
	var hub client.Client

	BeforeAll(func(ctx SpecContext) {
		hub = hubClient(newFleet(ctx, 1).hub)
		create(ctx, hub, linkPackage())
		for i := range depth {
			create(ctx, hub, linkDefinition(i))
			create(ctx, hub, newAddOn(link(i)))
		}
		create(ctx, hub, newAddOn(base))
	})

	It("waits for its end, and installs none before", func(ctx SpecContext) {
		setBase(ctx, hub, metav1.ConditionFalse)
		for i := range depth {
			Eventually(reason).WithContext(ctx).WithArguments(hub, link(i), addonv1alpha1.ConditionResolved).
				WithTimeout(timeout).WithPolling(interval).Should(Equal(addonv1alpha1.ReasonWaitingForDependencies))
		}
		for i := range depth {
			err := hub.Get(ctx, client.ObjectKeyFromObject(newAddOn(link(i))), &kudo.Instance{})
			Expect(err).To(MatchError(apierrors.IsNotFound, "not found"))
		}
	})

	It("is installed by plans from its end to its head", func(ctx SpecContext) {
		setBase(ctx, hub, metav1.ConditionTrue)
		expectAvailable(ctx, hub, metav1.ConditionTrue)
	})

	It("is not available from end to head once its end is not", func(ctx SpecContext) {
		setBase(ctx, hub, metav1.ConditionFalse)
		expectAvailable(ctx, hub, metav1.ConditionFalse)
	})

	It("is available again once its end is", func(ctx SpecContext) {
		setBase(ctx, hub, metav1.ConditionTrue)
		expectAvailable(ctx, hub, metav1.ConditionTrue)
	})
})

// create creates an object that is deleted after the specs, because a given hub outlives them.
func create(ctx context.Context, hub client.Client, object client.Object) {
	GinkgoHelper()
	Expect(hub.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed())
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(object), object) }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(MatchError(apierrors.IsNotFound, "not found"))
	})
}

// expectAvailable waits until the head of the chain has that status, and adds the duration to the report.
func expectAvailable(ctx context.Context, hub client.Client, status metav1.ConditionStatus) {
	GinkgoHelper()
	start := time.Now()
	Eventually(func(g Gomega) {
		condition, err := conditionOf(ctx, hub, link(0), addonv1alpha1.ConditionAvailable)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(condition.Status).To(Equal(status), condition.Message)
	}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval / 10).Should(Succeed())
	AddReportEntry("from end to head", time.Since(start).Round(time.Millisecond).String())
}

// link returns the name of an add-on of the chain, 0 at its head.
func link(i int) string { return fmt.Sprintf("link-%d", i) }

// linkDefinition returns a definition that requires the next link, or the base.
func linkDefinition(i int) *addonv1alpha1.ClusterManagementAddOn {
	next := base
	if i < depth-1 {
		next = link(i + 1)
	}
	version := linkPackage()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: link(i)}}
	definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: next, Type: addonv1alpha1.DependencyTypeRequired}}
	// For a given hub with OCM's definitions, which drop the field.
	definition.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: fmt.Sprintf(`[{"name": %q}]`, next)}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
	}}
	return definition
}

// linkPackage returns a package with a plan that creates one object.
func linkPackage() *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "link-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "link"},
			Version:  "1.0.0",
			Templates: map[string]string{
				"settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\n",
			},
			Tasks: []kudo.Task{{Name: "settings", Kind: "Apply", Spec: kudo.TaskSpec{
				ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"settings.yaml"}},
			}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{Name: "settings", Tasks: []string{"settings"}}},
			}}}},
		},
	}
}

// newAddOn returns an add-on on the sandbox's cluster.
func newAddOn(name string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "cluster1"}}
}

// setBase writes the status of the base on cluster1 as its own writer would.
func setBase(ctx context.Context, hub client.Client, status metav1.ConditionStatus) {
	GinkgoHelper()
	probe(ctx, hub, newAddOn(base), status)
}

// probe sets the availability of an add-on as its own writer would; OCM's controllers write its status too.
func probe(ctx context.Context, hub client.Client, target *addonv1alpha1.ManagedClusterAddOn, status metav1.ConditionStatus) {
	GinkgoHelper()
	Expect(environment.EditStatus(ctx, hub, target, func(a *addonv1alpha1.ManagedClusterAddOn) {
		a.Status.HealthCheck.Mode = upstream.HealthCheckModeCustomized
		meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
			Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: "Probed", Message: "as the test says",
		})
	})).To(Succeed())
}

// reason returns the reason of a condition of an add-on, or an empty string.
func reason(ctx context.Context, hub client.Client, name, conditionType string) (string, error) {
	condition, err := conditionOf(ctx, hub, name, conditionType)
	return condition.Reason, err
}

func conditionOf(ctx context.Context, hub client.Client, name, conditionType string) (metav1.Condition, error) {
	subject := newAddOn(name)
	if err := hub.Get(ctx, client.ObjectKeyFromObject(subject), subject); err != nil {
		return metav1.Condition{}, err
	}
	if condition := meta.FindStatusCondition(subject.Status.Conditions, conditionType); condition != nil {
		return *condition, nil
	}
	return metav1.Condition{}, nil
}

// hubClient returns an administrator's client for a hub.
func hubClient(config *rest.Config) client.Client {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(addonv1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}
