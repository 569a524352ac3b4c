package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/census"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// grove is the namespace of the trees' resources.
const grove = "grove"

// trees lists the Instances of the proposal's tree (KEP-29), in the order of their creation.
var trees = []string{"aa", "aa.bb", "aa.bb.ee", "aa.bb.gg", "aa.cc"}

var _ = Describe("The tree of operators of KEP-29", Ordered, func() {
	var (
		f        *fleet
		hub      client.WithWatch
		clusters map[string]client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 2)
		var err error
		hub, err = client.NewWithWatch(f.hub, client.Options{Scheme: hubClient(f.hub).Scheme()})
		Expect(err).NotTo(HaveOccurred())
		clusters = map[string]client.Client{}
		for _, name := range []string{"cluster1", "cluster2"} {
			scheme := runtime.NewScheme()
			Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
			Expect(kudo.AddToScheme(scheme)).To(Succeed())
			clusters[name], err = client.New(f.clusters[name], client.Options{Scheme: scheme})
			Expect(err).NotTo(HaveOccurred())
		}
		for _, version := range treePackages() {
			create(ctx, hub, version)
		}
		DeferCleanup(func(ctx context.Context) {
			for name := range clusters {
				Expect(client.IgnoreNotFound(hub.Delete(ctx, treeRoot(name, "")))).To(Succeed())
			}
		})
	})

	It("is walked depth first, on each cluster with its own parameters", func(ctx SpecContext) {
		seen := followTree(ctx, hub, "cluster1")
		Expect(hub.Create(ctx, treeRoot("cluster1", "red"))).To(Succeed())
		Expect(hub.Create(ctx, treeRoot("cluster2", "blue"))).To(Succeed())
		for _, cluster := range []string{"cluster1", "cluster2"} {
			treeSettles(ctx, hub, cluster)
		}
		Eventually(func() []string { _, complete := seen(); return complete }).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).
			Should(Equal([]string{"aa.bb.ee", "aa.bb.gg", "aa.bb", "aa.cc", "aa"}), "a watch lags behind reads")
		created, _ := seen()
		Expect(created).To(Equal(trees))
		for cluster, color := range map[string]string{"cluster1": "red", "cluster2": "blue"} {
			Expect(treeObjects(ctx, clusters[cluster])).To(Equal(map[string]string{
				"aa-bb-ee-h": color, "aa-bb-ee-i": color, "aa-bb-f": color, "aa-bb-gg-j": "", "aa-bb-gg-k": "",
				"aa-cc-l": "", "aa-cc-m": "", "aa-d": color,
			}))
		}
	})

	It("is run by its root alone", func(ctx SpecContext) {
		Expect(environment.Edit(ctx, hub, treeInstance(ctx, hub, "cluster1", "aa.bb"), func(i *kudo.Instance) {
			i.Spec.Parameters = map[string]string{"COLOR": "green"}
		})).To(MatchError(apierrors.IsForbidden, "forbidden"))
		setTree(ctx, hub, "cluster2", map[string]string{"COLOR": "yellow"})
		treeSettles(ctx, hub, "cluster2")
		Expect(treeObjects(ctx, clusters["cluster2"])).To(HaveKeyWithValue("aa-bb-ee-h", "yellow"))
		Expect(treeObjects(ctx, clusters["cluster1"])).To(HaveKeyWithValue("aa-bb-ee-h", "red"))
	})

	It("loses and gets a child again and again while agent and hub are killed at any moment", onSandbox("it kills programs"), func(ctx SpecContext) {
		rounds, seed := number("TREE_ROUNDS", 20), number("TREE_SEED", rand.Uint64())
		AddReportEntry("tree", fmt.Sprintf("TREE_ROUNDS=%d TREE_SEED=%d", rounds, seed))
		chance := rand.New(rand.NewPCG(seed, 0))
		for round := range rounds {
			on := strconv.FormatBool(round%2 == 1)
			By(fmt.Sprintf("round %d of %d: the child is wanted: %s", round+1, rounds, on))
			setTree(ctx, hub, "cluster1", map[string]string{"COLOR": "red", "BB": on})
			pause(ctx, time.Duration(chance.Int64N(int64(3*time.Second))))
			victim := victimsOfTrees[chance.IntN(len(victimsOfTrees))]
			signal(ctx, f.box, victim.cluster, victim.program, syscall.SIGKILL)
			if chance.IntN(4) == 0 && round < rounds-1 { // the next round starts while a plan is running
				continue
			}
			treeSettles(ctx, hub, "cluster1")
			Expect(hasChild(ctx, hub, clusters["cluster1"], "aa.bb.ee")).To(Equal(on == "true"))
		}
		treeSettles(ctx, hub, "cluster1")
	}, SpecTimeout(20*time.Minute))

	gone := func(ctx context.Context, cluster string) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			var left kudo.InstanceList
			g.Expect(hub.List(ctx, &left, client.InNamespace(cluster))).To(Succeed())
			g.Expect(left.Items).To(BeEmpty())
			g.Expect(census.OfTandem(ctx, f.clusters[cluster])).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(recovery).WithPolling(interval).Should(Succeed())
	}

	It("leaves nothing behind when its root is deleted", func(ctx SpecContext) {
		Expect(hub.Delete(ctx, treeRoot("cluster1", ""))).To(Succeed())
		gone(ctx, "cluster1")
	})

	It("is removed from the top even if the garbage collector deletes all of it at the same time", func(ctx SpecContext) {
		before := treeObjects(ctx, clusters["cluster2"])
		holdTree(ctx, clusters["cluster2"], "aa-d", "tandem.test/hold")
		Expect(hub.Delete(ctx, treeRoot("cluster2", ""), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		for _, name := range trees {
			Eventually(func() *metav1.Time { return treeInstance(ctx, hub, "cluster2", name).DeletionTimestamp }).
				WithContext(ctx).WithTimeout(timeout).WithPolling(interval).ShouldNot(BeNil(), name)
		}
		Consistently(func() map[string]string { return treeObjects(ctx, clusters["cluster2"]) }).
			WithContext(ctx).WithTimeout(2 * time.Second).Should(Equal(before))
		holdTree(ctx, clusters["cluster2"], "aa-d")
		gone(ctx, "cluster2")
	})
})

// holdTree sets the finalizers of a task's applied object.
func holdTree(ctx context.Context, cluster client.Client, name string, finalizers ...string) {
	GinkgoHelper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: grove, Name: name}}
	Expect(environment.Edit(ctx, cluster, config, func(c *corev1.ConfigMap) { c.Finalizers = finalizers })).To(Succeed())
}

// victimsOfTrees are Tandem's programs that create a tree on cluster1.
var victimsOfTrees = []struct{ cluster, program string }{{"hub", "addon-manager"}, {"cluster1", "addon-agent"}}

// followTree records the order in which the Instances of a cluster are created on the hub, and in which their deploy plans complete.
func followTree(ctx context.Context, hub client.WithWatch, cluster string) (seen func() (created, complete []string)) {
	GinkgoHelper()
	watcher, err := hub.Watch(ctx, &kudo.InstanceList{}, client.InNamespace(cluster))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(watcher.Stop)
	var (
		mutex             sync.Mutex
		created, complete []string
	)
	note := func(instance *kudo.Instance, event watch.EventType) {
		mutex.Lock()
		defer mutex.Unlock()
		if event == watch.Added {
			created = append(created, instance.Name)
		}
		if instance.Status.PlanStatus[kudo.DeployPlan].Status == kudo.Complete && !slices.Contains(complete, instance.Name) {
			complete = append(complete, instance.Name)
		}
	}
	go func() {
		for event := range watcher.ResultChan() {
			if instance, ok := event.Object.(*kudo.Instance); ok { // otherwise the watch has ended
				note(instance, event.Type)
			}
		}
	}()
	return func() ([]string, []string) {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(created), slices.Clone(complete)
	}
}

// treeSettles waits until the root on a cluster is ready for its current spec.
func treeSettles(ctx context.Context, hub client.Client, cluster string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		root := treeRoot(cluster, "")
		g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(root), root)).To(Succeed())
		ready := ptr.Deref(meta.FindStatusCondition(root.Status.Conditions, kudo.ConditionReady), metav1.Condition{})
		g.Expect(ready.Status).To(Equal(metav1.ConditionTrue), ready.Message)
		g.Expect(ready.ObservedGeneration).To(Equal(root.Generation))
	}).WithContext(ctx).WithTimeout(recovery).WithPolling(interval).Should(Succeed())
}

func setTree(ctx context.Context, hub client.Client, cluster string, parameters map[string]string) {
	GinkgoHelper()
	Eventually(func() error { // addon-manager's admission may be unavailable
		return environment.Edit(ctx, hub, treeRoot(cluster, ""), func(i *kudo.Instance) { i.Spec.Parameters = parameters })
	}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
}

func treeInstance(ctx context.Context, hub client.Client, cluster, name string) *kudo.Instance {
	GinkgoHelper()
	instance := &kudo.Instance{}
	Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance)).To(Succeed())
	return instance
}

// hasChild reports whether an Instance exists on the hub and on the cluster; it fails if only one has it.
func hasChild(ctx context.Context, hub, cluster client.Client, name string) bool {
	GinkgoHelper()
	onHub := hub.Get(ctx, client.ObjectKey{Namespace: "cluster1", Name: name}, &kudo.Instance{})
	here := cluster.Get(ctx, client.ObjectKey{Namespace: grove, Name: name}, &kudo.Instance{})
	for _, err := range []error{onHub, here} {
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
	Expect(here == nil).To(Equal(onHub == nil), "hub and cluster agree about %s", name)
	return onHub == nil
}

// treeObjects returns the objects applied by the tasks of a tree, with their colors.
func treeObjects(ctx context.Context, cluster client.Client) map[string]string {
	GinkgoHelper()
	var configs corev1.ConfigMapList
	Expect(cluster.List(ctx, &configs, client.InNamespace(grove), client.MatchingLabels{kudo.LabelHeritage: kudo.Heritage})).To(Succeed())
	found := map[string]string{}
	for _, config := range configs.Items {
		found[config.Name] = config.Data["color"]
	}
	return found
}

func treeRoot(cluster, color string) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: "aa", Namespace: cluster},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: "aa-1.0.0"},
			Parameters:       map[string]string{"COLOR": color},
			InstallNamespace: grove,
		},
	}
}

// treePackages returns the operators of the proposal: tasks with two letters are children, tasks with one letter apply an object. A color
// is passed from AA by BB to EE, and AA can disable BB.
func treePackages() []*kudo.OperatorVersion {
	colored := []kudo.Parameter{{Name: "COLOR"}}
	optional := append(slices.Clone(colored), kudo.Parameter{Name: "BB", Type: kudo.BooleanType, Default: ptr.To("true")})
	aa := treePackage("aa", optional, "bb", "cc", "d")
	aa.Spec.Tasks[0].Spec.EnablingParameter = "BB"
	return []*kudo.OperatorVersion{
		aa,
		treePackage("bb", colored, "ee", "f", "gg"),
		treePackage("cc", nil, "l", "m"),
		treePackage("ee", colored, "h", "i"),
		treePackage("gg", nil, "j", "k"),
	}
}

func treePackage(operator string, parameters []kudo.Parameter, tasks ...string) *kudo.OperatorVersion {
	version := &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: operator + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: operator}, Version: "1.0.0", Parameters: parameters,
			Templates: map[string]string{"color.yaml": "COLOR: {{ .Params.COLOR | quote }}\n"},
		},
	}
	phase := kudo.Phase{Name: "main"}
	for _, name := range tasks {
		task := kudo.Task{Name: name, Kind: kudo.TaskApply}
		switch {
		case len(name) == 1:
			task.Spec.Resources = []string{name + ".yaml"}
			color := ""
			if parameters != nil {
				color = "{{ .Params.COLOR }}"
			}
			version.Spec.Templates[name+".yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-" + name +
				"\"}\ndata: {color: \"" + color + "\"}\n"
		default:
			task.Kind, task.Spec.Package = kudo.TaskKudoOperator, name
			if name == "bb" || name == "ee" {
				task.Spec.ParameterFile = "color.yaml"
			}
		}
		version.Spec.Tasks = append(version.Spec.Tasks, task)
		phase.Steps = append(phase.Steps, kudo.Step{Name: name, Tasks: []string{name}})
	}
	if parameters == nil {
		delete(version.Spec.Templates, "color.yaml")
	}
	version.Spec.Plans = map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{phase}}}
	return version
}
