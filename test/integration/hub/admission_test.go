package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// warnings records the API server's warnings to a user.
type warnings struct {
	mutex sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.texts = append(w.texts, text)
}

// of returns the warnings during do.
func (w *warnings) of(do func()) []string {
	w.mutex.Lock()
	before := len(w.texts)
	w.mutex.Unlock()
	do()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return slices.Clone(w.texts[before:])
}

// newUser returns a client of an administrator as kubectl would create it, and its warnings.
func newUser() (client.Client, *warnings) {
	GinkgoHelper()
	heard := &warnings{}
	own := rest.CopyConfig(config)
	own.WarningHandler = heard
	user, err := client.New(own, client.Options{Scheme: server.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return user, heard
}

// awaitWebhooks waits until the hub's webhooks respond, for all versions.
func awaitWebhooks(ctx context.Context) {
	GinkgoHelper()
	probe := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, GenerateName: "probe-"}}
	Eventually(func(g Gomega) {
		g.Expect(server.Create(ctx, probe.DeepCopy(), client.DryRunAll)).To(MatchError(ContainSubstring("is not valid")))
	}).WithContext(ctx).Should(Succeed())
	converts(ctx)
}

// runWithoutWebhooks runs the hub without its webhooks, so that invalid objects are stored and evaluated by the controllers.
func runWithoutWebhooks() {
	GinkgoHelper()
	stopHub()
	_, stopHub = runHub()
}

var _ = Describe("Admission", func() {
	var (
		f       fleet
		cluster string
		user    client.Client
		heard   *warnings
	)
	BeforeEach(func(ctx SpecContext) {
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		user, heard = newUser()
		awaitWebhooks(ctx)
	})
	// refused expects a write and its dry run to be rejected with that text.
	refused := func(write func(...client.CreateOption) error, text string) {
		GinkgoHelper()
		for _, options := range [][]client.CreateOption{{client.DryRunAll}, nil} {
			err := write(options...)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(And(ContainSubstring("denied the request: "), ContainSubstring(text))))
		}
	}

	Describe("of a ClusterManagementAddOn", func() {
		// named replaces <a>, <b> and <c> by the spec's own names of add-ons.
		named := func(text string) string {
			return strings.NewReplacer("<a>", f.nameOf("a"), "<b>", f.nameOf("b"), "<c>", f.nameOf("c")).Replace(text)
		}
		needs := func(names ...string) func(*addonv1alpha1.ClusterManagementAddOn) {
			return func(d *addonv1alpha1.ClusterManagementAddOn) {
				for _, name := range names {
					d.Spec.Dependencies = append(d.Spec.Dependencies, addonv1alpha1.AddonDependency{Name: f.nameOf(name)})
				}
			}
		}
		annotates := func(text string) func(*addonv1alpha1.ClusterManagementAddOn) {
			return func(d *addonv1alpha1.ClusterManagementAddOn) { withAnnotation(named(text))(d) }
		}
		definition := func(name string, change func(*addonv1alpha1.ClusterManagementAddOn)) *addonv1alpha1.ClusterManagementAddOn {
			d := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf(name)}}
			d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			change(d)
			return d
		}
		DescribeTable("refuses to create one that",
			func(ctx SpecContext, change func() func(*addonv1alpha1.ClusterManagementAddOn), text string) {
				f.define(ctx, "b", needs("c"))
				f.define(ctx, "c", needs("a"))
				refused(func(options ...client.CreateOption) error {
					return user.Create(ctx, definition("a", change()), options...)
				}, named(text))
			},
			Entry("depends on itself", func() func(*addonv1alpha1.ClusterManagementAddOn) { return needs("x", "a") },
				`ClusterManagementAddOn "<a>": spec.dependencies[1]: "<a>" depends on itself: remove the entry`),
			Entry("depends on itself by the annotation", func() func(*addonv1alpha1.ClusterManagementAddOn) {
				return annotates(`[{"name":"<a>"}]`)
			}, `annotation addon.open-cluster-management.io/dependencies[0]: "<a>" depends on itself: remove the entry`),
			Entry("closes a cycle", func() func(*addonv1alpha1.ClusterManagementAddOn) { return needs("b") },
				`spec.dependencies[0]: circular dependency: <a> -> <b> -> <c> -> <a>: remove the entry, or another dependency of this cycle`),
			Entry("closes a cycle by the annotation", func() func(*addonv1alpha1.ClusterManagementAddOn) {
				return annotates(`[{"name":"<b>","type":"Optional"}]`)
			}, `dependencies[0]: circular dependency: <a> -> <b> -> <c> -> <a>: remove the entry`),
			Entry("names a dependency twice in the annotation", func() func(*addonv1alpha1.ClusterManagementAddOn) {
				return annotates(`[{"name":"x"},{"name":"x"}]`)
			}, `dependencies[1]: "x" is listed twice: remove one of the entries`),
			Entry("has a type that there is not", func() func(*addonv1alpha1.ClusterManagementAddOn) {
				return annotates(`[{"name":"x","type":"Perhaps"}]`)
			}, `"x" has type "Perhaps": must be Required or Optional`),
			Entry("has an annotation that is no JSON", func() func(*addonv1alpha1.ClusterManagementAddOn) { return annotates(`[{"name`) },
				`annotation addon.open-cluster-management.io/dependencies: invalid JSON`),
			Entry("has an annotation that is empty", func() func(*addonv1alpha1.ClusterManagementAddOn) { return annotates(``) },
				`must be a JSON array such as`),
			Entry("has an annotation of another shape", func() func(*addonv1alpha1.ClusterManagementAddOn) { return annotates(`{"name":"x"}`) },
				`must be a JSON array such as`),
		)

		It("rejects the edit that closes a cycle, right after the one that prepared it, and no other", func(ctx SpecContext) {
			a := f.define(ctx, "a", nil)
			f.define(ctx, "b", needs("a"))
			close := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dependencies":[{"name":"`+f.nameOf("b")+`"}]}}`))
			Expect(user.Patch(ctx, a, close)).To(MatchError(ContainSubstring(
				named("circular dependency: <a> -> <b> -> <a>"))))

			By("allowing it while no webhook responds, and breaking it again step by step")
			runWithoutWebhooks()
			Expect(user.Patch(ctx, a, close)).To(Succeed())
			onA := f.enable(ctx, cluster, "a")
			Eventually(conditionOf(onA, "Degraded")).WithContext(ctx).Should(Equal(seen{
				"True", "RequiredDependencyNotSatisfied", named("circular dependency: <a> -> <b> -> <a>")}))
			stopHub()
			_, stopHub = runHub(withWebhooks)
			awaitWebhooks(ctx)
			label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`))
			Expect(user.Patch(ctx, a, label)).To(Succeed(), "an edit of something else")
			another := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/dependencies/-","value":{"name":"x"}}]`))
			var err error
			said := heard.of(func() { err = user.Patch(ctx, a, another) })
			Expect(err).NotTo(HaveOccurred(), "an edit beside it")
			Expect(said).To(ConsistOf(ContainSubstring("circular dependency"), ContainSubstring(`ClusterManagementAddOn "x" does not exist yet`)))
			Expect(user.Patch(ctx, a, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dependencies":null}}`)))).To(Succeed())
			Eventually(conditionOf(onA, "Degraded")).WithContext(ctx).Should(Equal(none))
		})

		It("warns of a dependency that does not exist yet, and of an annotation that is not used", func(ctx SpecContext) {
			d := definition("a", annotates(`[{"name":"x"}]`))
			needs("later")(d)
			Expect(heard.of(func() { Expect(user.Create(ctx, d)).To(Succeed()) })).To(ConsistOf(
				ContainSubstring("is ignored because spec.dependencies is set"),
				ContainSubstring(`ClusterManagementAddOn "`+f.nameOf("later")+`" does not exist yet`)))
			DeferCleanup(func(ctx SpecContext) { Expect(user.Delete(ctx, d)).To(Succeed()) })
		})

		It("warns of a write that removes all dependencies, as clusteradm addon create --overwrite does", func(ctx SpecContext) {
			f.define(ctx, "b", nil)
			d := f.define(ctx, "a", annotates(`[{"name":"<b>","type":"Optional"}]`))
			overwrite := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
			command := `kubectl annotate clustermanagementaddon <a> 'addon.open-cluster-management.io/dependencies=[{"name":"<b>","type":"Optional"}]'`
			want := []string{
				named(`this write removes all dependencies of "<a>" (<b>): unless that is intended, restore annotation addon.open-cluster-management.io/dependencies`),
				named("to restore them: " + command),
			}
			Expect(heard.of(func() { Expect(user.Patch(ctx, d.DeepCopy(), overwrite, client.DryRunAll)).To(Succeed()) })).To(Equal(want))

			By("keeping them by the field")
			takeOver := client.RawPatch(types.MergePatchType, []byte(named(
				`{"metadata":{"annotations":null},"spec":{"dependencies":[{"name":"<b>","type":"Optional"}]}}`)))
			Expect(heard.of(func() { Expect(user.Patch(ctx, d.DeepCopy(), takeOver, client.DryRunAll)).To(Succeed()) })).To(BeEmpty())

			By("removing and restoring them")
			Expect(heard.of(func() { Expect(user.Patch(ctx, d, overwrite)).To(Succeed()) })).To(Equal(want))
			Expect(heard.of(func() { edit(ctx, d, needs("b")) })).To(BeEmpty())
			Expect(heard.of(func() {
				Expect(user.Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"dependencies":null}}`)))).To(Succeed())
			})).To(ContainElement(HavePrefix(named(`this write removes all dependencies of "<a>" (<b>): unless that is intended, restore spec.dependencies`))))
		})

		It("judges what comes through v1beta1 as well", func(ctx SpecContext) {
			f.define(ctx, "b", needs("a"))
			beta := func(dependencies ...any) *unstructured.Unstructured {
				d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
					"installStrategy": map[string]any{"type": "Manual"}, "dependencies": dependencies,
				}}}
				d.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
				d.SetKind("ClusterManagementAddOn")
				d.SetName(f.nameOf("a"))
				return d
			}
			refused(func(options ...client.CreateOption) error {
				return user.Create(ctx, beta(map[string]any{"name": f.nameOf("b")}), options...)
			}, named("circular dependency: <a> -> <b> -> <a>"))
			fine := beta(map[string]any{"name": f.nameOf("c")})
			Expect(user.Create(ctx, fine)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(user.Delete(ctx, fine)).To(Succeed()) })
			Expect(user.Patch(ctx, fine, client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"add","path":"/spec/dependencies/-","value":{"name":"`+f.nameOf("a")+`"}}]`)))).To(MatchError(
				ContainSubstring("depends on itself")))
		})
	})

	Describe("of a ClusterManagementAddOn that is deleted", func() {
		It("warns of dependents, and allows the deletion", func(ctx SpecContext) {
			zookeeper := f.define(ctx, "zookeeper", nil)
			for name, dependencyType := range map[string]addonv1alpha1.DependencyType{
				"kafka": "Required", "spark": "Required", "graphs": "Optional",
			} {
				f.define(ctx, name, f.withNeeds(need{Name: "zookeeper", Type: dependencyType}))
			}
			want := fmt.Sprintf("%s, %s require %s and will become unavailable where it is removed with its definition (kubectl addon dependents %s)",
				f.nameOf("kafka"), f.nameOf("spark"), zookeeper.Name, zookeeper.Name)
			// The webhook reads from a watch cache, which may be stale.
			Eventually(func() []string {
				return heard.of(func() { Expect(user.Delete(ctx, zookeeper, client.DryRunAll)).To(Succeed()) })
			}).WithContext(ctx).Should(Equal([]string{want}))
			Expect(heard.of(func() { Expect(user.Delete(ctx, zookeeper)).To(Succeed()) })).To(Equal([]string{want}))
			Expect(exists(zookeeper)(Default, ctx)).To(BeFalse())
		})

		It("does not warn without dependents, or if it is being deleted already", func(ctx SpecContext) {
			going := f.define(ctx, "going", func(d *addonv1alpha1.ClusterManagementAddOn) { d.Finalizers = []string{"tandem.test/going"} })
			Expect(heard.of(func() { Expect(user.Delete(ctx, going)).To(Succeed()) })).To(BeEmpty())
			staying := f.define(ctx, "staying", nil)
			f.define(ctx, "kafka", f.withNeeds(need{Name: "going"}, need{Name: "staying"}))
			Eventually(func() []string {
				return heard.of(func() { Expect(user.Delete(ctx, staying, client.DryRunAll)).To(Succeed()) })
			}).WithContext(ctx).Should(HaveLen(1))
			Expect(heard.of(func() { Expect(user.Delete(ctx, going)).To(Succeed()) })).To(BeEmpty())
			Expect(server.Patch(ctx, going, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		})
	})

	Describe("of a ManagedClusterAddOn", func() {
		It("warns of dependents on the cluster, and allows the deletion", func(ctx SpecContext) {
			other := f.cluster(ctx, "other")
			need := func(dependencyType addonv1alpha1.DependencyType) func(*addonv1alpha1.ClusterManagementAddOn) {
				return f.withNeeds(addonv1alpha1.AddonDependency{Name: "zookeeper", Type: dependencyType})
			}
			f.define(ctx, "zookeeper", nil)
			for name, dependencyType := range map[string]addonv1alpha1.DependencyType{
				"kafka": "Required", "spark": "Required", "graphs": "Optional", "elsewhere": "Required", "leaving": "Required",
			} {
				f.define(ctx, name, need(dependencyType))
				where := cluster
				if name == "elsewhere" {
					where = other
				}
				f.enable(ctx, where, name, func(a *addonv1alpha1.ManagedClusterAddOn) {
					if name == "leaving" {
						a.Finalizers = []string{"tandem.test/leaving"}
					}
				})
			}
			leaving := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("leaving")}}
			Expect(server.Delete(ctx, leaving)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) {
				Expect(server.Patch(ctx, leaving, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
			})
			zookeeper := f.enable(ctx, cluster, "zookeeper")
			want := fmt.Sprintf("%s, %s on %s require %s and will become unavailable (kubectl addon dependents %s)",
				f.nameOf("kafka"), f.nameOf("spark"), cluster, f.nameOf("zookeeper"), f.nameOf("zookeeper"))
			// The webhook reads from a watch cache, which may be stale.
			Eventually(func() []string {
				return heard.of(func() { Expect(user.Delete(ctx, zookeeper, client.DryRunAll)).To(Succeed()) })
			}).WithContext(ctx).Should(Equal([]string{want}))
			Expect(heard.of(func() {
				Expect(user.Delete(ctx, zookeeper, client.DryRunAll, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
			})).To(Equal([]string{want}), "in whatever way")

			beta := &unstructured.Unstructured{}
			beta.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
			beta.SetKind("ManagedClusterAddOn")
			beta.SetNamespace(zookeeper.Namespace)
			beta.SetName(zookeeper.Name)
			Expect(heard.of(func() { Expect(user.Delete(ctx, beta)).To(Succeed()) })).To(Equal([]string{want}), "through v1beta1")
			Expect(exists(zookeeper)(Default, ctx)).To(BeFalse())
		})

		It("warns only of dependents that nothing else satisfies, and only where the dependency exists", func(ctx SpecContext) {
			describeCluster(ctx, cluster, map[string]string{"gpu": "true"}, "v1.37.2")
			f.define(ctx, "replaced", f.withNeeds(addonv1alpha1.AddonDependency{Name: "base", Alternatives: []string{"other"}}))
			f.define(ctx, "stranded", f.withNeeds(addonv1alpha1.AddonDependency{Name: "nowhere", Alternatives: []string{"base"}}))
			f.define(ctx, "here", f.withNeeds(addonv1alpha1.AddonDependency{Name: "base", Clusters: withLabel("gpu")}))
			f.define(ctx, "elsewhere", f.withNeeds(addonv1alpha1.AddonDependency{Name: "base", Clusters: withLabel("arm")}))
			for _, name := range []string{"replaced", "stranded", "here", "elsewhere"} {
				f.enable(ctx, cluster, name)
			}
			other, base := f.install(ctx, cluster, "other"), f.enable(ctx, cluster, "base")
			want := fmt.Sprintf("%s, %s on %s require %s and will become unavailable (kubectl addon dependents %s)",
				f.nameOf("here"), f.nameOf("stranded"), cluster, f.nameOf("base"), f.nameOf("base"))
			Eventually(func() []string {
				return heard.of(func() { Expect(user.Delete(ctx, base, client.DryRunAll)).To(Succeed()) })
			}).WithContext(ctx).Should(Equal([]string{want}))
			By("another add-on that does not work replaces none")
			report(ctx, other, metav1.ConditionFalse, "Broken")
			want = fmt.Sprintf("%s, %s, %s on %s require %s and will become unavailable (kubectl addon dependents %s)",
				f.nameOf("here"), f.nameOf("replaced"), f.nameOf("stranded"), cluster, f.nameOf("base"), f.nameOf("base"))
			Eventually(func() []string {
				return heard.of(func() { Expect(user.Delete(ctx, base, client.DryRunAll)).To(Succeed()) })
			}).WithContext(ctx).Should(Equal([]string{want}))
		})

		It("warns of a change while it is being deleted, which is lost", func(ctx SpecContext) {
			going := f.enable(ctx, cluster, "going", func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Finalizers, a.Annotations = []string{"tandem.test/going"}, map[string]string{"a": "b"}
			})
			patched := func(patch string) func() error {
				return func() error {
					return user.Patch(ctx, going.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
				}
			}
			updated := func(c client.Client) func() error { // as clusteradm does, with or without a difference
				return func() error {
					return environment.Edit(ctx, c, going.DeepCopy(), func(*addonv1alpha1.ManagedClusterAddOn) {})
				}
			}
			changes := map[string]func() error{
				"spec":                  patched(`{"spec":{"installNamespace":"elsewhere"}}`),
				"labels":                patched(`{"metadata":{"labels":{"tier":"gold"}}}`),
				"annotations":           patched(`{"metadata":{"annotations":null}}`),
				"nothing, by a patch":   patched(`{}`),
				"nothing, by an update": updated(user),
				"spec, in a dry run": func() error {
					return user.Patch(ctx, going.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"installNamespace":"c"}}`)), client.DryRunAll)
				},
				"spec, through v1beta1": func() error {
					beta := &unstructured.Unstructured{}
					beta.SetAPIVersion("addon.open-cluster-management.io/v1beta1")
					beta.SetKind("ManagedClusterAddOn")
					beta.SetNamespace(going.Namespace)
					beta.SetName(going.Name)
					return user.Patch(ctx, beta, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tier":"silver"}}}`)))
				},
			}
			for what, change := range changes {
				Expect(heard.of(func() { Expect(change()).To(Succeed()) })).To(BeEmpty(), "%s of an add-on that stays", what)
			}
			Expect(server.Delete(ctx, going)).To(Succeed())
			for what, change := range changes {
				Expect(heard.of(func() { Expect(change()).To(Succeed()) })).To(Equal([]string{fmt.Sprintf("%s is being removed from %s, so this change "+
					"is lost: enable it again once it is gone ('kubectl addon enable' waits for that)", going.Name, cluster)}), what)
			}

			Expect(heard.of(func() {
				Expect(user.Status().Patch(ctx, going.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"namespace":"a"}}`)))).To(Succeed())
				Expect(patched(`{"metadata":{"finalizers":null}}`)()).To(Succeed())
			})).To(BeEmpty(), "what controllers write")
			Expect(exists(going)(Default, ctx)).To(BeFalse())
		})

		It("does not warn without dependents", func(ctx SpecContext) {
			alone := f.enable(ctx, cluster, "alone")
			Expect(heard.of(func() { Expect(user.Delete(ctx, alone)).To(Succeed()) })).To(BeEmpty())
		})
	})

	It("refuses an OperatorVersion that is not valid, and reports its problems", func(ctx SpecContext) {
		broken := f.push(ctx, "kafka", packages).DeepCopy()
		broken.ObjectMeta = metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("broken") + "-1.0.0"}
		broken.Spec.Tasks[0].Spec.Resources = []string{"missing.yaml"}
		broken.Spec.Parameters[1].Default = ptrTo("many")
		refused(func(options ...client.CreateOption) error { return user.Create(ctx, broken.DeepCopy(), options...) },
			"OperatorVersion addon-packages/"+broken.Name+" is not valid; fix the package "+
				"('kubectl addon package verify DIR' checks it): ")
		Expect(user.Create(ctx, broken.DeepCopy())).To(MatchError(And(
			ContainSubstring(`"missing.yaml"`), ContainSubstring(`"many"`))))
	})

	It("leaves alone an OperatorVersion that no managed cluster may use, and no other", func(ctx SpecContext) {
		broken := f.push(ctx, "kafka", packages).DeepCopy()
		makeNamespace(ctx, f.nameOf("bare"))
		broken.Spec.Tasks[0].Spec.Resources = []string{"missing.yaml"}
		broken.ObjectMeta = metav1.ObjectMeta{Namespace: cluster, Name: f.nameOf("broken")}
		Expect(user.Create(ctx, broken.DeepCopy())).To(MatchError(ContainSubstring("is not valid")))
		broken.Namespace = f.nameOf("bare")
		Expect(user.Create(ctx, broken)).To(Succeed())
	})

	Describe("of an Instance", func() {
		var version, later *kudo.OperatorVersion
		// strict adds an immutable parameter, and two parameters that trigger plans of their own.
		strict := func(ctx context.Context, name, fixed string) *kudo.OperatorVersion {
			GinkgoHelper()
			v := f.pushPlans(ctx, name+"-base", packages, "scale", "backup")
			v = &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf(name)}, Spec: v.Spec}
			v.Spec.Parameters = append(v.Spec.Parameters,
				kudo.Parameter{Name: "FIXED", Default: &fixed, Immutable: ptrTo(true)},
				kudo.Parameter{Name: "SCALE", Trigger: "scale"}, kudo.Parameter{Name: "BACKUP", Trigger: "backup"})
			Expect(server.Create(ctx, v)).To(Succeed())
			return v
		}
		BeforeEach(func(ctx SpecContext) {
			version, later = strict(ctx, "strict", "small"), strict(ctx, "later", "large")
		})
		// start acts as the agent: it reports that it has started the Instance's desired state.
		start := func(ctx context.Context, i *kudo.Instance, version *kudo.OperatorVersion) {
			GinkgoHelper()
			started := get(ctx, i)
			before := started.DeepCopy()
			started.Status.Execution = &kudo.Execution{
				UID: "x", Plan: kudo.DeployPlan, Parameters: started.Spec.Parameters,
				OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID},
			}
			Expect(server.Status().Patch(ctx, started, client.MergeFrom(before))).To(Succeed())
		}
		instance := func(pairs ...string) *kudo.Instance {
			i := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
			i.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
			i.Spec.Parameters = map[string]string{}
			for at := 0; at < len(pairs); at += 2 {
				i.Spec.Parameters[pairs[at]] = pairs[at+1]
			}
			return i
		}

		DescribeTable("refuses to create one with",
			func(ctx SpecContext, pairs []string, text string) {
				refused(func(options ...client.CreateOption) error { return user.Create(ctx, instance(pairs...), options...) }, text)
			},
			Entry("a parameter that is not defined", []string{"TYPO", "x"},
				`/mine: parameter "TYPO": not defined: the operator has TEXT, COUNT, FIXED, SCALE, BACKUP`),
			Entry("a parameter that is misspelt", []string{"COUNTS", "3"}, `/mine: parameter "COUNTS": not defined: did you mean COUNT?`),
			Entry("more than an Instance can hold", []string{"TEXT", strings.Repeat("x", parameter.MaxBytes)},
				`/mine: parameter "TEXT": all parameters together have 524299 bytes, more than the limit of 524288 for an Instance`),
			Entry("a value of the wrong type", []string{"COUNT", "many"}, `parameter "COUNT": value "many": must be an integer, such as 3`),
			Entry("several problems", []string{"COUNT", "many", "TYPO", "x"},
				`parameter "COUNT": value "many": must be an integer, such as 3; parameter "TYPO": not defined`),
		)

		DescribeTable("refuses the edit that",
			func(ctx SpecContext, change func(*kudo.Instance), text string) {
				existing := instance("COUNT", "3")
				Expect(user.Create(ctx, existing)).To(Succeed())
				Eventually(resolvedOf(existing)).WithContext(ctx).Should(HaveField("Status", "True"))
				Expect(environment.Edit(ctx, user, existing, change, client.DryRunAll)).To(MatchError(ContainSubstring(text)))
				Expect(environment.Edit(ctx, user, existing, change)).To(MatchError(ContainSubstring(text)))

				By("letting everything else through")
				unchanged := get(ctx, existing)
				Expect(user.Patch(ctx, unchanged, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`)))).To(Succeed())
				Expect(user.Delete(ctx, unchanged)).To(Succeed())
				reportRemoved(ctx, unchanged)
				Eventually(exists(unchanged)).WithContext(ctx).Should(BeFalse())
			},
			Entry("sets a wrong value", func(i *kudo.Instance) { i.Spec.Parameters["COUNT"] = "many" }, `value "many": must be an integer`),
			Entry("changes an immutable parameter", func(i *kudo.Instance) { i.Spec.Parameters["FIXED"] = "huge" },
				`parameter "FIXED": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`),
			Entry("changes it by another version's default", func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = later.Name },
				`parameter "FIXED": value "large": immutable, and its current value is "small"`),
			Entry("triggers two plans",
				func(i *kudo.Instance) { i.Spec.Parameters["SCALE"], i.Spec.Parameters["BACKUP"] = "2", "x" },
				`the changed parameters trigger 2 plans, "scale" (SCALE) and "backup" (BACKUP): change the parameters of one plan at a time`),
			Entry("asks for a plan that does not exist", func(i *kudo.Instance) { i.Spec.PlanExecution.PlanName = "fly" },
				`spec.planExecution.planName is "fly", but OperatorVersion addon-packages/`),
		)

		It("warns of an OperatorVersion that does not exist yet", func(ctx SpecContext) {
			early := instance()
			early.Spec.OperatorVersion.Name = f.nameOf("early") + "-1.0.0"
			Expect(heard.of(func() { Expect(user.Create(ctx, early)).To(Succeed()) })).To(Equal([]string{
				"the Instance cannot run yet: OperatorVersion addon-packages/" + early.Spec.OperatorVersion.Name + " does not exist: " +
					"push its package (kubectl addon package push DIR -n addon-packages), or use another version"}))
		})

		It("is the same right after the OperatorVersion was created", func(ctx SpecContext) {
			for i := range 10 {
				fresh := f.push(ctx, fmt.Sprintf("fresh-%d", i), packages)
				wrong := instance("TYPO", "x")
				wrong.Spec.OperatorVersion.Name = fresh.Name
				Expect(user.Create(ctx, wrong)).To(MatchError(ContainSubstring(`"TYPO"`)))
			}
		})

		It("reveals nothing about an OperatorVersion that agents may not read", func(ctx SpecContext) {
			makeNamespace(ctx, f.nameOf("secret"))
			secret := f.push(ctx, "secret", f.nameOf("secret"))
			curious := instance("TYPO", "x")
			curious.Spec.OperatorVersion = corev1.ObjectReference{Namespace: secret.Namespace, Name: secret.Name}
			Expect(heard.of(func() { Expect(user.Create(ctx, curious)).To(Succeed()) })).To(ConsistOf(
				ContainSubstring("which agents are not allowed to read")))
			Eventually(resolvedOf(curious)).WithContext(ctx).Should(And(
				HaveField("Reason", "NamespaceNotAllowed"), HaveField("Message", Not(ContainSubstring("TYPO")))))
		})

		It("only warns of the creation of an Instance outside of the namespaces of managed clusters", func(ctx SpecContext) {
			makeNamespace(ctx, f.nameOf("bare"))
			bare := instance("TYPO", "x")
			bare.Namespace = f.nameOf("bare")
			want := []string{`the Instance cannot run yet: ManagedCluster "` + bare.Namespace +
				`" does not exist or is being deleted: create the Instance in the namespace of a managed cluster`}
			Expect(heard.of(func() { Expect(user.Create(ctx, bare.DeepCopy(), client.DryRunAll)).To(Succeed()) })).To(Equal(want))
			Expect(heard.of(func() { Expect(user.Create(ctx, bare)).To(Succeed()) })).To(Equal(want))
			change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"TYPO":"y"}}}`))
			Expect(heard.of(func() { Expect(user.Patch(ctx, bare, change)).To(Succeed()) })).To(BeEmpty())
			mirror := instance()
			mirror.Namespace, mirror.Name, mirror.Annotations = bare.Namespace, "mirror", map[string]string{kudo.AnnotationHubUID: "x"}
			Expect(heard.of(func() { Expect(user.Create(ctx, mirror)).To(Succeed()) })).To(BeEmpty())
		})

		It("lets in what became invalid, but for its problem", func(ctx SpecContext) {
			runWithoutWebhooks()
			wrong := instance("COUNT", "many", "TYPO", "x")
			Expect(user.Create(ctx, wrong)).To(Succeed(), "no webhook responds")
			Eventually(resolvedOf(wrong)).WithContext(ctx).Should(And(
				HaveField("Reason", "ParametersInvalid"), HaveField("Message", And(ContainSubstring("COUNT"), ContainSubstring("TYPO")))))
			stopHub()
			_, stopHub = runHub(withWebhooks)
			awaitWebhooks(ctx)
			patch := func(text string) error {
				return user.Patch(ctx, wrong.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
			}
			Expect(patch(`{"metadata":{"labels":{"x":"y"}}}`)).To(Succeed())
			Expect(patch(`{"spec":{"parameters":{"TEXT":"b"}}}`)).To(Succeed())
			Expect(patch(`{"spec":{"parameters":{"COUNT":"few"}}}`)).To(MatchError(ContainSubstring(`parameter "COUNT": value "few"`)))
			Expect(patch(`{"spec":{"parameters":{"TYPO":null}}}`)).To(Succeed())
			Expect(patch(`{"spec":{"parameters":{"COUNT":"3"}}}`)).To(Succeed())
			Eventually(resolvedOf(wrong)).WithContext(ctx).Should(HaveField("Status", "True"))
		})

		It("lets in what Resolved asks for, after an immutable parameter got another value", func(ctx SpecContext) {
			changed := instance()
			Expect(user.Create(ctx, changed)).To(Succeed())
			start(ctx, changed, version)
			runWithoutWebhooks()
			patch := func(text string) error {
				return user.Patch(ctx, changed.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
			}
			Expect(patch(`{"spec":{"parameters":{"FIXED":"huge"}}}`)).To(Succeed(), "no webhook responds")
			problem := ContainSubstring(`parameter "FIXED": immutable, and its current value is "small": set that`)
			Eventually(resolvedOf(changed)).WithContext(ctx).Should(HaveField("Message", problem))
			stopHub()
			_, stopHub = runHub(withWebhooks)
			awaitWebhooks(ctx)
			Expect(patch(`{"spec":{"parameters":{"FIXED":"tiny"}}}`)).To(MatchError(ContainSubstring(`its current value is "small"`)))
			Expect(patch(`{"spec":{"parameters":{"FIXED":"small"}}}`)).To(Succeed())
			Eventually(resolvedOf(changed)).WithContext(ctx).Should(HaveField("Status", "True"))
		})

		It("checks addon-manager's own writes by Resolved, and only these of the same Instance", func(ctx SpecContext) {
			f.define(ctx, "kafka", runs(version))
			variables := f.variables(ctx, "variables", cluster, "FIXED", "huge", "COUNT", "3")
			kafka := f.enable(ctx, cluster, "kafka", withConfigs(variables))
			own := instanceOf(kafka)
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
			start(ctx, own, version)

			By("changing an immutable parameter where no webhook can reject it")
			fix := func(value string) {
				GinkgoHelper()
				edit(ctx, variables, func(c *addonv1alpha1.AddOnDeploymentConfig) { c.Spec.CustomizedVariables[0].Value = value })
			}
			fix("tiny")
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(And(HaveField("Reason", "ParametersInvalid"),
				HaveField("Message", ContainSubstring(`parameter "FIXED": immutable, and its current value is not shown`))))
			Expect(specOf(own)(Default, ctx).Parameters).To(HaveKeyWithValue("FIXED", "tiny"))

			By("editing it by hand")
			Expect(user.Patch(ctx, own, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"parameters":{"COUNT":"many"}}}`)))).To(
				MatchError(ContainSubstring(`parameter "COUNT": value "many"`)))

			fix("huge")
			Eventually(conditionOf(kafka, "Resolved")).WithContext(ctx).Should(HaveField("Status", "True"))
		})

		It("knows addon-manager by whatever name it runs", func(ctx SpecContext) {
			stopHub()
			_, stopHub = runHub(withWebhooks, func(config *rest.Config, _ *hub.Options) { config.Impersonate = rest.ImpersonationConfig{} })
			awaitWebhooks(ctx)
			Expect(user.Create(ctx, instance("TYPO", "x"), client.DryRunAll)).To(Succeed(), "that is who addon-manager is now")
			other := rest.CopyConfig(config)
			other.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:masters"}}
			somebody, err := client.New(other, client.Options{Scheme: server.Scheme()})
			Expect(err).NotTo(HaveOccurred())
			Expect(somebody.Create(ctx, instance("TYPO", "x"), client.DryRunAll)).To(MatchError(ContainSubstring(`"TYPO"`)))
		})
	})
})
