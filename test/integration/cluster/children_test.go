package cluster

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// grove is a cluster with its agent for one spec, with trees of Instances.
type grove struct {
	*site
	stopHub, stopAgent func()
}

func plant(ctx context.Context) *grove {
	GinkgoHelper()
	g := &grove{site: &site{name: "grove-" + rand.String(6)}}
	Expect(hubServer.Apply(ctx, "cluster", manifests.ClusterParameters{Cluster: g.name})).To(Succeed())
	g.register(ctx)
	collectGarbage(g.name)
	g.stopHub, g.stopAgent = runHub(), runAgentOf(g.name)
	return g
}

// plantEach creates a grove for each spec, and checks that nothing remains on the hub at the end.
func plantEach(g **grove) {
	BeforeEach(func(ctx SpecContext) { *g = plant(ctx) })
	AfterEach(func(ctx SpecContext) {
		(*g).deleteAll(ctx)
		Eventually(func(check Gomega) {
			var left kudo.InstanceList
			check.Expect(server.List(ctx, &left, client.InNamespace((*g).name))).To(Succeed())
			check.Expect(left.Items).To(BeEmpty())
		}).WithContext(ctx).Should(Succeed())
		(*g).unregister(ctx)
	})
}

// child returns a KudoOperator task with the operator's name.
func child(operator string, change ...func(*kudo.Task)) kudo.Task {
	task := kudo.Task{Name: operator, Kind: kudo.TaskKudoOperator}
	task.Spec.Package = operator
	for _, c := range change {
		c(&task)
	}
	return task
}

func enabledBy(parameter string) func(*kudo.Task) {
	return func(t *kudo.Task) { t.Spec.EnablingParameter = parameter }
}

func withParameterFile(file string) func(*kudo.Task) {
	return func(t *kudo.Task) { t.Spec.ParameterFile = file }
}

func withInstanceName(name string) func(*kudo.Task) {
	return func(t *kudo.Task) { t.Name, t.Spec.InstanceName = name, name }
}

func stringParameter(name, value string) kudo.Parameter {
	return kudo.Parameter{Name: name, Default: &value}
}

// push stores a version of an operator in the cluster's own namespace. Its plan runs the tasks one after the other, and then a task that
// applies a ConfigMap with the operator's parameters.
func (g *grove) push(ctx context.Context, operator, version string, tasks ...kudo.Task) *kudo.OperatorVersion {
	GinkgoHelper()
	return g.pushWith(ctx, operator, version, nil, tasks...)
}

func (g *grove) pushWith(
	ctx context.Context, operator, version string, change func(*kudo.OperatorVersionSpec), tasks ...kudo.Task,
) *kudo.OperatorVersion {
	GinkgoHelper()
	phase := kudo.Phase{Name: "main"}
	config := kudo.Task{Name: "config", Kind: kudo.TaskApply}
	config.Spec.Resources = []string{"config.yaml"}
	tasks = append(slices.Clone(tasks), config)
	for _, task := range tasks {
		phase.Steps = append(phase.Steps, kudo.Step{Name: task.Name, Tasks: []string{task.Name}})
	}
	pushed := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: operator + "-" + version},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: operator},
			Version:  version,
			Templates: map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Name }}\n" +
				"data:\n{{- range $name, $value := .Params }}\n  {{ $name }}: {{ $value | quote }}\n{{- end }}\n"},
			Tasks: tasks,
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{phase}}},
		},
	}
	if change != nil {
		change(&pushed.Spec)
	}
	Expect(server.Create(ctx, pushed)).To(Succeed())
	return pushed
}

// root creates an Instance without a parent, of an OperatorVersion in the cluster's own namespace.
func (g *grove) root(ctx context.Context, name, version string, parameters map[string]string) {
	GinkgoHelper()
	Expect(server.Create(ctx, &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: name},
		Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Name: version}, Parameters: parameters},
	})).To(Succeed())
}

// edit changes an Instance's spec.
func (g *grove) edit(ctx context.Context, name string, change func(*kudo.InstanceSpec)) error {
	instance := g.onHub(ctx, name)
	before := instance.DeepCopy()
	change(&instance.Spec)
	return server.Patch(ctx, instance, client.MergeFrom(before))
}

// runs requests a plan of an Instance manually.
func (g *grove) runs(ctx context.Context, name, plan string, uid types.UID) {
	GinkgoHelper()
	Expect(g.edit(ctx, name, func(s *kudo.InstanceSpec) { s.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: uid} })).To(Succeed())
}

// sets sets an Instance's parameters.
func (g *grove) sets(ctx context.Context, name string, parameters map[string]string) {
	GinkgoHelper()
	Expect(g.edit(ctx, name, func(s *kudo.InstanceSpec) { s.Parameters = parameters })).To(Succeed())
}

// settles waits until the Instance is ready for its current spec.
func (g *grove) settles(ctx context.Context, name string) *kudo.Instance {
	GinkgoHelper()
	Eventually(func(check Gomega) {
		instance := g.onHub(ctx, name)
		check.Expect(instance).NotTo(BeNil())
		ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
		check.Expect(ready).NotTo(BeNil())
		check.Expect(ready.Status).To(Equal(metav1.ConditionTrue), ready.Message)
		check.Expect(ready.ObservedGeneration).To(Equal(instance.Generation))
	}).WithContext(ctx).Should(Succeed())
	return g.onHub(ctx, name)
}

// fails waits until the last plan of an Instance has failed with a message that contains text.
func (g *grove) fails(ctx context.Context, name, text string) {
	GinkgoHelper()
	Eventually(func(check Gomega) {
		instance := g.onHub(ctx, name)
		check.Expect(instance.Status.Execution).NotTo(BeNil())
		status := instance.Status.PlanStatus[instance.Status.Execution.Plan]
		check.Expect(status.Status).To(Equal(kudo.FatalError), status.Message)
		check.Expect(status.Message).To(ContainSubstring(text))
	}).WithContext(ctx).Should(Succeed())
}

// awaitGone waits until nothing of these Instances exists on the hub or on the cluster.
func (g *grove) awaitGone(ctx context.Context, names ...string) {
	GinkgoHelper()
	Eventually(func(check Gomega) {
		for _, name := range names {
			check.Expect(g.onHub(ctx, name)).To(BeNil(), name)
			check.Expect(g.mirror(ctx, name)).To(BeNil(), name)
			check.Expect(g.config(ctx, name)).To(BeNil(), name)
		}
	}).WithContext(ctx).Should(Succeed())
}

// config returns the data applied by an Instance of that name; nil if there is none.
func (g *grove) config(ctx context.Context, name string) map[string]string {
	GinkgoHelper()
	config := &corev1.ConfigMap{}
	err := managed.Get(ctx, client.ObjectKey{Namespace: g.name, Name: strings.ReplaceAll(name, ".", "-")}, config)
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	if err != nil {
		return nil
	}
	if config.Data == nil {
		return map[string]string{}
	}
	return config.Data
}

// executions returns the UIDs of the Instances' last executions.
func (g *grove) executions(ctx context.Context, names ...string) map[string]types.UID {
	GinkgoHelper()
	uids := map[string]types.UID{}
	for _, name := range names {
		uids[name] = g.onHub(ctx, name).Status.Execution.UID
	}
	return uids
}

// The recorded events of Instances.
const (
	created  = "created"
	deployed = "deployed"
	failed   = "failed"
	removed  = "removed"
	deleted  = "deleted"
)

// record lists the names of Instances by event on the hub, in order.
type record struct {
	mutex sync.Mutex
	names map[string][]string
}

// follow records the events of the cluster's Instances until the spec ends.
func (g *grove) follow(ctx context.Context) *record {
	GinkgoHelper()
	watcher, err := server.Watch(ctx, &kudo.InstanceList{}, client.InNamespace(g.name))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watcher.Stop)
	r := &record{names: map[string][]string{}}
	go func() {
		for event := range watcher.ResultChan() {
			if instance, ok := event.Object.(*kudo.Instance); ok { // otherwise the watch has ended
				r.note(event.Type, instance)
			}
		}
	}()
	return r
}

func (r *record) note(event apiwatch.EventType, i *kudo.Instance) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	deploy := i.Status.PlanStatus[kudo.DeployPlan].Status
	for what, happened := range map[string]bool{
		created: event == apiwatch.Added, deleted: event == apiwatch.Deleted,
		deployed: deploy == kudo.Complete, failed: deploy == kudo.FatalError, removed: i.IsRemoved(),
	} {
		if happened && !slices.Contains(r.names[what], i.Name) {
			r.names[what] = append(r.names[what], i.Name)
		}
	}
}

// all returns the names of the Instances with that event so far, for Eventually, because a watch lags reads.
func (r *record) all(what string) func() []string {
	return func() []string {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		return slices.Clone(r.names[what])
	}
}

var _ = Describe("A tree of operators", func() {
	var g *grove
	plantEach(&g)

	It("is deployed depth first, rests, and is removed from the top", func(ctx SpecContext) {
		for _, leaf := range []string{"ee", "gg", "cc"} {
			g.push(ctx, leaf, "1.0.0")
		}
		g.push(ctx, "bb", "1.0.0", child("ee"), child("gg"))
		g.push(ctx, "aa", "1.0.0", child("bb"), child("cc"))
		seen := g.follow(ctx)
		g.root(ctx, "aa", "aa-1.0.0", nil)
		root := g.settles(ctx, "aa")
		names := []string{"aa", "aa.bb", "aa.bb.ee", "aa.bb.gg", "aa.cc"}

		for _, name := range names[1:] {
			instance := g.onHub(ctx, name)
			Expect(instance.Labels).To(HaveKeyWithValue(kudo.LabelRoot, "aa"))
			Expect(metav1.GetControllerOf(instance).Kind).To(Equal("Instance"))
			Expect(g.config(ctx, name)).NotTo(BeNil(), name)
		}
		Expect(metav1.IsControlledBy(g.onHub(ctx, "aa.bb"), root)).To(BeTrue())
		Expect(metav1.IsControlledBy(g.onHub(ctx, "aa.bb.ee"), g.onHub(ctx, "aa.bb"))).To(BeTrue())

		By("coming to rest, and writing nothing then")
		for _, name := range names {
			g.settles(ctx, name)
		}
		versions := func() map[string]string {
			versions := map[string]string{}
			for _, name := range names {
				versions[name] = g.onHub(ctx, name).ResourceVersion + " " + g.mirror(ctx, name).ResourceVersion
			}
			return versions
		}
		Eventually(func(check Gomega) {
			check.Consistently(versions).WithTimeout(2 * time.Second).Should(Equal(versions()))
		}).WithContext(ctx).Should(Succeed())

		By("removing it")
		Expect(server.Delete(ctx, root)).To(Succeed())
		g.awaitGone(ctx, names...)
		Eventually(seen.all(deleted)).WithContext(ctx).Should(And(HaveLen(len(names)),
			WithTransform(func(all []string) string { return all[len(all)-1] }, Equal("aa"))), "the tree is one unit")
		Expect(seen.all(created)()).To(Equal([]string{"aa", "aa.bb", "aa.bb.ee", "aa.bb.gg", "aa.cc"}))
		Expect(seen.all(deployed)()).To(Equal([]string{"aa.bb.ee", "aa.bb.gg", "aa.bb", "aa.cc", "aa"}))
		order := seen.all(removed)()
		Expect(order[0]).To(Equal("aa"), "what may need its children goes before them")
		Expect(slices.Index(order, "aa.bb")).To(BeNumerically("<", slices.Index(order, "aa.bb.ee")))
	})

	It("gets its parameters from the top, and keeps them there", func(ctx SpecContext) {
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("PASSWORD", "none"), stringParameter("SIZE", "1")}
		})
		g.push(ctx, "cc", "1.0.0")
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("BB_PASSWORD", ""), stringParameter("SIZED", "true")}
			v.Templates["bb.yaml"] = "PASSWORD: {{ .Params.BB_PASSWORD | quote }}\n{{ if eq .Params.SIZED \"true\" }}SIZE: 3{{ end }}\n"
		}, child("bb", withParameterFile("bb.yaml")), child("cc"))
		g.root(ctx, "aa", "aa-1.0.0", map[string]string{"BB_PASSWORD": "geheim"})
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb")).To(Equal(map[string]string{"PASSWORD": "geheim", "SIZE": "3"}))
		executed := g.executions(ctx, "aa.cc")

		By("unsetting what the file does not give any more")
		g.sets(ctx, "aa", map[string]string{"BB_PASSWORD": "geheim", "SIZED": "false"})
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Spec.Parameters).To(Equal(map[string]string{"PASSWORD": "geheim"}))
		Expect(g.config(ctx, "aa.bb")).To(Equal(map[string]string{"PASSWORD": "geheim", "SIZE": "1"}))
		Expect(g.executions(ctx, "aa.cc")).To(Equal(executed), "a child that stays the same runs no plan")

		By("refusing direct edits, but of what is asked for by hand")
		for what, change := range map[string]func(*kudo.InstanceSpec){
			"parameters":      func(s *kudo.InstanceSpec) { s.Parameters = map[string]string{"PASSWORD": "mine"} },
			"operatorVersion": func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = "cc-1.0.0" },
		} {
			err := g.edit(ctx, "aa.bb", change)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", what, err)
			Expect(err).To(MatchError(ContainSubstring(`are set by its parent: change Instance "aa"`)))
		}
		applies := func(password string) error {
			return server.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
				"metadata": map[string]any{"namespace": g.name, "name": "aa.bb"},
				"spec":     map[string]any{"parameters": map[string]any{"PASSWORD": password}},
			}}), client.FieldOwner("gitops"), client.ForceOwnership, client.DryRunAll)
		}
		Expect(applies("geheim")).To(Succeed(), "what it is may be said again")
		Expect(applies("mine")).To(MatchError(ContainSubstring(`are set by its parent: change Instance "aa"`)))
		Expect(environment.Edit(ctx, server, g.onHub(ctx, "aa.bb"), func(i *kudo.Instance) { i.OwnerReferences = nil })).To(MatchError(ContainSubstring(`cannot be detached from its parent, Instance "aa"`)))
		g.runs(ctx, "aa.bb", kudo.DeployPlan, "by-hand")
		Eventually(func() types.UID { return g.executions(ctx, "aa.bb")["aa.bb"] }).WithContext(ctx).Should(BeEquivalentTo("by-hand"))
		g.settles(ctx, "aa")

		By("disclosing no secrets")
		var events eventsv1.EventList
		Expect(server.List(ctx, &events, client.InNamespace(g.name))).To(Succeed())
		for _, event := range events.Items {
			Expect(event.Note).NotTo(ContainSubstring("geheim"))
		}
	})

	It("has a child that is switched on and off, again and again, whatever state it is in", func(ctx SpecContext) {
		g.push(ctx, "dd", "1.0.0")
		stuck := kudo.Task{Name: "stuck", Kind: kudo.TaskToggle}
		stuck.Spec.Resources, stuck.Spec.Parameter = []string{"stuck.yaml"}, "STUCK"
		g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("STUCK", "false"), stringParameter("MODE", "")}
			v.Templates["stuck.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Name }}-stuck, finalizers: []}\n" +
				"data: {value: {{ if eq .Params.MODE \"bad\" }}{{ fail \"bad mode\" }}{{ end }}x}\n---\n" +
				"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Name }}-stuck}\nspec:\n" +
				"  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}\n"
		}, child("dd"), stuck)
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{
				stringParameter("ON", "false"), stringParameter("STUCK", "false"), stringParameter("MODE", ""),
			}
			v.Templates["bb.yaml"] = "STUCK: {{ .Params.STUCK }}\nMODE: {{ .Params.MODE | quote }}\n"
		}, child("bb", withParameterFile("bb.yaml"), enabledBy("ON")))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb")).To(BeNil())

		By("changing what only configures the child while it is off")
		g.sets(ctx, "aa", map[string]string{"MODE": "good"})
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb")).To(BeNil())

		for range 2 {
			g.sets(ctx, "aa", map[string]string{"ON": "true"})
			g.settles(ctx, "aa")
			Expect(g.config(ctx, "aa.bb.dd")).NotTo(BeNil())
			g.sets(ctx, "aa", map[string]string{"ON": "false"})
			g.settles(ctx, "aa")
			g.awaitGone(ctx, "aa.bb", "aa.bb.dd")
		}

		By("switching it off while it is being deployed, and on again while it is being removed")
		g.sets(ctx, "aa", map[string]string{"ON": "true", "STUCK": "true"})
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(ContainSubstring("aa-bb-stuck"))
		g.sets(ctx, "aa", map[string]string{"ON": "false"})
		g.sets(ctx, "aa", map[string]string{"ON": "t"})
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb.dd")).NotTo(BeNil())

		By("switching it off after it has failed")
		g.sets(ctx, "aa", map[string]string{"ON": "true", "STUCK": "true", "MODE": "bad"})
		g.fails(ctx, "aa", "bad mode")
		g.sets(ctx, "aa", map[string]string{"ON": "0"})
		g.settles(ctx, "aa")
		g.awaitGone(ctx, "aa.bb", "aa.bb.dd")
	})

	It("fails as its child does, and runs the child's plan again with its own", func(ctx SpecContext) {
		g.push(ctx, "ee", "1.0.0")
		g.push(ctx, "bb", "1.0.0", child("ee"))
		g.push(ctx, "aa", "1.0.0", child("bb"))
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "aa-bb-ee"}}
		Expect(client.IgnoreAlreadyExists(managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.name}}))).To(Succeed())
		Expect(managed.Create(ctx, foreign)).To(Succeed())
		seen := g.follow(ctx)
		g.root(ctx, "aa", "aa-1.0.0", nil)
		const reason = "already exists and was not created by this Instance"
		g.fails(ctx, "aa", reason)
		Eventually(seen.all(failed)).WithContext(ctx).Should(Equal([]string{"aa.bb.ee", "aa.bb", "aa"}),
			"who runs the plan again finds all of it on the hub")
		before := g.executions(ctx, "aa.bb", "aa.bb.ee")

		By("failing again while nothing has changed")
		g.runs(ctx, "aa", kudo.DeployPlan, "second")
		Eventually(func(check Gomega) {
			check.Expect(g.executions(ctx, "aa")["aa"]).To(BeEquivalentTo("second"))
			check.Expect(g.executions(ctx, "aa.bb.ee")["aa.bb.ee"]).NotTo(Equal(before["aa.bb.ee"]))
		}).WithContext(ctx).Should(Succeed())
		g.fails(ctx, "aa", reason)

		By("coming right once the cause is gone")
		Expect(managed.Delete(ctx, foreign)).To(Succeed())
		g.runs(ctx, "aa", kudo.DeployPlan, "third")
		g.settles(ctx, "aa")
		Expect(g.config(ctx, "aa.bb.ee")).NotTo(BeNil())

		By("leaving nothing in the child's spec that would be in the way of who asks for the plan as KUDO's clients do")
		Eventually(func() kudo.PlanExecution { return g.onHub(ctx, "aa.bb.ee").Spec.PlanExecution }).WithContext(ctx).Should(BeZero())
		executed := g.executions(ctx, "aa.bb.ee")
		Expect(server.Patch(ctx, g.onHub(ctx, "aa.bb.ee"), client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"planExecution":{"planName":"deploy"}}}`)))).To(Succeed())
		Eventually(func() map[string]types.UID { return g.executions(ctx, "aa.bb.ee") }).WithContext(ctx).ShouldNot(Equal(executed))
		g.settles(ctx, "aa")
	})

	DescribeTable("says why a child cannot be",
		func(ctx SpecContext, file, reason string) {
			g.pushWith(ctx, "bb", "1.0.0", func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{{Name: "COUNT", Type: kudo.IntegerType}}
			})
			g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
				v.Parameters = []kudo.Parameter{stringParameter("SECRET", "")}
				v.Templates["bb.yaml"] = file
			}, child("bb", withParameterFile("bb.yaml")))
			g.root(ctx, "aa", "aa-1.0.0", map[string]string{"SECRET": "geheim: x"})
			g.fails(ctx, "aa", reason)
			Expect(g.message(ctx, "aa")).NotTo(ContainSubstring("geheim"))
		},
		Entry("for a parameter that it does not define", "NAME: {{ .Params.SECRET | quote }}\n",
			`parameter "NAME": not defined`),
		Entry("for a value that is none", "COUNT: many\n", `parameter "COUNT": value "many": must be an integer`),
		Entry("for a file that is not YAML", "COUNT: a: {{ .Params.SECRET | quote }}\n", `parameterFile "bb.yaml": not valid YAML`),
		Entry("for a value that changes the structure of the file", "COUNT: {{ .Params.SECRET }}\n", `template "bb.yaml", line 1: the value of parameter "SECRET"`),
	)

	It("leaves an Instance alone that has a child's name", func(ctx SpecContext) {
		g.push(ctx, "bb", "1.0.0")
		g.pushWith(ctx, "aa", "1.0.0", func(v *kudo.OperatorVersionSpec) {
			v.Parameters = []kudo.Parameter{stringParameter("ON", "true")}
		}, child("bb", enabledBy("ON")))
		g.root(ctx, "aa.bb", "bb-1.0.0", nil)
		existing := g.settles(ctx, "aa.bb")
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.fails(ctx, "aa", `an Instance of this name already exists and is not a child of "aa"`)
		g.sets(ctx, "aa", map[string]string{"ON": "false"})
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").UID).To(Equal(existing.UID))
	})

	It("is upgraded as a whole, and loses what its new version does not have", func(ctx SpecContext) {
		g.push(ctx, "bb", "1.0.0")
		g.push(ctx, "bb", "1.10.0")
		g.push(ctx, "cc", "1.0.0")
		g.push(ctx, "aa", "1.0.0", child("bb", func(t *kudo.Task) { t.Spec.OperatorVersion = "1.0.0" }), child("cc"))
		g.push(ctx, "aa", "2.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.bb").Spec.OperatorVersion.Name).To(Equal("bb-1.0.0"))
		made := g.onHub(ctx, "aa.bb").UID

		Expect(g.edit(ctx, "aa", func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = "aa-2.0.0" })).To(Succeed())
		g.settles(ctx, "aa")
		Expect(g.onHub(ctx, "aa.cc")).To(BeNil(), "what is to go belongs to the upgrade")
		g.awaitGone(ctx, "aa.cc")
		upgraded := g.settles(ctx, "aa.bb")
		Expect(upgraded.Spec.OperatorVersion.Name).To(Equal("bb-1.10.0"), "the highest where none is named")
		Expect(upgraded.UID).To(Equal(made))
		Eventually(func() []string { return acknowledgements(g.onHub(ctx, "aa")) }).WithContext(ctx).Should(ConsistOf("bb Applied"))
	})

	It("is force-released completely", func(ctx SpecContext) {
		g.push(ctx, "ee", "1.0.0")
		g.push(ctx, "bb", "1.0.0", child("ee"))
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		g.stopAgent()
		Expect(server.Patch(ctx, g.onHub(ctx, "aa"), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+kudo.AnnotationForceRelease+`":"true"}}}`)))).To(Succeed())
		Expect(server.Delete(ctx, g.onHub(ctx, "aa"))).To(Succeed())
		for _, name := range []string{"aa", "aa.bb", "aa.bb.ee"} {
			Eventually(func() *kudo.Instance { return g.onHub(ctx, name) }).WithContext(ctx).Should(BeNil())
			Expect(g.config(ctx, name)).NotTo(BeNil(), "it stays on the cluster")
		}
		g.forget(ctx, "aa", "aa.bb", "aa.bb.ee")
	})

	It("stays on a cluster that is detached", func(ctx SpecContext) {
		g.push(ctx, "ee", "1.0.0")
		g.push(ctx, "bb", "1.0.0", child("ee"))
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		names := []string{"aa", "aa.bb", "aa.bb.ee"}
		Expect(server.Delete(ctx, g.cluster())).To(Succeed())
		for _, name := range names {
			Eventually(func() []string { return g.onHub(ctx, name).Finalizers }).WithContext(ctx).Should(BeEmpty())
		}
		g.deleteAll(ctx)
		for _, name := range names {
			Eventually(func() map[string]string { return g.mirror(ctx, name).Annotations }).WithContext(ctx).Should(HaveKey(kudo.AnnotationOrphaned))
			Expect(g.mirror(ctx, name).Annotations).NotTo(HaveKey(kudo.AnnotationHubDeleted))
			Expect(g.config(ctx, name)).NotTo(BeNil())
		}
		g.stopAgent()
		g.forget(ctx, names...)
	})

	It("is taken down by what one of its children suffers, and up again", func(ctx SpecContext) {
		g.push(ctx, "ee", "1.0.0")
		g.push(ctx, "bb", "1.0.0", child("ee"))
		g.push(ctx, "aa", "1.0.0", child("bb"))
		g.root(ctx, "aa", "aa-1.0.0", nil)
		g.settles(ctx, "aa")
		lost := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "aa-bb-ee"}}
		Expect(managed.Delete(ctx, lost)).To(Succeed())
		Eventually(func() string { return g.message(ctx, "aa") }).WithContext(ctx).Should(
			ContainSubstring("ConfigMap " + g.name + "/aa-bb-ee: is missing"))

		g.runs(ctx, "aa.bb.ee", kudo.DeployPlan, "mend")
		g.settles(ctx, "aa")
	})
})

// forget removes mirrors, so that Instances of the same names can be created again, once no agent is running.
func (g *grove) forget(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		mirror := g.mirror(ctx, name)
		Expect(managed.Patch(ctx, mirror, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(managed.Delete(ctx, mirror)).To(Succeed())
	}
}

// message returns the message of condition Ready of an Instance on the hub.
func (g *grove) message(ctx context.Context, name string) string {
	GinkgoHelper()
	instance := g.onHub(ctx, name)
	if instance == nil {
		return ""
	}
	if ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// acknowledgements returns the tasks acknowledged by the hub, each with its state.
func acknowledgements(instance *kudo.Instance) []string {
	var tasks []string
	for _, child := range instance.Status.Children {
		tasks = append(tasks, child.Task+" "+string(child.State))
	}
	return tasks
}
