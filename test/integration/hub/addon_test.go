package hub

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("The add-on controller", func() {
	var (
		f       fleet
		cluster string
		version *kudo.OperatorVersion
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		version = f.push(ctx, "kafka", packages)
	})
	resolved := func(v *kudo.OperatorVersion) seen {
		return seen{"True", "Resolved", "OperatorVersion " + v.Namespace + "/" + v.Name}
	}

	It("gives an add-on its Instance, and follows the Instance's Resolved", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "kafka" })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))

		instance := get(ctx, instanceOf(kafka))
		Expect(instance.Spec.ChangedBy).To(HaveField("Kind", "ManagedClusterAddOn"))
		instance.Spec.ChangedBy = nil
		Expect(instance.Spec).To(Equal(kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: packages, Name: version.Name},
			Parameters:       map[string]string{},
			InstallNamespace: "kafka",
		}))
		Expect(metav1.GetControllerOf(instance).UID).To(Equal(kafka.UID))
		Expect(instance.Finalizers).To(Equal([]string{kudo.Finalizer}))
		current := get(ctx, kafka)
		Expect(current.Finalizers).To(Equal([]string{kudo.Finalizer}))
		Expect(current.Status.HealthCheck.Mode).To(Equal(upstream.HealthCheckModeCustomized))
	})

	It("installs nothing in a namespace that is no managed cluster's, until it is one", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		typo := f.nameOf("typo")
		makeNamespace(ctx, typo)
		kafka := f.enable(ctx, typo, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "ManagedClusterNotFound",
			`ManagedCluster "` + typo + `" does not exist or is being deleted: enable the add-on in the namespace of a managed cluster`}))
		Consistently(exists(instanceOf(kafka))).WithContext(ctx).Should(BeFalse())
		Expect(server.Create(ctx, managedCluster(typo))).To(Succeed())
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
	})

	It("installs once the Required dependencies are satisfied, and never takes that back", func(ctx SpecContext) {
		f.define(ctx, "kafka", both(runs(version), f.withNeeds(
			addonv1alpha1.AddonDependency{Name: "zookeeper"},
			addonv1alpha1.AddonDependency{Name: "graphs", Type: addonv1alpha1.DependencyTypeOptional})))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "WaitingForDependencies",
			"waiting for required add-ons to become available on the cluster: " + f.nameOf("zookeeper")}))
		zookeeper := f.enable(ctx, cluster, "zookeeper")
		waiting := get(ctx, kafka)
		report(ctx, zookeeper, metav1.ConditionFalse, "Starting")
		Consistently(exists(instanceOf(kafka))).WithContext(ctx).Should(BeFalse())
		Expect(conditionOf(kafka, "Resolved")(Default, ctx)).To(Equal(seenOf(waiting.Status.Conditions, "Resolved")))

		By("the dependency being available during an update, which does not degrade")
		report(ctx, zookeeper, metav1.ConditionTrue, addonv1alpha1.ReasonUpdating)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "WaitingForDependencies",
			"waiting for required add-ons to become available on the cluster: " + f.nameOf("zookeeper") + " (a plan updates it)"}))
		Eventually(conditionOf(kafka, "Degraded")).WithContext(ctx).ShouldNot(HaveField("Reason", "RequiredDependencyNotSatisfied"))
		Consistently(exists(instanceOf(kafka))).WithContext(ctx).Should(BeFalse())

		report(ctx, zookeeper, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))

		By("the dependency going away, and an update meanwhile")
		Expect(server.Delete(ctx, zookeeper)).To(Succeed())
		Eventually(conditionOf(kafka, "Degraded")).WithContext(ctx).ShouldNot(Equal(none))
		newer := f.push(ctx, "newer", packages)
		edit(ctx, kafka, withConfigs(newer))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(newer)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).OperatorVersion.Name).To(Equal(newer.Name))
	})

	It("does not install while the declaration of dependencies is malformed", func(ctx SpecContext) {
		runWithoutWebhooks()
		definition := f.define(ctx, "kafka", both(runs(version), withAnnotation(`{}`)))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "WaitingForDependencies"))
		Expect(exists(instanceOf(kafka))(Default, ctx)).To(BeFalse())

		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Annotations = nil })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
	})

	It("passes on the variables that the OperatorVersion defines, later ones winning, and names the others", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		first := f.variables(ctx, "first", cluster, "TEXT", "one", "COUNT", "2000000", "TYPO", "x")
		second := f.variables(ctx, "second", cluster, "TEXT", "two")
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(first, second))
		ignored := `variables that OperatorVersion "` + version.Name + `" does not define are ignored: TYPO`
		named := resolved(version)
		named.Message += "\n" + ignored
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(named))
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "two", "COUNT": "2000000"}))
		Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement("Warning ConfigurationIgnored: " + ignored))

		By("correcting the variables")
		edit(ctx, first, func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.CustomizedVariables = c.Spec.CustomizedVariables[:1]
		})
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "two"}))

		By("a value of the wrong type")
		edit(ctx, second, func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.CustomizedVariables = append(c.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: "COUNT", Value: "many"})
		})
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(
			HaveField("Reason", "ParametersInvalid"), HaveField("Message", ContainSubstring(`"COUNT"`))))

		By("taking all of them back")
		edit(ctx, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs = nil })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(BeEmpty())
	})

	It("takes parameters from labelled ConfigMaps, before variables, and follows them", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		long := strings.Repeat("a long line of a values file\n", 1000)
		variables := f.variables(ctx, "variables", cluster, "TEXT", "variable", "COUNT", "3")
		config := f.configMap(ctx, "values", cluster, "TEXT", long)
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(variables, config))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": long, "COUNT": "3"}))

		By("changing it")
		edit(ctx, config, func(c *corev1.ConfigMap) { c.Data["TEXT"] = "short" })
		Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Parameters", HaveKeyWithValue("TEXT", "short")))
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(Equal(resolved(version)))
		f.writesNothing(ctx, cluster)

		By("removing its label")
		edit(ctx, config, func(c *corev1.ConfigMap) { c.Labels = nil })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "ConfigurationNotFound",
			"ConfigMap " + cluster + "/" + config.Name + " does not exist, or has no label kudo.dev/configuration=true: create it with that label, " +
				"or remove it from the add-on's configs"}))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(HaveKeyWithValue("TEXT", "short"))

		By("labelling it again")
		edit(ctx, config, func(c *corev1.ConfigMap) {
			c.Labels, c.Data = map[string]string{kudo.LabelConfiguration: "true"}, map[string]string{"TEXT": "again"}
		})
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Parameters", HaveKeyWithValue("TEXT", "again")))

		By("deleting it")
		Expect(server.Delete(ctx, config)).To(Succeed())
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "ConfigurationNotFound"))
	})

	It("passes on the registries of the last AddOnDeploymentConfig that has any, and names an invalid one", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		first, second := f.variables(ctx, "first", cluster, "TEXT", "one"), f.variables(ctx, "second", cluster, "COUNT", "2")
		edit(ctx, first, func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.Registries = []upstream.ImageMirror{{Source: "quay.io", Mirror: "mirror.corp:5000/quay"}, {Mirror: "all.corp"}}
		})
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(first, second))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		registries := []kudo.ImageRegistry{{Source: "quay.io", Mirror: "mirror.corp:5000/quay"}, {Mirror: "all.corp"}}
		Expect(specOf(instanceOf(kafka))(Default, ctx).ImageRegistries).To(Equal(registries))

		By("a user editing the Instance")
		edit(ctx, instanceOf(kafka), func(i *kudo.Instance) { i.Spec.ImageRegistries = nil })
		Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("ImageRegistries", registries))

		By("an invalid mirror")
		edit(ctx, second, func(c *addonv1alpha1.AddOnDeploymentConfig) {
			c.Spec.Registries = []upstream.ImageMirror{{Source: "quay.io", Mirror: "https://other.corp"}}
		})
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "ConfigurationInvalid",
			"AddOnDeploymentConfig " + cluster + "/" + second.Name + `: registries: mirror "https://other.corp" is not the beginning of an image's name, ` +
				"such as registry.example.com:5000/path, without https://"}))
		Expect(specOf(instanceOf(kafka))(Default, ctx).ImageRegistries).To(Equal(registries))

		By("correcting it")
		edit(ctx, second, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.Registries[0].Mirror = "other.corp" })
		Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("ImageRegistries", []kudo.ImageRegistry{{Source: "quay.io", Mirror: "other.corp"}}))

		By("removing all")
		edit(ctx, first, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.Registries = nil })
		edit(ctx, second, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.Registries = nil })
		Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("ImageRegistries", BeEmpty()))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(Equal(resolved(version)))
		f.writesNothing(ctx, cluster)
	})

	It("refuses ConfigMaps of other namespaces, and takes those of the packages' namespace", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		shared := f.configMap(ctx, "shared", packages, "TEXT", "shared")
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(shared))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "shared"}))

		foreign := f.configMap(ctx, "foreign", f.cluster(ctx, "other"), "TEXT", "stolen")
		refusal := "ConfigMap " + foreign.Namespace + "/" + foreign.Name + ` cannot be used on managed cluster "` + cluster + `"`
		runWithoutWebhooks()
		edit(ctx, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs = nil; withConfigs(foreign)(a) })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(
			HaveField("Reason", "ConfigurationInvalid"), HaveField("Message", ContainSubstring(refusal))))
		Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(Equal(map[string]string{"TEXT": "shared"}))
	})

	Describe("given a misspelt parameter", func() {
		var (
			shared       *addonv1alpha1.AddOnDeploymentConfig
			kafka        *addonv1alpha1.ManagedClusterAddOn
			wrong, typed seen
		)
		misspell := func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.CustomizedVariables[0].Name = "COUNTS" }
		BeforeEach(func(ctx SpecContext) {
			f.define(ctx, "kafka", runs(version))
			shared = f.variables(ctx, "shared", packages, "COUNT", "3")
			kafka = f.enable(ctx, cluster, "kafka", withConfigs(shared))
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
			wrong = seen{"False", "ConfigurationInvalid", "AddOnDeploymentConfig " + packages + "/" + shared.Name + " sets variable COUNTS, " +
				`which OperatorVersion "` + version.Name + `" does not define: did you mean COUNT? Correct or remove the variable`}
			typed = resolved(version)
			typed.Message += "\n" + `variables that OperatorVersion "` + version.Name + `" does not define are ignored: COUNTS`
		})

		It("leaves the Instance unchanged, installs none, and continues with the corrected one", func(ctx SpecContext) {
			edit(ctx, shared, misspell)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
			Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement("Warning ConfigurationInvalid: " + wrong.Message))
			Consistently(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Parameters", map[string]string{"COUNT": "3"}))
			another := f.enable(ctx, f.cluster(ctx, "another"), "kafka", withConfigs(shared))
			Eventually(conditionOf(another, "Resolved")).WithContext(ctx).Should(Equal(wrong))
			Consistently(exists(instanceOf(another))).WithContext(ctx).Should(BeFalse())

			edit(ctx, shared, func(c *addonv1alpha1.AddOnDeploymentConfig) {
				c.Spec.CustomizedVariables[0] = upstream.CustomizedVariable{Name: "COUNT", Value: "4"}
			})
			for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{kafka, another} {
				Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
				Expect(specOf(instanceOf(addOn))(Default, ctx).Parameters).To(Equal(map[string]string{"COUNT": "4"}))
			}
		})

		It("ignores it while another version of the operator defines it", func(ctx SpecContext) {
			edit(ctx, shared, misspell)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
			next := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("kafka") + "-2.0.0"}, Spec: version.Spec}
			next.Spec.Version, next.Spec.Parameters = "2.0.0", append(slices.Clone(version.Spec.Parameters), kudo.Parameter{Name: "COUNTS", Default: ptrTo("1")})
			Expect(server.Create(ctx, next)).To(Succeed())
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(typed))
			Expect(specOf(instanceOf(kafka))(Default, ctx).Parameters).To(BeEmpty())
			Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement(HavePrefix("Warning ConfigurationIgnored: ")))

			Expect(server.Delete(ctx, next)).To(Succeed())
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
		})

		It("ignores it while another add-on with the config defines it", func(ctx SpecContext) {
			edit(ctx, shared, misspell)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
			shop := f.push(ctx, "shop", packages).DeepCopy()
			definition := f.define(ctx, "shop", both(runs(shop), withDefault(shared)))
			other := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("shop") + "-2.0.0"}, Spec: shop.Spec}
			other.Spec.Version, other.Spec.Parameters = "2.0.0", append(other.Spec.Parameters, kudo.Parameter{Name: "COUNTS", Default: ptrTo("1")})
			Consistently(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong), "it does not define it either")
			Expect(server.Create(ctx, other)).To(Succeed())
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(typed))
			Expect(server.Delete(ctx, definition)).To(Succeed())
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
		})

		It("ignores it while another add-on with the config is not plan-based, on whatever cluster", func(ctx SpecContext) {
			edit(ctx, shared, misspell)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
			definition := f.define(ctx, "other", withDefault(shared))
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(typed))
			edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.SupportedConfigs = nil })
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))

			other := f.enable(ctx, f.cluster(ctx, "another"), "other", withConfigs(shared))
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(typed))
			edit(ctx, other, func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.Configs = nil })
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
		})

		It("writes nothing at rest, and judges it the same after a restart", func(ctx SpecContext) {
			edit(ctx, shared, misspell)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(wrong))
			stopHub()
			writes, _ := runHub()
			Consistently(on(cluster, writes)).Should(BeEmpty())
			f.define(ctx, "other", withDefault(shared))
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(typed))
		})
	})

	It("reports that an add-on does not move to another install namespace", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		in := func(namespace string) func(*addonv1alpha1.ManagedClusterAddOn) {
			return func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = namespace }
		}
		kafka := f.enable(ctx, cluster, "kafka", in("kafka"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		edit(ctx, kafka, in("elsewhere"))
		stays := resolved(version)
		const remark = `the add-on stays in namespace "kafka" of the managed cluster: to move it to "elsewhere", disable it, ` +
			"and enable it again after its removal"
		stays.Message += "\n" + remark
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(stays))
		Eventually(eventsOn(kafka)).WithContext(ctx).Should(ContainElement("Warning ConfigurationIgnored: " + remark))
		Expect(specOf(instanceOf(kafka))(Default, ctx).InstallNamespace).To(Equal("kafka"))

		By("OCM's default, which is no request")
		edit(ctx, kafka, in("open-cluster-management-agent-addon"))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
	})

	It("takes the default install namespace of OCM's definitions for none", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		vars := f.variables(ctx, "vars", cluster, "TEXT", "one")
		const byDefault = "open-cluster-management-agent-addon"
		Expect(vars.Spec.AgentInstallNamespace).To(Equal(byDefault), "what the API server fills in")
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(vars),
			func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "kafka" })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(kafka))(Default, ctx).InstallNamespace).To(Equal("kafka"))

		f.define(ctx, "plain", runs(version))
		plain := f.enable(ctx, cluster, "plain", withConfigs(vars))
		Eventually(conditionOf(plain, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(specOf(instanceOf(plain))(Default, ctx).InstallNamespace).To(Equal(byDefault))
	})

	It("puts a user's edit of an add-on's Instance right", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(f.variables(ctx, "vars", cluster, "TEXT", "one")))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		edit(ctx, instanceOf(kafka), func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"COUNT": "7"} })
		Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Parameters", map[string]string{"TEXT": "one"}))
	})

	It("waits for what is missing, and names it", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(&kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("late") + "-1.0.0"}}))
		missing := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "vars"}}
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(missing))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(
			HaveField("Reason", "OperatorVersionNotFound"),
			HaveField("Message", ContainSubstring("AddOnDeploymentConfig "+cluster+"/vars does not exist"))))
		late := f.push(ctx, "late", packages)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "ConfigurationNotFound"))
		Expect(server.Create(ctx, missing)).To(Succeed())
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(late)))
	})

	DescribeTable("refuses a configuration",
		func(ctx SpecContext, configure func() func(*addonv1alpha1.ManagedClusterAddOn), reason, message string) {
			runWithoutWebhooks()
			f.define(ctx, "kafka", runs(version))
			kafka := f.enable(ctx, cluster, "kafka", configure())
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(
				HaveField("Status", "False"), HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
			Expect(exists(instanceOf(kafka))(Default, ctx)).To(BeFalse())
		},
		Entry("that names a foreign namespace", func() func(*addonv1alpha1.ManagedClusterAddOn) {
			return withConfigs(&kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "x"}})
		}, "ConfigurationInvalid", `in namespace "kube-system", which agents are not allowed to read`),
		Entry("that names two OperatorVersions", func() func(*addonv1alpha1.ManagedClusterAddOn) {
			other := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: "other"}}
			return withConfigs(version, other)
		}, "ConfigurationInvalid", "two OperatorVersions are configured"),
	)

	It("waits for OCM where OCM manages the add-on, and takes what it has resolved", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		chosen := f.push(ctx, "chosen", packages)
		stopHub() // so that OCM is first
		kafka := f.enable(ctx, cluster, "kafka")
		setCondition(ctx, kafka, "ocm", metav1.Condition{Type: "Configured", Status: metav1.ConditionFalse, Reason: "Resolving"})
		runHub()
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "WaitingForConfiguration"))
		Expect(exists(instanceOf(kafka))(Default, ctx)).To(BeFalse())

		referent := upstream.ConfigReferent{Namespace: packages, Name: chosen.Name}
		Expect(environment.EditStatus(ctx, server, kafka, func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.ConfigReferences = []upstream.ConfigReference{{
				ConfigGroupResource: resource(addonv1alpha1.GroupKudo, addonv1alpha1.ResourceOperatorVersions),
				ConfigReferent:      referent,
				DesiredConfig:       &upstream.ConfigSpecHash{ConfigReferent: referent, SpecHash: "1"},
			}}
		})).To(Succeed())
		Consistently(exists(instanceOf(kafka))).WithContext(ctx).Should(BeFalse())
		setCondition(ctx, kafka, "ocm", metav1.Condition{Type: "Configured", Status: metav1.ConditionTrue, Reason: "Resolved"})
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(chosen)))
	})

	It("lets an add-on go only after its Instance", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		instance := get(ctx, instanceOf(kafka))

		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(func(g Gomega) {
			current := &kudo.Instance{}
			g.Expect(server.Get(ctx, keyOf(instance), current)).To(Succeed())
			g.Expect(current.DeletionTimestamp).NotTo(BeNil())
		}).Should(Succeed())
		Consistently(exists(kafka)).WithContext(ctx).Should(BeTrue())

		reportRemoved(ctx, instance)
		Eventually(exists(instance)).WithContext(ctx).Should(BeFalse())
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
	})

	It("deletes the Instance under whatever service account it runs", func(ctx SpecContext) {
		stopHub()
		_, stopHub = runHub(withWebhooks, func(config *rest.Config, _ *hub.Options) {
			config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:platform:addons", Groups: []string{"system:masters"}}
		})
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		instance := get(ctx, instanceOf(kafka))
		Expect(server.Delete(ctx, instance.DeepCopy())).To(MatchError(
			ContainSubstring("kubectl addon disable " + kafka.Name + " --cluster " + cluster)))

		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(get(ctx, instance).DeletionTimestamp).NotTo(BeNil())
		}).WithContext(ctx).Should(Succeed())
		reportRemoved(ctx, instance)
		Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
	})

	It("releases an add-on that was never installed immediately", func(ctx SpecContext) {
		f.define(ctx, "kafka", both(runs(version), f.withNeeds(addonv1alpha1.AddonDependency{Name: "zookeeper"})))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "WaitingForDependencies"))
		Expect(server.Delete(ctx, kafka)).To(Succeed())
		Expect(exists(kafka)(Default, ctx)).To(BeFalse())
	})

	It("never takes over a user's Instance of the add-on's name", func(ctx SpecContext) {
		kafka := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("kafka")}}
		users := instanceOf(kafka)
		users.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		Expect(server.Create(ctx, users)).To(Succeed())
		f.define(ctx, "kafka", runs(version))
		f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "NameCollision",
			"Instance " + cluster + "/" + users.Name + " exists and does not belong to the add-on: give the add-on another name"}))
		Expect(get(ctx, users).OwnerReferences).To(BeEmpty())
		Eventually(resolvedOf(users)).WithContext(ctx).Should(HaveField("Status", "True"), "which another controller says: it is held from then on")

		By("the user deleting it")
		Expect(server.Delete(ctx, users)).To(Succeed())
		reportRemoved(ctx, users)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
	})

	It("never takes over one that a user makes in the same moment, as it would make its own", func(ctx SpecContext) {
		stopHub()
		f.define(ctx, "kafka", runs(version))
		kafka := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("kafka")}}
		users := instanceOf(kafka)
		users.Spec = kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: packages, Name: version.Name},
			Parameters:       map[string]string{},
			InstallNamespace: "kafka",
		}
		var once sync.Once
		made := make(chan error, 1)
		runHub(before(func(request *http.Request) {
			if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/instances/"+users.Name) {
				once.Do(func() { made <- server.Create(request.Context(), users) })
			}
		}))
		f.enable(ctx, cluster, "kafka", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "kafka" })
		Eventually(made).WithContext(ctx).Should(Receive(Succeed()), "it looks before it makes its own")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "NameCollision"))
		Expect(get(ctx, users).OwnerReferences).To(BeEmpty())
	})

	It("reports once that the API server rejects the Instance, and continues when it does not any more", func(ctx SpecContext) {
		probe := &kudo.Instance{}
		probe.Spec.InstallNamespace = "forbidden"
		lift := f.refuse(ctx, cluster, `object.spec.installNamespace != "forbidden"`, "nothing goes there", probe)
		stopHub()
		f.define(ctx, "kafka", runs(version))
		writes, _ := runHub()
		kafka := f.enable(ctx, cluster, "kafka", func(a *addonv1alpha1.ManagedClusterAddOn) { a.Spec.InstallNamespace = "forbidden" })
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(
			HaveField("Status", "False"), HaveField("Reason", "InstanceRefused"), HaveField("Message", ContainSubstring("nothing goes there"))))
		stored := get(ctx, kafka).ResourceVersion
		attempts := func() int { return count(on(cluster, writes)(), "/instances/"+kafka.Name) }
		tried := attempts()
		Eventually(attempts).Should(BeNumerically(">", tried), "it tries again")
		Expect(get(ctx, kafka).ResourceVersion).To(Equal(stored), "and has nothing new to say")

		lift(ctx)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
	})

	It("refuses a name that another Instance has once dots are dashes", func(ctx SpecContext) {
		f.define(ctx, "a-b", runs(version))
		f.define(ctx, "a.b", runs(version))
		first := f.enable(ctx, cluster, "a-b")
		Eventually(conditionOf(first, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		second := f.enable(ctx, cluster, "a.b")
		Eventually(conditionOf(second, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "NameCollision"))

		Expect(server.Delete(ctx, first)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(get(ctx, instanceOf(first)).DeletionTimestamp).NotTo(BeNil())
		}).Should(Succeed())
		reportRemoved(ctx, instanceOf(first))
		Eventually(conditionOf(second, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
	})

	DescribeTable("keeps the Instance of an add-on that it shall run no longer, until the add-on is disabled or run again:",
		func(ctx SpecContext, forsake func(SpecContext, *addonv1alpha1.ClusterManagementAddOn), lost, remedy string) {
			definition := f.define(ctx, "kafka", runs(version))
			kafka := f.enable(ctx, cluster, "kafka")
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
			instance := get(ctx, instanceOf(kafka))

			forsake(ctx, definition)
			want := seen{"False", "ConfigurationInvalid", `ClusterManagementAddOn "` + kafka.Name + `" ` + lost +
				"; the add-on's Instance " + cluster + "/" + kafka.Name + " is left unchanged: " + remedy + " " +
				"(group kudo.dev, resource operatorversions in spec.supportedConfigs), or disable the add-on to remove it"}
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(want))
			Consistently(specOf(instance)).WithContext(ctx).Should(Equal(instance.Spec))
			Expect(get(ctx, kafka).Status.HealthCheck.Mode).To(Equal(upstream.HealthCheckModeCustomized))

			By("running it again")
			Expect(client.IgnoreNotFound(server.Delete(ctx, definition))).To(Succeed())
			definition = f.define(ctx, "kafka", runs(version))
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))

			By("disabling it while no controller runs it")
			forsake(ctx, definition)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(want))
			Expect(server.Delete(ctx, kafka)).To(Succeed())
			Eventually(func(g Gomega) { g.Expect(get(ctx, instance).DeletionTimestamp).NotTo(BeNil()) }).Should(Succeed())
			reportRemoved(ctx, instance)
			Eventually(exists(kafka)).WithContext(ctx).Should(BeFalse())
		},
		Entry("its definition names no OperatorVersions", func(ctx SpecContext, d *addonv1alpha1.ClusterManagementAddOn) {
			edit(ctx, d, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.SupportedConfigs = nil })
		}, "no longer supports OperatorVersions", "add them again"),
		Entry("its definition is deleted", func(ctx SpecContext, d *addonv1alpha1.ClusterManagementAddOn) {
			Expect(server.Delete(ctx, d)).To(Succeed())
		}, "no longer exists", "re-create it with OperatorVersions"),
	)

	It("gives an add-on up that it never installed and shall not run any more", func(ctx SpecContext) {
		definition := f.define(ctx, "kafka", both(runs(version), f.withNeeds(addonv1alpha1.AddonDependency{Name: "zookeeper"})))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "WaitingForDependencies"))
		Expect(get(ctx, kafka).Status.HealthCheck.Mode).To(Equal(upstream.HealthCheckModeCustomized))

		edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.SupportedConfigs, d.Spec.Dependencies = nil, nil })
		Eventually(func(g Gomega) {
			current := get(ctx, kafka)
			g.Expect(current.Status.Conditions).To(BeEmpty())
			g.Expect(current.Status.HealthCheck.Mode).To(BeEmpty())
			g.Expect(current.ManagedFields).NotTo(ContainElement(HaveField("Manager", HavePrefix("addon-manager"))))
		}).Should(Succeed())
	})

	It("leaves add-ons alone that it does not run", func(ctx SpecContext) {
		f.define(ctx, "other", nil)
		other := f.enable(ctx, cluster, "other")
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		Expect(get(ctx, other).Status).To(Equal(upstream.ManagedClusterAddOnStatus{}))
		Expect(get(ctx, other).Finalizers).To(BeEmpty())
	})

	It("installs with as few writes as there are things to say", func(ctx SpecContext) {
		stopHub()
		f.define(ctx, "kafka", runs(version))
		writes, _ := runHub()
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		addOns := "PATCH /apis/addon.open-cluster-management.io/v1alpha1/namespaces/" + cluster + "/managedclusteraddons/" + kafka.Name
		instances := "PATCH /apis/kudo.dev/v1beta1/namespaces/" + cluster + "/instances/" + kafka.Name
		// On the add-on: the finalizer, the health check mode, Resolved. On the Instance: the Instance itself, its finalizer, Resolved.
		Consistently(on(cluster, writes)).Should(ConsistOf(
			addOns, addOns+"/status", addOns+"/status", instances, instances, instances+"/status"))
	})

	DescribeTable("writes each change once, though it has not seen yet what it wrote itself, of",
		func(ctx SpecContext, unseen string) {
			stopHub()
			w := newWatches(unseen)
			var writes *environment.Writes
			writes, stopHub = runHub(withTransport(w.carry))
			later := f.push(ctx, "later", packages)
			definition, afterwards := f.define(ctx, "kafka", runs(version)), f.define(ctx, "next", runs(version))
			kafka, next := f.enable(ctx, cluster, "kafka"), f.enable(ctx, cluster, "next")
			for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{kafka, next} {
				Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
				Eventually(resolvedOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("Status", "True"))
			}
			By("waiting until the hub has seen these writes, as it has if it resolves one more add-on")
			f.define(ctx, "last", runs(version))
			last := f.enable(ctx, cluster, "last")
			Eventually(conditionOf(last, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
			Eventually(resolvedOf(instanceOf(last))).WithContext(ctx).Should(HaveField("Status", "True"))

			reconnect := w.cut()
			DeferCleanup(reconnect)
			before := on(cluster, writes)()
			edit(ctx, definition, runs(later))
			Eventually(specOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("OperatorVersion.Name", later.Name))

			By("having it reconciled again, and another one after it")
			edit(ctx, definition, func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.AddOnMeta.DisplayName = "Kafka" })
			edit(ctx, afterwards, runs(later))
			Eventually(specOf(instanceOf(next))).WithContext(ctx).Should(HaveField("OperatorVersion.Name", later.Name))
			reconnect()
			for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{kafka, next} {
				Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(Equal(resolved(later)))
			}
			after := on(cluster, writes)()[len(before):]
			Expect(count(after, "/instances/"+kafka.Name)).To(Equal(1), "%q", after)
			Expect(count(after, "/managedclusteraddons/"+kafka.Name+"/status")).To(Equal(1), "%q", after)
		},
		Entry("an add-on", "managedclusteraddons"),
		Entry("an Instance", "instances"),
	)

	It("works while it holds its lease, and gives that back when it ends", func(ctx SpecContext) {
		stopHub()
		f.define(ctx, "kafka", runs(version))
		log := gbytes.NewBuffer()
		untilItEnds := before(func(request *http.Request) { // the check of what the API server enforces
			if strings.Contains(request.URL.Path, "admissionpolic") {
				<-request.Context().Done()
			}
		})
		_, stop := runHub(withElection, untilItEnds, func(_ *rest.Config, options *hub.Options) {
			options.Logger = funcr.New(func(_, line string) { _, _ = log.Write([]byte(line + "\n")) }, funcr.Options{})
		})
		kafka := f.enable(ctx, cluster, "kafka")
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: "tandem-addon-manager"}}
		Expect(get(ctx, lease).Spec.HolderIdentity).To(HaveValue(Not(BeEmpty())))
		Eventually(func(g Gomega) {
			var events corev1.EventList
			g.Expect(server.List(ctx, &events, client.InNamespace(lease.Namespace))).To(Succeed())
			g.Expect(events.Items).To(ContainElement(HaveField("Reason", "LeaderElection")))
		}).Should(Succeed())
		stop()
		Expect(get(ctx, lease).Spec.HolderIdentity).To(HaveValue(BeEmpty()))
		lines := strings.Split(string(log.Contents()), "\n")
		Expect(lines).To(ContainElement(ContainSubstring("Stopping and waiting")))
		Expect(slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, `"error"=`) })).To(BeEmpty())
	})

	It("writes nothing when it is started again", func(ctx SpecContext) {
		f.define(ctx, "kafka", runs(version))
		kafka := f.enable(ctx, cluster, "kafka", withConfigs(f.variables(ctx, "vars", cluster, "TEXT", "one")))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		stopHub()
		writes, _ := runHub()
		Consistently(on(cluster, writes)).Should(BeEmpty())

		f.push(ctx, "unrelated", packages)
		marker := f.enable(ctx, cluster, "unrelated")
		f.define(ctx, "unrelated", runs(version))
		Eventually(conditionOf(marker, "Resolved")).WithContext(ctx).Should(Equal(resolved(version)))
		for _, write := range on(cluster, writes)() {
			Expect(strings.Contains(write, kafka.Name)).To(BeFalse(), write)
		}
	})
})
