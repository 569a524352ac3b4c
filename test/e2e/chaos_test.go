package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/census"
)

//go:embed audit.yaml
var auditPolicy []byte

const (
	// tumbled is the namespace of the Instances' resources.
	tumbled = "tumbled"
	// soon is the longest delay of a failure after a plan was requested.
	soon = 2 * time.Second
	// hang is the longest time for which the hub does not respond.
	hang = 4 * time.Second
	// recovery is the time a cluster may take to reach the desired state: the sandbox waits five seconds before it restarts a program that is
	// often killed, addon-agent retries a failed task after a minute at most, and Kubernetes' controllers and kwok repeat a watch up to a
	// minute after an API server was killed repeatedly, and list up to a minute after that.
	recovery = 5 * time.Minute
)

// desired is the desired state of an Instance on the hub; the zero value means none.
type desired struct{ version, color, metrics string }

// subject is one Instance of the fleet.
type subject struct{ cluster, name string }

var _ = Describe("Plans", Label("chaos"), onSandbox("it kills programs and reads audit logs"), func() {
	It("reach what the hub wants although agents, API servers and links fail at any moment, and do nothing twice", func(ctx SpecContext) {
		rounds, seed := number("CHAOS_ROUNDS", 50), number("CHAOS_SEED", rand.Uint64())
		AddReportEntry("chaos", fmt.Sprintf("CHAOS_ROUNDS=%d CHAOS_SEED=%d", rounds, seed))
		c := newChaos(ctx, rand.New(rand.NewPCG(seed, 0)))
		for round := range rounds {
			By(fmt.Sprintf("going through round %d of %d", round+1, rounds))
			for _, s := range c.subjects() {
				c.change(ctx, s)
			}
			pause(ctx, c.moment(soon))
			c.disturb(ctx)
			if c.chance.IntN(4) > 0 { // otherwise the next round starts while plans are running
				c.expectSettled(ctx)
			}
		}
		c.expectSettled(ctx)

		By("leaving nothing behind")
		for _, s := range c.subjects() {
			c.remove(ctx, s)
		}
		c.expectSettled(ctx)
		for _, cluster := range c.clusters() {
			Eventually(census.OfTandem).WithContext(ctx).WithArguments(c.box.Cluster(cluster).Config()).
				WithTimeout(recovery).WithPolling(time.Second).Should(BeEmpty())
		}

		By("writing nothing of a step that was recorded as complete")
		for _, cluster := range c.clusters() {
			steps := stepsOf(c.box.Cluster(cluster).AuditLog())
			AddReportEntry(cluster, fmt.Sprintf("%d steps were recorded as complete, %d wrote", len(steps.Complete), len(steps.Writes)))
			Expect(len(steps.Complete)).To(BeNumerically(">", rounds), "steps that were recorded as complete")
			Expect(len(steps.Writes)).To(BeNumerically(">", rounds), "steps that wrote")
			Expect(steps.Late()).To(BeEmpty())
		}
	}, SpecTimeout(4*time.Hour)) // for CHAOS_ROUNDS=500; each wait has its own, shorter limit
})

// number returns the value of an environment variable.
func number[N int | uint64](variable string, otherwise N) N {
	GinkgoHelper()
	text, set := os.LookupEnv(variable)
	if !set {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	Expect(err).NotTo(HaveOccurred(), variable)
	return N(value)
}

// pause waits for a duration, so that the next action happens at an arbitrary time.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// chaos is a fleet, its desired state, and the source of random failures.
type chaos struct {
	box      *sandbox.Sandbox
	hub      client.Client
	managed  map[string]client.Client
	wanted   map[subject]desired
	chance   *rand.Rand
	versions []string
}

// newChaos starts a hub with two managed clusters and pushes the package. Each cluster gets two Instances.
func newChaos(ctx context.Context, chance *rand.Rand) *chaos {
	GinkgoHelper()
	box := startSandbox(ctx, 2, func(o *sandbox.Options) { o.AuditPolicy = auditPolicy })
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	c := &chaos{
		box: box, hub: hubClient(box.Hub().Config()), managed: map[string]client.Client{}, wanted: map[subject]desired{}, chance: chance,
		versions: []string{"1.0.0", "2.0.0"},
	}
	for _, cluster := range []string{"cluster1", "cluster2"} {
		managed, err := client.New(box.Cluster(cluster).Config(), client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		c.managed[cluster] = managed
		c.wanted[subject{cluster, "one"}], c.wanted[subject{cluster, "two"}] = desired{}, desired{}
	}
	for _, version := range c.versions {
		Expect(c.hub.Create(ctx, tumbler(version))).To(Succeed())
	}
	return c
}

func (c *chaos) clusters() []string { return slices.Sorted(maps.Keys(c.managed)) }

// subjects returns all Instances in a stable order.
func (c *chaos) subjects() []subject {
	return slices.SortedFunc(maps.Keys(c.wanted), func(a, b subject) int {
		return strings.Compare(a.String(), b.String())
	})
}

// change requests a random one of the four plans: deploy if there is no Instance, else update, upgrade or cleanup.
func (c *chaos) change(ctx context.Context, s subject) {
	GinkgoHelper()
	now := c.wanted[s]
	switch want := c.draw(); {
	case now == desired{}:
		c.wanted[s] = want
		c.deploy(ctx, s)
	case c.chance.IntN(4) == 0:
		c.remove(ctx, s)
	case c.chance.IntN(3) == 0:
		now.version = c.versions[1-slices.Index(c.versions, now.version)]
		c.wanted[s] = now
		c.write(ctx, s)
	default:
		now.color, now.metrics = want.color, want.metrics
		c.wanted[s] = now
		c.write(ctx, s)
	}
}

func (c *chaos) draw() desired {
	return desired{
		version: c.versions[c.chance.IntN(len(c.versions))],
		color:   fmt.Sprintf("color-%d", c.chance.IntN(1000)),
		metrics: strconv.FormatBool(c.chance.IntN(2) == 0),
	}
}

// deploy creates the Instance, after waiting for the removal of an earlier one of the same name.
func (c *chaos) deploy(ctx context.Context, s subject) {
	GinkgoHelper()
	fmt.Fprintf(GinkgoWriter, "%s: deploy %+v\n", s, c.wanted[s])
	c.insist(ctx, func() error { return c.hub.Create(ctx, s.instance(c.wanted[s])) })
}

// write sets the Instance's spec to the desired state.
func (c *chaos) write(ctx context.Context, s subject) {
	GinkgoHelper()
	fmt.Fprintf(GinkgoWriter, "%s: change to %+v\n", s, c.wanted[s])
	c.insist(ctx, func() error {
		instance := &kudo.Instance{}
		if err := c.hub.Get(ctx, s.key(), instance); err != nil {
			return err
		}
		instance.Spec = s.instance(c.wanted[s]).Spec
		return c.hub.Update(ctx, instance)
	})
}

func (c *chaos) remove(ctx context.Context, s subject) {
	GinkgoHelper()
	fmt.Fprintf(GinkgoWriter, "%s: remove\n", s)
	c.wanted[s] = desired{}
	c.insist(ctx, func() error { return client.IgnoreNotFound(c.hub.Delete(ctx, s.instance(desired{}))) })
}

// insist retries until do succeeds, because the hub may still be recovering from a failure.
func (c *chaos) insist(ctx context.Context, do func() error) {
	GinkgoHelper()
	Eventually(do).WithContext(ctx).WithTimeout(recovery).WithPolling(interval).Should(Succeed())
}

// disturb causes one random failure.
func (c *chaos) disturb(ctx context.Context) {
	GinkgoHelper()
	victim := c.clusters()[c.chance.IntN(len(c.managed))]
	switch c.chance.IntN(3) {
	case 0:
		fmt.Fprintf(GinkgoWriter, "addon-agent of %s is killed\n", victim)
		signal(ctx, c.box, victim, "addon-agent", syscall.SIGKILL)
	case 1:
		fmt.Fprintf(GinkgoWriter, "kube-apiserver of %s is killed\n", victim)
		signal(ctx, c.box, victim, "kube-apiserver", syscall.SIGKILL)
	default:
		d := c.moment(hang)
		fmt.Fprintf(GinkgoWriter, "the hub does not respond for %s\n", d)
		defer signal(ctx, c.box, "hub", "kube-apiserver", syscall.SIGCONT)
		signal(ctx, c.box, "hub", "kube-apiserver", syscall.SIGSTOP)
		pause(ctx, d)
	}
}

// moment returns a random duration below d.
func (c *chaos) moment(d time.Duration) time.Duration {
	return time.Duration(c.chance.Int64N(int64(d)))
}

// signal sends a signal to a program once it runs.
func signal(ctx context.Context, box *sandbox.Sandbox, cluster, program string, which syscall.Signal) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pid := find(box, cluster, program).PID
		g.Expect(pid).NotTo(BeZero(), program+" does not run")
		g.Expect(syscall.Kill(pid, which)).To(Succeed())
	}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
}

// expectSettled waits until every Instance has its desired state, on the hub and on its cluster.
func (c *chaos) expectSettled(ctx context.Context) {
	GinkgoHelper()
	start := time.Now()
	for _, s := range c.subjects() {
		Eventually(c.check).WithContext(ctx).WithArguments(s).
			WithTimeout(recovery).WithPolling(interval).Should(Succeed(), "%s: want %+v", s, c.wanted[s])
	}
	fmt.Fprintf(GinkgoWriter, "settled within %s\n", time.Since(start).Round(time.Millisecond))
}

// check returns an error unless an Instance has its desired state.
func (c *chaos) check(ctx context.Context, s subject) error {
	want := c.wanted[s]
	if err := c.checkHub(ctx, s, want); err != nil {
		return err
	}
	found, err := lastingObjects(ctx, c.managed[s.cluster], s.name)
	if err != nil {
		return err
	}
	if wanted := want.objects(s.name); !maps.Equal(found, wanted) {
		return fmt.Errorf("%s has %v, want %v", s.cluster, found, wanted)
	}
	return nil
}

// checkHub returns an error unless the hub reports the desired state of an Instance.
func (c *chaos) checkHub(ctx context.Context, s subject, want desired) error {
	instance := &kudo.Instance{}
	err := c.hub.Get(ctx, s.key(), instance)
	if (want == desired{}) {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %v %v", instance.Status.Conditions, err)
	}
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
	switch x := instance.Status.Execution; {
	case ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration != instance.Generation:
		return fmt.Errorf("generation %d is not Ready: %+v", instance.Generation, ready)
	case x == nil || x.OperatorVersion.Name != instance.Spec.OperatorVersion.Name || !maps.Equal(x.Parameters, instance.Spec.Parameters):
		return fmt.Errorf("it was last started with %+v, want %+v", x, instance.Spec)
	}
	return nil
}

// lastingObjects returns the objects of an Instance that outlast its plans, each with a value that identifies it.
func lastingObjects(ctx context.Context, cluster client.Client, name string) (map[string]string, error) {
	var (
		settings    corev1.ConfigMapList
		deployments appsv1.DeploymentList
		roles       rbacv1.ClusterRoleList
		mirrors     kudo.InstanceList
	)
	of := client.MatchingLabels{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: name}
	for _, list := range []client.ObjectList{&settings, &deployments, &roles} {
		if err := cluster.List(ctx, list, of); err != nil {
			return nil, err
		}
	}
	if err := cluster.List(ctx, &mirrors, client.InNamespace(tumbled), client.MatchingFields{"metadata.name": name}); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, o := range settings.Items {
		found[o.Name] = o.Data["color"]
	}
	for _, o := range deployments.Items {
		found[o.Name] = o.Spec.Template.Spec.Containers[0].Image
	}
	for _, o := range roles.Items {
		found[o.Name] = ""
	}
	for _, o := range mirrors.Items {
		found[o.Name] = ""
	}
	return found, nil
}

// objects returns the expected objects of an Instance.
func (d desired) objects(name string) map[string]string {
	if (d == desired{}) {
		return map[string]string{}
	}
	objects := map[string]string{
		name: "", name + "-settings": d.color, name + "-settings-" + d.version[:1]: d.color, name + "-role": "",
		name + "-server": "server:" + d.version + "-" + d.color,
	}
	if d.metrics == "true" {
		objects[name+"-metrics"] = d.color
	}
	return objects
}

// stepsOf reads an audit log. The first part of an object's name is its Instance, the second its step.
func stepsOf(file string) *audit.Steps {
	GinkgoHelper()
	steps, err := audit.StepsIn(entriesOf(file), func(object types.NamespacedName) (types.NamespacedName, string) {
		instance, rest, _ := strings.Cut(object.Name, "-")
		step, _, _ := strings.Cut(rest, "-")
		return types.NamespacedName{Namespace: tumbled, Name: instance}, step
	})
	Expect(err).NotTo(HaveOccurred())
	return steps
}

func (s subject) String() string { return s.cluster + "/" + s.name }

func (s subject) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.cluster, Name: s.name}
}

// instance returns the Instance on the hub.
func (s subject) instance(d desired) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster, Name: s.name},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: "tumbler-" + d.version},
			Parameters:       map[string]string{"COLOR": d.color, "METRICS": d.metrics},
			InstallNamespace: tumbled,
		},
	}
}

// tumbler returns a package that covers many cases: objects with and without immediate health, toggles, objects that exist in one version
// only, cluster-scoped objects, and Jobs that run once. The names of its objects begin with the name of their step.
func tumbler(version string) *kudo.OperatorVersion {
	settings := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}-" + name + "\"}\ndata: {color: \"{{ .Params.COLOR }}\"}\n"
	}
	job := func(name, argument string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: \"{{ .Name }}-" + name + "\"}\nspec: {template: {spec: {" +
			"restartPolicy: Never, containers: [{name: main, image: simulated, args: [\"" + argument + "\"]}]}}}\n"
	}
	task := func(name, kind string, resources ...string) kudo.Task {
		return kudo.Task{Name: name, Kind: kind, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: resources}}}
	}
	toggle := task("metrics", kudo.TaskToggle, "metrics.yaml")
	toggle.Spec.Parameter = "METRICS"
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "tumbler-" + version, Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "tumbler"}, Version: version,
			Parameters: []kudo.Parameter{{Name: "COLOR"}, {Name: "METRICS", Type: kudo.BooleanType}},
			Templates: map[string]string{
				"settings.yaml": settings("settings"), "own.yaml": settings("settings-" + version[:1]), "metrics.yaml": settings("metrics"),
				"check.yaml": job("check", "once"), "verify.yaml": job("verify", "{{ .Params.COLOR }}"), "drain.yaml": job("drain", "once"),
				"role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: \"{{ .Name }}-role\"}\nrules: []\n",
				"server.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"{{ .Name }}-server\"}\nspec: {replicas: 2, " +
					"selector: {matchLabels: {app: \"{{ .Name }}\"}}, template: {metadata: {labels: {app: \"{{ .Name }}\"}}, " +
					"spec: {containers: [{name: main, image: \"server:" + version + "-{{ .Params.COLOR }}\"}]}}}\n",
			},
			Tasks: []kudo.Task{
				task("settings", kudo.TaskApply, "settings.yaml", "own.yaml"), task("role", kudo.TaskApply, "role.yaml"),
				task("server", kudo.TaskApply, "server.yaml"), toggle, task("check", kudo.TaskApply, "check.yaml"),
				task("verify", kudo.TaskApply, "verify.yaml"), task("drain", kudo.TaskApply, "drain.yaml"),
				task("stop", kudo.TaskDelete, "server.yaml"),
			},
			Plans: map[string]kudo.Plan{
				kudo.DeployPlan:  {Phases: []kudo.Phase{prepare("settings", "role", "metrics"), serialPhase("server", "check")}},
				kudo.UpdatePlan:  {Phases: []kudo.Phase{prepare("settings", "metrics"), serialPhase("server")}},
				kudo.UpgradePlan: {Phases: []kudo.Phase{prepare("settings", "role", "metrics"), serialPhase("server", "verify")}},
				kudo.CleanupPlan: {Phases: []kudo.Phase{
					{Name: "stop", Steps: []kudo.Step{{Name: "drain", Tasks: []string{"drain"}}, {Name: "server", Tasks: []string{"stop"}}}},
				}},
			},
		},
	}
}

// prepare returns a phase of parallel steps, each with a task of the same name.
func prepare(names ...string) kudo.Phase {
	return kudo.Phase{Name: "prepare", Strategy: kudo.Parallel, Steps: serialPhase(names...).Steps}
}

// serialPhase returns a phase of serial steps, each with a task of the same name.
func serialPhase(names ...string) kudo.Phase {
	phase := kudo.Phase{Name: "run"}
	for _, name := range names {
		phase.Steps = append(phase.Steps, kudo.Step{Name: name, Tasks: []string{name}})
	}
	return phase
}
