package hub

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// withConstraint adds constraints of an OperatorVersion on the version of another add-on.
func withConstraint(addOn, constraint string) func(*kudo.OperatorVersion) {
	return func(v *kudo.OperatorVersion) {
		v.Spec.Dependencies = append(v.Spec.Dependencies, kudo.DependencyConstraint{Name: addOn, Version: constraint})
	}
}

// applies reports, as the agent does, that a plan applies the OperatorVersion that the Instance names, and completes it if it is complete.
func applies(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, complete bool) {
	GinkgoHelper()
	version := &kudo.OperatorVersion{}
	version.Namespace, version.Name = specOf(instanceOf(addOn))(Default, ctx).OperatorVersion.Namespace, namedBy(addOn)(Default, ctx)
	version = get(ctx, version)
	reference := specOf(instanceOf(addOn))(Default, ctx).OperatorVersion
	reference.UID = version.UID
	Expect(environment.EditStatus(ctx, server, instanceOf(addOn), func(i *kudo.Instance) {
		i.Status.Execution = &kudo.Execution{
			UID: version.UID, Plan: kudo.DeployPlan, OperatorVersion: reference, DependencyVersion: version.Spec.Version, Dependencies: version.Spec.Dependencies,
		}
		if complete {
			i.Status.Whole = &kudo.WholeVersion{OperatorVersion: reference, Version: version.Spec.Version, Dependencies: version.Spec.Dependencies}
		}
	})).To(Succeed())
}

// namedBy returns the name of the OperatorVersion that the add-on's Instance names, for Eventually.
func namedBy(addOn *addonv1alpha1.ManagedClusterAddOn) func(Gomega, context.Context) string {
	return func(g Gomega, ctx context.Context) string {
		return specOf(instanceOf(addOn))(g, ctx).OperatorVersion.Name
	}
}

var _ = Describe("The order of upgrades", func() {
	var (
		f                fleet
		cluster          string
		definitions      map[string]*addonv1alpha1.ClusterManagementAddOn
		zookeeper, kafka *addonv1alpha1.ManagedClusterAddOn
	)
	push := func(ctx context.Context, name, number string, changes ...func(*kudo.OperatorVersion)) *kudo.OperatorVersion {
		return f.pushVersion(ctx, name, packages, number, func(v *kudo.OperatorVersion) {
			for _, change := range changes {
				change(v)
			}
		})
	}
	zk := func() string { return f.nameOf("zookeeper") }
	// wants makes versions the default ones of the fleet.
	wants := func(ctx context.Context, name string, version *kudo.OperatorVersion) {
		GinkgoHelper()
		edit(ctx, definitions[name], runs(version))
	}
	waits := func(addOn *addonv1alpha1.ManagedClusterAddOn, text string) func(SpecContext) {
		return func(ctx SpecContext) {
			GinkgoHelper()
			Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(Equal(seen{"False", "WaitingForDependencies", text}))
		}
	}
	stays := func(ctx SpecContext, addOn *addonv1alpha1.ManagedClusterAddOn, version *kudo.OperatorVersion) {
		GinkgoHelper()
		Consistently(namedBy(addOn)).WithContext(ctx).WithTimeout(time.Second).Should(Equal(version.Name))
	}
	var zk34, zk39, kafka2 *kudo.OperatorVersion

	BeforeEach(runWithoutWebhooks)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		zk34, zk39 = push(ctx, "zookeeper", "3.4.9"), push(ctx, "zookeeper", "3.9.0")
		kafka2 = push(ctx, "kafka", "2.0.0", withConstraint(zk(), "<3.8"))
		definitions = map[string]*addonv1alpha1.ClusterManagementAddOn{
			"zookeeper": f.define(ctx, "zookeeper", runs(zk34)),
			"kafka":     f.define(ctx, "kafka", both(runs(kafka2), f.withNeeds(need{Name: "zookeeper"}))),
		}
		zookeeper = f.enable(ctx, cluster, "zookeeper")
		Eventually(exists(instanceOf(zookeeper))).WithContext(ctx).Should(BeTrue())
		applies(ctx, zookeeper, true)
		report(ctx, zookeeper, metav1.ConditionTrue, "PlanComplete")
		kafka = f.enable(ctx, cluster, "kafka")
		Eventually(exists(instanceOf(kafka))).WithContext(ctx).Should(BeTrue())
		applies(ctx, kafka, true)
		report(ctx, kafka, metav1.ConditionTrue, "PlanComplete")
	})
	// settles waits until the hub has written all conditions Resolved.
	settles := func(ctx SpecContext) {
		GinkgoHelper()
		for _, addOn := range []*addonv1alpha1.ManagedClusterAddOn{zookeeper, kafka} {
			Eventually(resolvedOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("Status", "True"))
			Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(HaveField("Message", HavePrefix(resolvedOf(instanceOf(addOn))(Default, ctx).Message)))
		}
	}
	AfterEach(func(ctx SpecContext) {
		settles(ctx)
		f.writesNothing(ctx, cluster)
	})

	It("starts a dependency's version only once no dependent that runs excludes it", func(ctx SpecContext) {
		wants(ctx, "zookeeper", zk39)
		waits(zookeeper, "waiting to change to "+zk39.Name+": "+kafka.Name+" runs, "+kafka2.Name+" requires "+zk()+" <3.8, and "+zk39.Name+
			" has version 3.9.0; change "+kafka.Name+" to a version that accepts "+zk()+" 3.9.0, or disable it")(ctx)
		stays(ctx, zookeeper, zk34)
		expectDegraded(ctx, kafka, none)

		By("a dependent that accepts what runs goes first, and counts with both versions until its plan has completed")
		kafka3 := push(ctx, "kafka", "3.0.0", withConstraint(zk(), ">=3.4"))
		wants(ctx, "kafka", kafka3)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(kafka3.Name))
		stays(ctx, zookeeper, zk34)
		applies(ctx, kafka, false)
		stays(ctx, zookeeper, zk34)
		applies(ctx, kafka, true)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
	})

	It("starts a version only once its own constraints hold for what has been applied completely", func(ctx SpecContext) {
		kafka3 := push(ctx, "kafka", "3.0.0", withConstraint(zk(), ">=3.8"))
		edit(ctx, definitions["kafka"], runs(push(ctx, "kafka", "2.1.0")))
		Eventually(namedBy(kafka)).WithContext(ctx).Should(HaveSuffix("2.1.0"))
		applies(ctx, kafka, true)
		wants(ctx, "kafka", kafka3)
		why := "waiting to change to " + kafka3.Name + ": " + kafka3.Name + " requires " + zk() + " >=3.8, which runs version 3.4.9; "
		waits(kafka, why+"change "+zk()+" to a version that satisfies >=3.8")(ctx)
		wants(ctx, "zookeeper", zk39)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
		applies(ctx, zookeeper, false)
		Consistently(namedBy(kafka)).WithContext(ctx).WithTimeout(time.Second).Should(HaveSuffix("2.1.0"))
		applies(ctx, zookeeper, true)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(kafka3.Name))
		applies(ctx, kafka, true)
		expectDegraded(ctx, kafka, none)
	})

	It("names a deadlock, and the version in between that ends it", func(ctx SpecContext) {
		kafka3 := push(ctx, "kafka", "3.0.0", withConstraint(zk(), ">=3.8"))
		wants(ctx, "kafka", kafka3)
		wants(ctx, "zookeeper", zk39)
		none := "and no OperatorVersion in between accepts what runs and what is wanted: push one, or change what is wanted"
		blocked := "waiting to change to " + zk39.Name + ": " + kafka.Name + " runs, " + kafka2.Name + " requires " + zk() + " <3.8, and " + zk39.Name +
			" has version 3.9.0; deadlock: " + kafka.Name + " cannot change before it"
		waits(zookeeper, blocked+", "+none)(ctx)
		waits(kafka, "waiting to change to "+kafka3.Name+": "+kafka3.Name+" requires "+zk()+" >=3.8, which runs version 3.4.9; deadlock: "+zk()+
			" cannot change before it, "+none)(ctx)
		between := push(ctx, "kafka", "2.8.0", withConstraint(zk(), ">=3.4 <4"))
		waits(zookeeper, blocked+"; change "+kafka.Name+" to "+between.Name+" first")(ctx)

		wants(ctx, "kafka", between)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(between.Name))
		applies(ctx, kafka, true)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
		applies(ctx, zookeeper, true)
		wants(ctx, "kafka", kafka3)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(kafka3.Name))
	})

	It("holds back a version after which not all changes would be possible, because of an alternative", func(ctx SpecContext) {
		old, next := map[string]*kudo.OperatorVersion{}, map[string]*kudo.OperatorVersion{}
		addOns := map[string]*addonv1alpha1.ManagedClusterAddOn{}
		for _, name := range []string{"a", "b", "x"} {
			var before, after []func(*kudo.OperatorVersion)
			declares := f.needs()
			if name == "x" { // each of its versions requires a or b
				before = []func(*kudo.OperatorVersion){withConstraint(f.nameOf("a"), "<2"), withConstraint(f.nameOf("b"), "<2")}
				after = []func(*kudo.OperatorVersion){withConstraint(f.nameOf("a"), ">=9"), withConstraint(f.nameOf("b"), ">=2")}
				declares = f.needs(need{Name: "a", Alternatives: []string{"b"}})
			}
			old[name], next[name] = push(ctx, name, "1.0.0", before...), push(ctx, name, "2.0.0", after...)
			definitions[name] = f.define(ctx, name, both(runs(old[name]), declares))
			addOns[name] = f.enable(ctx, cluster, name)
			Eventually(exists(instanceOf(addOns[name]))).WithContext(ctx).Should(BeTrue())
			applies(ctx, addOns[name], true)
			report(ctx, addOns[name], metav1.ConditionTrue, "PlanComplete")
		}

		By("all want the next version, and b, which may change first, is refused")
		probe := &kudo.Instance{}
		probe.Spec.OperatorVersion.Name = next["b"].Name
		lift := f.refuse(ctx, cluster, `object.spec.operatorVersion.name != "`+next["b"].Name+`"`, "not yet", probe)
		wants(ctx, "x", next["x"])
		wants(ctx, "b", next["b"])
		Eventually(conditionOf(addOns["b"], "Resolved")).WithContext(ctx).Should(HaveField("Reason", "InstanceRefused"))
		wants(ctx, "a", next["a"])
		waits(addOns["a"], "waiting to change to "+next["a"].Name+": because of dependencies with alternatives, not all changes are possible after it; first changes "+
			addOns["b"].Name)(ctx)
		stays(ctx, addOns["a"], old["a"])

		lift(ctx)
		for _, name := range []string{"b", "x", "a"} {
			Eventually(namedBy(addOns[name])).WithContext(ctx).Should(Equal(next[name].Name))
			applies(ctx, addOns[name], true)
		}
		for _, addOn := range addOns {
			Eventually(resolvedOf(instanceOf(addOn))).WithContext(ctx).Should(HaveField("Status", "True"))
			Eventually(conditionOf(addOn, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
			expectDegraded(ctx, addOn, none)
		}
	})

	It("judges the constraints of the version that runs, too", func(ctx SpecContext) {
		Expect(environment.EditStatus(ctx, server, instanceOf(zookeeper), func(i *kudo.Instance) { i.Status.Whole.Version = "3.9.0" })).To(Succeed())
		expectDegraded(ctx, kafka, unmet("RequiredDependencyNotSatisfied", "Required addon '"+zk()+"' runs version 3.9.0, which does not satisfy <3.8."))
		Expect(environment.EditStatus(ctx, server, instanceOf(zookeeper), func(i *kudo.Instance) { i.Status.Whole.Version = "3.4.9" })).To(Succeed())
		expectDegraded(ctx, kafka, none)
	})

	It("lets a version start when the dependent is disabled, or no longer declares the dependency", func(ctx SpecContext) {
		wants(ctx, "zookeeper", zk39)
		Eventually(conditionOf(zookeeper, "Resolved")).WithContext(ctx).Should(HaveField("Reason", "WaitingForDependencies"))
		edit(ctx, definitions["kafka"], f.needs())
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Message", HaveSuffix(
			"OperatorVersion \""+kafka2.Name+"\" requires versions of add-ons on which ClusterManagementAddOn \""+kafka.Name+
				"\" declares no dependency, and which are not compared: "+zk()+" <3.8")))
	})

	It("starts nothing that excludes what an earlier process has started, whatever its own view of the cluster", func(ctx SpecContext) {
		wants(ctx, "kafka", push(ctx, "kafka", "2.1.0"))
		Eventually(namedBy(kafka)).WithContext(ctx).Should(HaveSuffix("2.1.0"))
		applies(ctx, kafka, true)
		view := revision(ctx)
		wants(ctx, "zookeeper", zk39)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
		Eventually(resolvedOf(instanceOf(zookeeper))).WithContext(ctx).Should(HaveField("Status", "True"))
		stopHub()

		old := push(ctx, "kafka", "1.9.0", withConstraint(zk(), "<3.8"))
		wants(ctx, "kafka", old)
		current := runStaleHub("instances", view)
		Consistently(namedBy(kafka)).WithContext(ctx).WithTimeout(2 * time.Second).Should(HaveSuffix("2.1.0"))
		current()
		waits(kafka, "waiting to change to "+old.Name+": "+old.Name+" requires "+zk()+" <3.8, which runs version 3.9.0; change "+zk()+
			" to a version that satisfies <3.8")(ctx)
		wants(ctx, "zookeeper", zk34)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk34.Name))
		applies(ctx, zookeeper, true)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(old.Name))
	})

	It("starts nothing that a dependent excludes that an earlier process has started, whatever its own view of the cluster", func(ctx SpecContext) {
		unconstrained := push(ctx, "kafka", "2.1.0")
		wants(ctx, "kafka", unconstrained)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(unconstrained.Name))
		applies(ctx, kafka, true)
		view := revision(ctx)
		wants(ctx, "kafka", kafka2)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(kafka2.Name))
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Status", "True"))
		stopHub()

		wants(ctx, "zookeeper", zk39)
		current := runStaleHub("instances", view)
		Consistently(namedBy(zookeeper)).WithContext(ctx).WithTimeout(2 * time.Second).Should(Equal(zk34.Name))
		current()
		waits(zookeeper, "waiting to change to "+zk39.Name+": "+kafka.Name+" runs, "+kafka2.Name+" requires "+zk()+" <3.8, and "+zk39.Name+
			" has version 3.9.0; change "+kafka.Name+" to a version that accepts "+zk()+" 3.9.0, or disable it")(ctx)
		wants(ctx, "kafka", unconstrained)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(unconstrained.Name))
		applies(ctx, kafka, true)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
	})

	DescribeTable("decides nothing while the cache lacks an add-on on the cluster",
		func(ctx SpecContext, enable func(context.Context) (why string)) {
			unconstrained := push(ctx, "kafka", "2.1.0")
			wants(ctx, "kafka", unconstrained)
			Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(unconstrained.Name))
			applies(ctx, kafka, true)
			settles(ctx)
			view := revision(ctx)
			why := enable(ctx)
			stopHub()

			wants(ctx, "zookeeper", zk39)
			current := runStaleHub("managedclusteraddons", view)
			Consistently(namedBy(zookeeper)).WithContext(ctx).WithTimeout(2 * time.Second).Should(Equal(zk34.Name))
			current()
			Eventually(conditionOf(zookeeper, "Resolved")).WithContext(ctx).Should(And(
				HaveField("Reason", "WaitingForDependencies"), HaveField("Message", ContainSubstring(why))))
			wants(ctx, "zookeeper", zk34)
			Eventually(conditionOf(zookeeper, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		},
		Entry("that runs a package", func(ctx context.Context) string {
			solr := push(ctx, "solr", "1.0.0", withConstraint(zk(), "<3.8"))
			f.define(ctx, "solr", both(runs(solr), f.withNeeds(need{Name: "zookeeper"})))
			addOn := f.enable(ctx, cluster, "solr")
			Eventually(exists(instanceOf(addOn))).WithContext(ctx).Should(BeTrue())
			applies(ctx, addOn, true)
			return solr.Name + " requires " + zk() + " <3.8"
		}),
		Entry("that runs none", func(ctx context.Context) string {
			f.define(ctx, "legacy", f.withNeeds(need{Name: "zookeeper", Version: "<3.8"}))
			return "ClusterManagementAddOn " + f.enable(ctx, cluster, "legacy").Name + " requires " + zk() + " <3.8"
		}),
	)

	It("holds a version while what a dependent changes to is not known, by a live read, too", func(ctx SpecContext) {
		unconstrained := push(ctx, "kafka", "2.1.0")
		wants(ctx, "kafka", unconstrained)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(unconstrained.Name))
		applies(ctx, kafka, true)
		view := revision(ctx)
		number, constrained := "2.5.0", withConstraint(zk(), "<3.8")
		next := push(ctx, "kafka", number, constrained)
		wants(ctx, "kafka", next)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(next.Name))
		Eventually(resolvedOf(instanceOf(kafka))).WithContext(ctx).Should(HaveField("Status", "True"))
		stopHub()

		By("a cache that lacks it")
		excluded := "waiting to change to " + zk39.Name + ": " + kafka.Name + " runs, " + next.Name + " requires " + zk() + " <3.8, and " + zk39.Name +
			" has version 3.9.0; change " + kafka.Name + " to a version that accepts " + zk() + " 3.9.0, or disable it"
		wants(ctx, "zookeeper", zk39)
		current := runStaleHub("operatorversions", view)
		waits(zookeeper, excluded)(ctx)
		stays(ctx, zookeeper, zk34)
		current()

		By("a hub that lacks it")
		Expect(server.Delete(ctx, next)).To(Succeed())
		waits(zookeeper, "waiting to change to "+zk39.Name+": "+kafka.Name+" depends on this add-on and is changing to a version whose constraints are unknown, "+
			"because OperatorVersion \""+next.Name+"\" does not exist; change "+kafka.Name+" to a version that exists")(ctx)
		stays(ctx, zookeeper, zk34)
		push(ctx, "kafka", number, constrained)
		waits(zookeeper, excluded)(ctx)
		wants(ctx, "kafka", unconstrained)
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(unconstrained.Name))
		applies(ctx, kafka, true)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
	})

	It("holds versions while a declaration is malformed: its own, and those that its constraints exclude", func(ctx SpecContext) {
		edit(ctx, definitions["kafka"], both(func(d *addonv1alpha1.ClusterManagementAddOn) { d.Spec.Dependencies = nil }, withAnnotation("nonsense")))
		wants(ctx, "zookeeper", zk39)
		waits(zookeeper, "waiting to change to "+zk39.Name+": "+kafka.Name+" runs, "+kafka2.Name+" requires "+zk()+" <3.8, and "+zk39.Name+
			" has version 3.9.0; change "+kafka.Name+" to a version that accepts "+zk()+" 3.9.0, or disable it")(ctx)
		unconstrained := push(ctx, "kafka", "2.1.0")
		wants(ctx, "kafka", unconstrained)
		Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(HaveField("Reason", "WaitingForDependencies"), HaveField("Message", HavePrefix(
			"waiting to change to "+unconstrained.Name+": the dependencies of the add-on cannot be read: ClusterManagementAddOn"))))
		stays(ctx, kafka, kafka2)
		stays(ctx, zookeeper, zk34)
		edit(ctx, definitions["kafka"], both(func(d *addonv1alpha1.ClusterManagementAddOn) { d.Annotations = nil }, f.withNeeds(need{Name: "zookeeper"})))
		Eventually(namedBy(kafka)).WithContext(ctx).Should(Equal(unconstrained.Name))
		applies(ctx, kafka, true)
		Eventually(namedBy(zookeeper)).WithContext(ctx).Should(Equal(zk39.Name))
	})
})
