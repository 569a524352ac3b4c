package hub

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// decorate sets fields that the hub's cache lacks.
func decorate(addOn *addonv1alpha1.ManagedClusterAddOn) {
	addOn.Labels = map[string]string{"label": "kept"}
	addOn.Annotations = map[string]string{"annotation": "kept"}
	addOn.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "kept", UID: "kept"}}
	addOn.Finalizers = []string{"hub.test/held"}
}

// reportAsOCM sets status fields that the hub's cache lacks, as OCM does, with conditions before those of the hub.
func reportAsOCM(addOn *addonv1alpha1.ManagedClusterAddOn) {
	said := func(conditionType string) metav1.Condition {
		return metav1.Condition{
			Type: conditionType, Status: metav1.ConditionTrue, Reason: "Said", Message: "kept", LastTransitionTime: metav1.Now(),
		}
	}
	config := upstream.ConfigGroupResource{Group: "example.com", Resource: "things"}
	referent := upstream.ConfigReferent{Namespace: "n", Name: "thing"}
	addOn.Status = upstream.ManagedClusterAddOnStatus{
		Conditions:     []metav1.Condition{said("RegistrationApplied"), said("Progressing"), said(addonv1alpha1.ConditionAvailable)},
		RelatedObjects: []upstream.ObjectReference{{Group: "example.com", Resource: "things", Name: "kept"}},
		AddOnMeta:      upstream.AddOnMeta{DisplayName: "kept", Description: "kept"},
		ConfigReferences: []upstream.ConfigReference{{
			ConfigGroupResource: config, ConfigReferent: referent, LastObservedGeneration: 7,
			DesiredConfig:     &upstream.ConfigSpecHash{ConfigReferent: referent, SpecHash: "wanted"},
			LastAppliedConfig: &upstream.ConfigSpecHash{ConfigReferent: referent, SpecHash: "applied"},
		}},
		Namespace:     "kept",
		Registrations: []upstream.RegistrationConfig{{SignerName: "example.com/kept", Subject: upstream.Subject{User: "kept"}}},
	}
}

// others returns an add-on without what the hub writes, and without what the API server changes at every write.
func others(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) *addonv1alpha1.ManagedClusterAddOn {
	GinkgoHelper()
	current := get(ctx, addOn)
	current.ResourceVersion, current.ManagedFields = "", nil
	current.Finalizers = slices.DeleteFunc(current.Finalizers, func(f string) bool { return f == kudo.Finalizer })
	current.Status.HealthCheck = upstream.HealthCheck{}
	current.Status.Conditions = slices.DeleteFunc(current.Status.Conditions, func(c metav1.Condition) bool {
		return slices.Contains([]string{addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionDegraded, addonv1alpha1.ConditionResolved}, c.Type)
	})
	return current
}

var _ = Describe("The hub, whose cache lacks fields that it does not read", func() {
	var (
		f       fleet
		cluster string
	)
	BeforeEach(func(ctx SpecContext) {
		stopHub()
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
	})
	// prepared enables an add-on with those fields.
	prepared := func(ctx context.Context, name string) *addonv1alpha1.ManagedClusterAddOn {
		GinkgoHelper()
		addOn := f.enable(ctx, cluster, name, decorate)
		Expect(environment.EditStatus(ctx, server, addOn, reportAsOCM)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { edit(ctx, addOn, release) })
		return addOn
	}

	It("keeps them when it writes and removes a verdict, and when the agent's lease expires", func(ctx SpecContext) {
		f.define(ctx, "db", nil)
		f.define(ctx, "web", f.withNeeds(addonv1alpha1.AddonDependency{Name: "db"}))
		web := prepared(ctx, "web")
		before := others(ctx, web)
		runHub(withWebhooks, withLeaseTimeout)
		Eventually(conditionOf(web, "Degraded")).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(others(ctx, web)).To(Equal(before), "after a verdict")

		report(ctx, f.enable(ctx, cluster, "db"), metav1.ConditionTrue, "Works")
		Eventually(conditionOf(web, "Degraded")).WithContext(ctx).Should(Equal(none))
		Expect(others(ctx, web)).To(Equal(before), "after its removal")

		renew(ctx, cluster, addonv1alpha1.AgentLease)()
		Eventually(conditionOf(web, "Available")).WithContext(ctx).Should(HaveField("Status", "Unknown"))
		Expect(others(ctx, web)).To(Equal(before), "after the agent's lease expired")
	})

	It("keeps them when it installs, gives up and releases a plan-based add-on", func(ctx SpecContext) {
		definition := f.define(ctx, "kafka", nil)
		kafka := prepared(ctx, "kafka")
		unresolved := func(a *addonv1alpha1.ManagedClusterAddOn) { a.Status.ConfigReferences = nil } // OCM would name the version in them
		Expect(environment.EditStatus(ctx, server, kafka, unresolved)).To(Succeed())
		before := others(ctx, kafka)
		version := f.push(ctx, "kafka", packages)
		edit(ctx, definition, runs(version))
		runHub(withWebhooks)
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Status", "True"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		Expect(get(ctx, kafka).Finalizers).To(ConsistOf("hub.test/held", kudo.Finalizer))
		Expect(others(ctx, kafka)).To(Equal(before), "after the installation")

		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(func(g Gomega) { g.Expect(get(ctx, instanceOf(kafka)).DeletionTimestamp).NotTo(BeNil()) }).Should(Succeed())
		reportRemoved(ctx, instanceOf(kafka))
		Eventually(func() []string { return get(ctx, kafka).Finalizers }).Should(Equal([]string{"hub.test/held"}))
		after := others(ctx, kafka)
		after.DeletionTimestamp, after.DeletionGracePeriodSeconds, after.Generation = nil, nil, before.Generation
		Expect(after).To(Equal(before), "after its removal")
	})
})
