package hub

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	addonv1beta1 "github.com/tandem-addons/tandem/pkg/api/addon/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("The add-on API", func() {
	var (
		f       fleet
		cluster string
		newer   client.WithWatch // a client of v1beta1, like addon-framework
	)
	v1alpha1, v1beta1 := addonv1alpha1.GroupVersion, addonv1beta1.GroupVersion

	// object returns an object of the fleet, named a; its body is YAML.
	object := func(version schema.GroupVersion, kind, body string) *unstructured.Unstructured {
		GinkgoHelper()
		made := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(body), &made.Object)).To(Succeed())
		made.SetGroupVersionKind(version.WithKind(kind))
		made.SetName(f.nameOf("a"))
		if kind != "ClusterManagementAddOn" {
			made.SetNamespace(cluster)
		}
		return made
	}
	// apply applies an object, or its status if it has one, as a writer named after the version. The object is set to the stored state.
	apply := func(ctx context.Context, object *unstructured.Unstructured) error {
		writer, configuration := client.FieldOwner(object.GroupVersionKind().Version), client.ApplyConfigurationFromUnstructured(object)
		if _, found := object.Object["status"]; found {
			return server.SubResource("status").Apply(ctx, configuration, writer)
		}
		return server.Apply(ctx, configuration, writer)
	}

	// into sets the install namespace.
	into := func(namespace string) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(addOn *addonv1alpha1.ManagedClusterAddOn) { addOn.Spec.InstallNamespace = namespace }
	}

	BeforeEach(func(ctx SpecContext) {
		scheme := runtime.NewScheme()
		Expect(addonv1beta1.AddToScheme(scheme)).To(Succeed())
		var err error
		newer, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		converts(ctx)
	})

	It("is the same definition in both versions, whichever it is written in", func(ctx SpecContext) {
		Expect(server.Create(ctx, object(v1alpha1, "ClusterManagementAddOn", `spec:
  addOnMeta: {displayName: A}
  supportedConfigs:
  - {group: kudo.dev, resource: operatorversions, defaultConfig: {namespace: packages, name: a-1.0.0}}
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs}
  dependencies: [{name: b}, {name: c, type: Optional, message: No graphs.}]`))).To(Succeed())
		needs := []addonv1alpha1.AddonDependency{
			{Name: "b", Type: addonv1alpha1.DependencyTypeRequired},
			{Name: "c", Type: addonv1alpha1.DependencyTypeOptional, Message: "No graphs."},
		}
		key := client.ObjectKey{Name: f.nameOf("a")}

		seen := &addonv1beta1.ClusterManagementAddOn{}
		Expect(newer.Get(ctx, key, seen)).To(Succeed())
		Expect(seen.Spec.Dependencies).To(Equal(needs))
		Expect(seen.Spec.DefaultConfigs).To(Equal([]upstreamv1beta1.AddOnConfig{
			{
				ConfigGroupResource: upstreamv1beta1.ConfigGroupResource{Group: "kudo.dev", Resource: "operatorversions"},
				ConfigReferent:      upstreamv1beta1.ConfigReferent{Namespace: "packages", Name: "a-1.0.0"},
			},
			{
				ConfigGroupResource: upstreamv1beta1.ConfigGroupResource{
					Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs",
				},
				ConfigReferent: upstreamv1beta1.ConfigReferent{Name: upstreamv1beta1.ReservedNoDefaultConfigName},
			},
		}))

		Expect(environment.Edit(ctx, newer, seen, func(d *addonv1beta1.ClusterManagementAddOn) {
			d.Spec.AddOnMeta.DisplayName = "Another"
			d.Spec.Dependencies = append(d.Spec.Dependencies, addonv1alpha1.AddonDependency{Name: "d"})
		})).To(Succeed())
		stored := &addonv1alpha1.ClusterManagementAddOn{}
		Expect(server.Get(ctx, key, stored)).To(Succeed())
		Expect(stored.Spec.AddOnMeta.DisplayName).To(Equal("Another"))
		Expect(stored.Spec.Dependencies).To(Equal(append(needs,
			addonv1alpha1.AddonDependency{Name: "d", Type: addonv1alpha1.DependencyTypeRequired})))
		Expect(stored.Spec.SupportedConfigs).To(HaveLen(2))
		Expect(stored.Spec.SupportedConfigs[0].DefaultConfig.Name).To(Equal("a-1.0.0"))
		Expect(stored.Spec.SupportedConfigs[1].DefaultConfig).To(BeNil())
	})

	It("has no object that etcd stores and v1beta1 lacks, because its conversion takes too much memory", Serial, func(ctx SpecContext) {
		const many = 500_000 // almost 1.5 MiB
		config := object(v1alpha1, "AddOnDeploymentConfig", "spec: {nodePlacement: {tolerations: [{}"+strings.Repeat(",{}", many-1)+"]}}")
		seen := &addonv1beta1.AddOnDeploymentConfig{}
		Eventually(func(ctx SpecContext) error { // on a busy machine, a request of this size may take longer than the API server permits
			if err := client.IgnoreAlreadyExists(server.Create(ctx, config.DeepCopyObject().(client.Object))); err != nil {
				return err
			}
			return newer.Get(ctx, client.ObjectKeyFromObject(config), seen)
		}).WithContext(ctx).WithTimeout(5 * time.Minute).Should(Succeed())
		Expect(seen.Spec.NodePlacement.Tolerations).To(HaveLen(many))
		Expect(server.Delete(ctx, config)).To(Succeed())
	})

	It("judges dependencies that are declared in v1beta1", func(ctx SpecContext) {
		Expect(server.Create(ctx, object(v1beta1, "ClusterManagementAddOn", `spec: {dependencies: [{name: b}]}`))).To(Succeed())
		a := f.enable(ctx, cluster, "a")
		Eventually(conditionOf(a, "Degraded")).WithContext(ctx).Should(HaveField("Reason", "RequiredDependencyNotSatisfied"))
	})

	It("keeps dependencies where the status is written in v1beta1", func(ctx SpecContext) {
		definition := f.define(ctx, "a", f.withNeeds(addonv1alpha1.AddonDependency{Name: "b", Message: "No storage"}))
		seen := &addonv1beta1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}}
		Expect(environment.EditStatus(ctx, newer, seen, func(d *addonv1beta1.ClusterManagementAddOn) {
			d.Status.DefaultConfigReferences = []upstreamv1beta1.DefaultConfigReference{{
				ConfigGroupResource: upstreamv1beta1.ConfigGroupResource{Group: "kudo.dev", Resource: "operatorversions"},
				DesiredConfig:       &upstreamv1beta1.ConfigSpecHash{ConfigReferent: upstreamv1beta1.ConfigReferent{Name: "a-1.0.0"}, SpecHash: "hash"},
			}}
		})).To(Succeed())
		Expect(newer.Status().Patch(ctx, seen, client.RawPatch("application/merge-patch+json", []byte(
			`{"status":{"installProgressions":[{"namespace":"default","name":"all"}]}}`)))).To(Succeed())

		stored := get(ctx, definition)
		Expect(stored.Spec).To(Equal(definition.Spec))
		Expect(stored.Generation).To(Equal(definition.Generation))
		Expect(stored.Status.DefaultConfigReferences).To(HaveLen(1))
		Expect(stored.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash).To(Equal("hash"))
		Expect(stored.Status.InstallProgressions).To(HaveLen(1))
	})

	DescribeTable("is at rest while writers of both versions apply",
		func(ctx SpecContext, kind, older, newer string, merged map[string]any) {
			if kind == "ManagedClusterAddOn" {
				f.enable(ctx, cluster, "a", into("streams"))
			}
			both := func() []string {
				GinkgoHelper()
				first, second := object(v1alpha1, kind, older), object(v1beta1, kind, newer)
				Expect(apply(ctx, first)).To(Succeed())
				Expect(apply(ctx, second)).To(Succeed())
				return []string{first.GetResourceVersion(), second.GetResourceVersion()}
			}
			both()
			at := both()
			Expect(at[0]).To(Equal(at[1]))
			Expect(both()).To(Equal(at))

			stored := object(v1alpha1, kind, `{}`)
			Expect(server.Get(ctx, client.ObjectKeyFromObject(stored), stored)).To(Succeed())
			for section, fields := range merged {
				for field, value := range fields.(map[string]any) {
					Expect(stored.Object[section]).To(HaveKeyWithValue(field, value))
				}
			}
		},
		Entry("a dependency each", "ClusterManagementAddOn",
			`spec: {dependencies: [{name: b}]}`, `spec: {dependencies: [{name: c, type: Optional, message: ""}]}`,
			map[string]any{"spec": map[string]any{"dependencies": []any{
				map[string]any{"name": "b", "type": "Required"},
				map[string]any{"name": "c", "type": "Optional", "message": ""},
			}}}),
		Entry("definitions with nothing in them", "ClusterManagementAddOn",
			`spec: {dependencies: [], supportedConfigs: [], addOnMeta: {}}`, `spec: {dependencies: [], defaultConfigs: []}`,
			map[string]any{"spec": map[string]any{"dependencies": []any{}, "supportedConfigs": []any{}}}),
		Entry("a configuration each", "ClusterManagementAddOn",
			`spec: {supportedConfigs: [{group: kudo.dev, resource: operatorversions}]}`,
			`spec: {defaultConfigs: [{group: "", resource: configmaps, namespace: packages, name: a}]}`,
			map[string]any{"spec": map[string]any{"supportedConfigs": []any{
				map[string]any{"group": "kudo.dev", "resource": "operatorversions"},
				map[string]any{"group": "", "resource": "configmaps", "defaultConfig": map[string]any{"namespace": "packages", "name": "a"}},
			}}}),
		Entry("an install namespace and no configurations", "ManagedClusterAddOn",
			`spec: {installNamespace: streams}`, `spec: {configs: []}`,
			map[string]any{"spec": map[string]any{"installNamespace": "streams", "configs": []any{}}}),
		Entry("a condition each, references and registrations", "ManagedClusterAddOn",
			`status:
  registrations:
  - {signerName: kubernetes.io/kube-apiserver-client}
  - {signerName: example.com/signer, subject: {organizationUnit: [x]}}
  kubeClientDriver: csr
  conditions: [{type: Configured, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
			`status:
  relatedObjects: []
  configReferences:
  - {group: kudo.dev, resource: operatorversions, lastObservedGeneration: 1, desiredConfig: {name: a-1.0.0, specHash: hash}}
  conditions: [{type: Progressing, status: "False", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`,
			map[string]any{"status": map[string]any{
				"relatedObjects":   []any{},
				"kubeClientDriver": "csr",
				"registrations": []any{
					map[string]any{"signerName": "kubernetes.io/kube-apiserver-client"},
					map[string]any{"signerName": "example.com/signer", "subject": map[string]any{"organizationUnit": []any{"x"}}},
				},
				"configReferences": []any{map[string]any{
					"group": "kudo.dev", "resource": "operatorversions", "lastObservedGeneration": int64(1),
					"name": "a-1.0.0", "desiredConfig": map[string]any{"name": "a-1.0.0", "specHash": "hash"},
				}},
			}}),
		Entry("a variable each, into the namespace that a template names", "AddOnDeploymentConfig",
			`spec: {agentInstallNamespace: "", customizedVariables: [{name: A, value: a}]}`,
			`spec: {agentInstallNamespace: "", customizedVariables: [{name: B, value: ""}]}`,
			map[string]any{"spec": map[string]any{
				"agentInstallNamespace": "",
				"customizedVariables": []any{
					map[string]any{"name": "A", "value": "a"}, map[string]any{"name": "B", "value": ""},
				},
			}}),
	)

	It("keeps the install namespace where add-ons are written in v1beta1", func(ctx SpecContext) {
		a := f.enable(ctx, cluster, "a", into("streams"), func(addOn *addonv1alpha1.ManagedClusterAddOn) {
			addOn.Annotations = map[string]string{"mine": "x"}
		})
		seen := &addonv1beta1.ManagedClusterAddOn{}
		Expect(newer.Get(ctx, client.ObjectKeyFromObject(a), seen)).To(Succeed())
		Expect(seen.Annotations).To(Equal(map[string]string{"mine": "x", upstreamv1beta1.InstallNamespaceAnnotation: "streams"}))

		Expect(environment.Edit(ctx, newer, seen, func(a *addonv1beta1.ManagedClusterAddOn) {
			a.Spec.Configs = []upstreamv1beta1.AddOnConfig{{
				ConfigGroupResource: upstreamv1beta1.ConfigGroupResource{Resource: "configmaps"}, ConfigReferent: upstreamv1beta1.ConfigReferent{Name: "x"},
			}}
		})).To(Succeed())
		stored := get(ctx, a)
		Expect(stored.Annotations).To(Equal(map[string]string{"mine": "x"}))
		Expect(stored.Spec.InstallNamespace).To(Equal("streams"))
		Expect(stored.Spec.Configs).To(HaveLen(1))
	})

	It("shows metadata in v1beta1, which garbage collection reads", func(ctx SpecContext) {
		definition := f.define(ctx, "a", nil)
		a := f.enable(ctx, cluster, "a", func(addOn *addonv1alpha1.ManagedClusterAddOn) {
			addOn.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1alpha1.String(), Kind: "ClusterManagementAddOn", Name: definition.Name, UID: definition.UID,
			}}
		})
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1beta1.WithKind("ManagedClusterAddOnList"))
		Expect(server.List(ctx, list, client.InNamespace(cluster))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].UID).To(Equal(a.UID))
		Expect(list.Items[0].OwnerReferences).To(Equal(a.OwnerReferences))
	})

	It("shows what is written in v1alpha1 to who watches v1beta1", func(ctx SpecContext) {
		watcher, err := newer.Watch(ctx, &addonv1beta1.ManagedClusterAddOnList{}, client.InNamespace(cluster))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(watcher.Stop)
		a := f.enable(ctx, cluster, "a", into("streams"))
		var event watch.Event
		Eventually(watcher.ResultChan()).WithContext(ctx).Should(Receive(&event))
		Expect(event.Type).To(Equal(watch.Added))
		Expect(event.Object.(*addonv1beta1.ManagedClusterAddOn).UID).To(Equal(a.UID))
		Expect(event.Object.(*addonv1beta1.ManagedClusterAddOn).Annotations).To(
			HaveKeyWithValue(upstreamv1beta1.InstallNamespaceAnnotation, "streams"))
	})

	It("stays usable in v1alpha1 while no webhook converts, reports the problem in v1beta1, and recovers", func(ctx SpecContext) {
		older, kind := f.enable(ctx, cluster, "a", into("streams")), "ManagedClusterAddOn"
		stopHub()

		By("reading and writing v1alpha1")
		setCondition(ctx, older, "administrator", metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "R"})
		applied := func() error { return apply(ctx, object(v1alpha1, kind, `spec: {installNamespace: streams}`)) }
		Expect(applied()).To(Succeed())
		Expect(get(ctx, older).Status.Conditions).To(HaveLen(1))
		another := f.enable(ctx, cluster, "another")
		Expect(server.Delete(ctx, another)).To(Succeed())

		By("reading and writing v1beta1")
		refused := MatchError(MatchRegexp(
			"conversion webhook for addon.open-cluster-management.io/.*, Kind=ManagedClusterAddOn failed: .*connection refused"))
		labelled := func() error { return apply(ctx, object(v1beta1, kind, `metadata: {labels: {mine: x}}`)) }
		read := func() error {
			return newer.Get(ctx, client.ObjectKeyFromObject(older), &addonv1beta1.ManagedClusterAddOn{})
		}
		Eventually(read).WithContext(ctx).Should(refused, "the first request may meet a connection that the hub has closed")
		Eventually(labelled).WithContext(ctx).Should(refused)

		By("serving the webhooks again")
		_, stopHub = runHub(withWebhooks)
		Eventually(labelled).WithContext(ctx).Should(Succeed())
		Expect(get(ctx, older).Labels).To(HaveKeyWithValue("mine", "x"))

		By("applying v1alpha1 to what a writer of v1beta1 has written, while no webhook converts and afterwards")
		stopHub()
		Eventually(applied).WithContext(ctx).Should(refused)
		_, stopHub = runHub(withWebhooks)
		Eventually(applied).WithContext(ctx).Should(Succeed())
	})
})
