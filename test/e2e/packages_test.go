package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/census"
)

const (
	// packagesFolder names a folder with packages to test, one in each subfolder.
	packagesFolder = "TANDEM_PACKAGES"
	// examplePackages is the default.
	examplePackages = root + "/examples/packages"
)

// needs lists undeclared requirements of packages.
var needs = map[string]struct {
	requires   string
	parameters map[string]string
}{
	"kafka": {"zookeeper", map[string]string{"ZOOKEEPER_URI": "zookeeper-zookeeper-0.zookeeper-hs.zookeeper:2181"}},
}

var (
	// namesTask matches the message of a failed plan: the task, and the reason.
	namesTask = MatchRegexp(`task "[^"]+": .+`)
	// lacksKind matches its message about a missing CustomResourceDefinition.
	lacksKind = regexp.MustCompile(`no matches for kind "(\w+)" in version "([^"/]+)/([^"/]+)"`)
	pushed    = regexp.MustCompile(`operatorversion\.kudo\.dev/(\S+) (?:created|unchanged)`)
)

var _ = Describe("All packages of a folder", Label("packages"), onSandbox("real pods would load and run what packages name"), Ordered, func() {
	var s *shelf

	BeforeAll(func(ctx SpecContext) {
		s = newShelf(ctx, cmp.Or(os.Getenv(packagesFolder), examplePackages))
	})

	It("are deployed, updated, upgraded and downgraded as add-ons, run every plan, and leave nothing", func(ctx SpecContext) {
		before := s.census(ctx)
		s.each(func(p *packaged) {
			p.stage("deploy", func() metav1.Condition { return p.deploy(ctx) })
			p.stage("update", func() metav1.Condition { return p.update(ctx) })
			p.stage("upgrade", func() metav1.Condition { return p.changeVersion(ctx, p.versions[1]) })
			p.stage("plans", func() metav1.Condition { return p.everyPlan(ctx) })
			p.stage("switches", func() metav1.Condition { return p.everySwitch(ctx) })
			p.stage("downgrade", func() metav1.Condition { return p.changeVersion(ctx, p.versions[0]) })
		})
		s.each(func(p *packaged) { p.stage("uninstall", func() metav1.Condition { return p.uninstall(ctx) }) })
		AddReportEntry("packages", s.table())
		s.expectNothingSince(ctx, before)
	}, SpecTimeout(15*time.Minute))

	It("are run twice in one namespace, or say whose their objects are", func(ctx SpecContext) {
		before := s.census(ctx)
		s.each(func(p *packaged) {
			first, second := p.instance("one", "twins"), p.instance("two", "twins")
			Expect(s.hub.Create(ctx, first)).To(Succeed())
			Expect(s.awaitSettled(ctx, first)).To(HaveField("Status", metav1.ConditionTrue))
			Expect(s.hub.Create(ctx, second)).To(Succeed())
			shared := s.awaitSettled(ctx, second)
			if shared.Status != metav1.ConditionTrue {
				Expect(shared.Message).To(ContainSubstring("belongs to Instance twins/" + first.Name))
			}
			s.delete(ctx, first)
			if shared.Status != metav1.ConditionTrue {
				Expect(s.byHand(ctx, second, kudo.DeployPlan)).To(HaveField("Status", metav1.ConditionTrue), "what was in its way is gone")
			}
			Expect(s.awaitSettled(ctx, second)).To(HaveField("Status", metav1.ConditionTrue), "what went was not its own")
			s.delete(ctx, second)
		})
		s.expectNothingSince(ctx, before)
	}, SpecTimeout(5*time.Minute))

	It("are upgraded in the middle of an update, and removed in the middle of either plan", func(ctx SpecContext) {
		before := s.census(ctx)
		s.each(func(p *packaged) {
			subject := p.instance("hasty", "hasty-"+p.name)
			Expect(s.hub.Create(ctx, subject)).To(Succeed())
			s.expectStarted(ctx, subject, p.versions[0], subject.Spec.Parameters)
			s.delete(ctx, subject)

			subject = p.instance("hasty", "hasty-"+p.name)
			Expect(s.hub.Create(ctx, subject)).To(Succeed())
			Expect(s.awaitSettled(ctx, subject)).To(HaveField("Status", metav1.ConditionTrue))
			s.edit(ctx, subject, func(spec *kudo.InstanceSpec) { spec.Parameters = p.updatedParameters() })
			s.expectStarted(ctx, subject, p.versions[0], p.updatedParameters())
			s.edit(ctx, subject, func(spec *kudo.InstanceSpec) { spec.OperatorVersion.Name = p.versions[1] })
			Expect(s.awaitSettled(ctx, subject)).To(HaveField("Status", metav1.ConditionTrue))
			Expect(subject.Status.Execution.OperatorVersion.Name).To(Equal(p.versions[1]))
			Expect(subject.Status.Execution.Parameters).To(Equal(p.updatedParameters()))

			s.edit(ctx, subject, func(spec *kudo.InstanceSpec) { spec.OperatorVersion.Name = p.versions[0] })
			s.expectStarted(ctx, subject, p.versions[0], p.updatedParameters())
			s.delete(ctx, subject)
		})
		s.expectNothingSince(ctx, before)
	}, SpecTimeout(5*time.Minute))

	It("are rejected without a required parameter", func(ctx SpecContext) {
		s.each(func(p *packaged) {
			strict := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-strict", Namespace: kudo.DefaultPackagesNamespace}}
			strict.Spec = *p.spec.DeepCopy()
			missing := &strict.Spec.Parameters[slices.IndexFunc(strict.Spec.Parameters, func(parameter kudo.Parameter) bool {
				_, given := needs[p.name].parameters[parameter.Name]
				return !given
			})]
			missing.Default, missing.Required = nil, ptr.To(true)
			Expect(s.hub.Create(ctx, strict)).To(Succeed())
			subject := p.instance("strict", "strict")
			subject.Spec.OperatorVersion.Name = strict.Name
			Expect(s.hub.Create(ctx, subject)).To(MatchError(And(ContainSubstring(strconv.Quote(missing.Name)), ContainSubstring("required"))))
		})
	})
})

// shelf is a sandbox with packages on its hub.
type shelf struct {
	hub, cluster client.Client
	managed      *rest.Config
	packages     []*packaged
}

// packaged is a package with its results.
type packaged struct {
	*shelf
	name     string
	versions [2]string
	spec     kudo.OperatorVersionSpec

	stages []string
	cells  map[string]string
	// lacked lists the messages about kinds that had to be added to the cluster.
	lacked []string
}

// newShelf starts a sandbox, and pushes every package of a folder in two versions.
func newShelf(ctx context.Context, folder string) *shelf {
	GinkgoHelper()
	box := startSandbox(ctx, 1)
	s := &shelf{hub: hubClient(box.Hub().Config()), managed: box.Cluster("cluster1").Config()}
	var err error
	s.cluster, err = client.New(s.managed, client.Options{})
	Expect(err).NotTo(HaveOccurred())

	files, err := filepath.Glob(filepath.Join(folder, "*", "operator.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty(), "packages in %s", folder)
	for _, file := range files {
		p := &packaged{shelf: s, name: filepath.Base(filepath.Dir(file)), cells: map[string]string{}}
		p.versions = [2]string{push(box, filepath.Dir(file)), push(box, successor(filepath.Dir(file)))}
		version := &kudo.OperatorVersion{}
		Expect(s.hub.Get(ctx, client.ObjectKey{Namespace: kudo.DefaultPackagesNamespace, Name: p.versions[0]}, version)).To(Succeed())
		p.spec = version.Spec
		s.packages = append(s.packages, p)
	}
	return s
}

// push pushes a package to the hub and returns the name of its OperatorVersion.
func push(box *sandbox.Sandbox, folder string) string {
	GinkgoHelper()
	out, err := exec.Command(filepath.Join(programs, "kubectl-addon"), "package", "push", folder,
		"--kubeconfig", box.State().Clusters[0].Kubeconfig).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	GinkgoWriter.Print(string(out))
	names := pushed.FindAllSubmatch(out, -1)
	Expect(names).NotTo(BeEmpty(), string(out))
	return string(names[len(names)-1][1]) // after its child operators
}

// successor returns a copy of a package with a higher version.
func successor(folder string) string {
	GinkgoHelper()
	beside, err := filepath.Abs(filepath.Dir(folder))
	Expect(err).NotTo(HaveOccurred())
	neighbours, err := os.ReadDir(beside)
	Expect(err).NotTo(HaveOccurred())
	copied := GinkgoT().TempDir()
	for _, neighbour := range neighbours {
		if neighbour.Name() != filepath.Base(folder) {
			Expect(os.Symlink(filepath.Join(beside, neighbour.Name()), filepath.Join(copied, neighbour.Name()))).To(Succeed())
		}
	}
	higher := filepath.Join(copied, filepath.Base(folder))
	Expect(os.CopyFS(higher, os.DirFS(folder))).To(Succeed())
	file := filepath.Join(higher, "operator.yaml")
	content, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	content = regexp.MustCompile(`(?m)^operatorVersion:.*$`).ReplaceAll(content, []byte("operatorVersion: 99.0.0"))
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	return higher
}

// each calls do for all packages concurrently.
func (s *shelf) each(do func(*packaged)) {
	GinkgoHelper()
	var all sync.WaitGroup
	for _, p := range s.packages {
		all.Go(func() {
			defer GinkgoRecover()
			do(p)
		})
	}
	all.Wait()
}

// table lists the result, duration and error of every stage of each package.
func (s *shelf) table() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\npackage\t"+strings.Join(s.packages[0].stages, "\t"))
	for _, p := range s.packages {
		fmt.Fprint(table, p.name)
		for _, stage := range s.packages[0].stages {
			fmt.Fprint(table, "\t"+p.cells[stage])
		}
		fmt.Fprintln(table)
	}
	for _, p := range s.packages {
		for _, message := range p.lacked {
			fmt.Fprintf(table, "%s stopped until the cluster had what it lacks: %s\n", p.name, message)
		}
	}
	_ = table.Flush() // writes to a strings.Builder do not fail
	return text.String()
}

// stage runs one stage of a package. It ends in Ready, or with a message that names the failed task and the reason.
func (p *packaged) stage(name string, do func() metav1.Condition) {
	p.stages = append(p.stages, name)
	p.cells[name] = "did not end"
	start := time.Now()
	ready := do()
	p.cells[name] = fmt.Sprintf("%.1fs", time.Since(start).Seconds())
	if ready.Status != metav1.ConditionTrue {
		p.cells[name] += " " + ready.Message
		Expect(ready.Message).To(namesTask, "%s: %s", p.name, name)
	}
}

// deploy enables a package as an add-on on the sandbox's cluster, with its parameters in an AddOnDeploymentConfig.
func (p *packaged) deploy(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			DefaultConfig:       &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: p.versions[0]},
		},
		{ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}},
	}
	if required := needs[p.name].requires; required != "" {
		definition.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: required, Type: addonv1alpha1.DependencyTypeRequired}}
	}
	enabled := newAddOn(p.name)
	enabled.Spec.InstallNamespace = p.name
	enabled.Spec.Configs = p.configs(p.versions[0])
	parameters := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: enabled.Namespace}}
	parameters.Spec.CustomizedVariables = variables(needs[p.name].parameters)
	for _, object := range []client.Object{definition, parameters, enabled} {
		Expect(p.hub.Create(ctx, object)).To(Succeed())
	}
	return p.reaches(ctx, p.versions[0], needs[p.name].parameters)
}

func (p *packaged) configs(version string) []upstream.AddOnConfig {
	return []upstream.AddOnConfig{
		{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			ConfigReferent:      upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: version},
		},
		{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs},
			ConfigReferent:      upstream.ConfigReferent{Namespace: "cluster1", Name: p.name},
		},
	}
}

func variables(parameters map[string]string) []upstream.CustomizedVariable {
	var variables []upstream.CustomizedVariable
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		variables = append(variables, upstream.CustomizedVariable{Name: name, Value: parameters[name]})
	}
	return variables
}

// update changes one parameter of the add-on.
func (p *packaged) update(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	return p.set(ctx, p.versions[0], p.updatedParameters())
}

// updatedParameters returns the parameters of a package with a new value of the first parameter that accepts another number, or else
// another text.
func (p *packaged) updatedParameters() map[string]string {
	updated := maps.Clone(needs[p.name].parameters)
	if updated == nil {
		updated = map[string]string{}
	}
	for _, parameter := range p.spec.Parameters {
		if number, err := strconv.Atoi(ptr.Deref(parameter.Default, "")); err == nil && !p.waitsForEver(parameter.Trigger) {
			updated[parameter.Name] = strconv.Itoa(number + 1)
			return updated
		}
	}
	updated[p.spec.Parameters[0].Name] = "another"
	return updated
}

// set sets an add-on's version and parameters, and waits for the result.
func (p *packaged) set(ctx context.Context, version string, parameters map[string]string) metav1.Condition {
	GinkgoHelper()
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	Expect(p.hub.Get(ctx, client.ObjectKey{Namespace: "cluster1", Name: p.name}, config)).To(Succeed())
	before := config.DeepCopy()
	config.Spec.CustomizedVariables = variables(parameters)
	Expect(p.hub.Patch(ctx, config, client.MergeFrom(before))).To(Succeed())
	return p.reaches(ctx, version, parameters)
}

// changeVersion changes the version of an add-on.
func (p *packaged) changeVersion(ctx context.Context, version string) metav1.Condition {
	GinkgoHelper()
	subject := newAddOn(p.name)
	Expect(p.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
	before := subject.DeepCopy()
	subject.Spec.Configs = p.configs(version)
	Expect(p.hub.Patch(ctx, subject, client.MergeFrom(before))).To(Succeed())
	return p.reaches(ctx, version, p.updatedParameters())
}

// reaches waits until the Instance of an add-on has a version and parameters and has settled.
func (p *packaged) reaches(ctx context.Context, version string, parameters map[string]string) metav1.Condition {
	GinkgoHelper()
	subject := p.own()
	Eventually(func(g Gomega) {
		g.Expect(p.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
		g.Expect(subject.Spec.OperatorVersion.Name).To(Equal(version))
		g.Expect(maps.Equal(subject.Spec.Parameters, parameters)).To(BeTrue(), "%v", subject.Spec.Parameters)
	}).WithContext(ctx).WithTimeout(recovery).WithPolling(interval).Should(Succeed(), p.name)
	return p.awaitSettled(ctx, subject)
}

// own returns the Instance of the add-on.
func (p *packaged) own() *kudo.Instance {
	return &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: "cluster1"}}
}

// instance returns an Instance without an add-on.
func (p *packaged) instance(prefix, namespace string) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: prefix + "-" + p.name, Namespace: "cluster1"},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: p.versions[0]},
			Parameters:       needs[p.name].parameters,
			InstallNamespace: namespace,
		},
	}
}

// everyPlan requests all plans except cleanup manually, deploy last. A plan that waits forever is cancelled once its status reports that.
func (p *packaged) everyPlan(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	plans := slices.DeleteFunc(slices.Sorted(maps.Keys(p.spec.Plans)), func(name string) bool {
		return name == kudo.CleanupPlan || name == kudo.DeployPlan
	})
	for _, name := range plans {
		if p.waitsForEver(name) {
			p.cancel(ctx, name)
			continue
		}
		if ready := p.byHand(ctx, p.own(), name); ready.Status != metav1.ConditionTrue {
			return ready
		}
	}
	return p.byHand(ctx, p.own(), kudo.DeployPlan)
}

// waitsForEver reports whether a plan has a task that never completes, by which KUDO's packages reject a change.
func (p *packaged) waitsForEver(name string) bool {
	for _, phase := range p.spec.Plans[name].Phases {
		for _, step := range phase.Steps {
			if slices.ContainsFunc(p.spec.Tasks, func(t kudo.Task) bool {
				return t.Kind == kudo.TaskDummy && !t.Spec.Done && !t.Spec.WantErr && slices.Contains(step.Tasks, t.Name)
			}) {
				return true
			}
		}
	}
	return false
}

// cancel runs a plan that waits forever, and cancels it.
func (p *packaged) cancel(ctx context.Context, name string) {
	GinkgoHelper()
	subject := p.own()
	p.edit(ctx, subject, request(name))
	waits := func(c metav1.Condition) bool { return strings.Contains(c.Message, "is configured to wait") }
	Expect(p.awaitRequest(ctx, subject, name, waits)).To(Satisfy(waits), "%s: %s", p.name, name)
	p.edit(ctx, subject, func(spec *kudo.InstanceSpec) {
		spec.PlanExecution = kudo.PlanExecution{UID: subject.Status.Execution.UID, Cancel: true}
	})
	Expect(p.awaitRequest(ctx, subject, name, lacksKindOf).Message).To(HaveSuffix("cancelled"), "%s: %s", p.name, name)
}

// everySwitch enables and disables the Toggle tasks that are off by default, one after the other. Kinds that the cluster lacks are added.
func (p *packaged) everySwitch(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	ready := metav1.Condition{Status: metav1.ConditionTrue}
	for _, task := range p.spec.Tasks {
		if task.Kind != kudo.TaskToggle {
			continue
		}
		for _, value := range []string{"true", "false"} {
			parameters := p.updatedParameters()
			parameters[task.Spec.Parameter] = value
			if ready = p.set(ctx, p.versions[1], parameters); lacksKind.MatchString(ready.Message) {
				p.lacked = append(p.lacked, ready.Message)
				defined := p.define(ctx, lacksKind.FindStringSubmatch(ready.Message))
				defer func() { Expect(p.cluster.Delete(ctx, defined)).To(Succeed()) }()
				ready = p.awaitReady(ctx, p.own(), func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
			}
			if ready.Status != metav1.ConditionTrue {
				return ready
			}
		}
	}
	return p.set(ctx, p.versions[1], p.updatedParameters())
}

// define adds the missing kind of a message to the cluster: its name, group and version.
func (p *packaged) define(ctx context.Context, missing []string) *unstructured.Unstructured {
	GinkgoHelper()
	kind, group, version := missing[1], missing[2], missing[3]
	singular := strings.ToLower(kind)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": singular + "s." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "singular": singular, "plural": singular + "s"},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
	Expect(p.cluster.Create(ctx, definition)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(p.cluster.Get(ctx, client.ObjectKeyFromObject(definition), definition)).To(Succeed())
		g.Expect(fmt.Sprint(definition.Object["status"])).To(ContainSubstring("InitialNamesAccepted"))
	}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
	return definition
}

// uninstall disables the add-on, and waits for the removal of the add-on and its Instance.
func (p *packaged) uninstall(ctx context.Context) metav1.Condition {
	GinkgoHelper()
	p.delete(ctx, newAddOn(p.name))
	Expect(client.IgnoreNotFound(p.hub.Get(ctx, client.ObjectKeyFromObject(p.own()), &kudo.Instance{}))).To(Succeed())
	return metav1.Condition{Status: metav1.ConditionTrue}
}

// delete deletes an object on the hub, and waits for its removal.
func (s *shelf) delete(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(s.hub.Delete(ctx, object)).To(Succeed())
	Eventually(func(g Gomega) {
		err := s.hub.Get(ctx, client.ObjectKeyFromObject(object), object)
		g.Expect(err).To(HaveOccurred())
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	}).WithContext(ctx).WithTimeout(recovery).WithPolling(interval).Should(Succeed(), object.GetName())
}

func (s *shelf) edit(ctx context.Context, subject *kudo.Instance, edit func(*kudo.InstanceSpec)) {
	GinkgoHelper()
	Expect(s.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
	before := subject.DeepCopy()
	edit(&subject.Spec)
	Expect(s.hub.Patch(ctx, subject, client.MergeFrom(before))).To(Succeed())
}

// request requests a plan manually.
func request(name string) func(*kudo.InstanceSpec) {
	return func(spec *kudo.InstanceSpec) {
		spec.PlanExecution = kudo.PlanExecution{PlanName: name, UID: types.UID(strconv.FormatInt(time.Now().UnixNano(), 10))}
	}
}

// byHand requests a plan and waits for its end, or until it waits for a kind.
func (s *shelf) byHand(ctx context.Context, subject *kudo.Instance, name string) metav1.Condition {
	GinkgoHelper()
	s.edit(ctx, subject, request(name))
	return s.awaitRequest(ctx, subject, name, lacksKindOf)
}

// lacksKindOf reports whether a condition is about a kind that the cluster does not have.
func lacksKindOf(c metav1.Condition) bool { return lacksKind.MatchString(c.Message) }

// awaitRequest returns condition LastRequestSucceeded once the requested plan has ended, or the condition of the running plan once that is
// reached. Condition Ready does not show either for a plan that is not owed.
func (s *shelf) awaitRequest(
	ctx context.Context, subject *kudo.Instance, name string, reached func(metav1.Condition) bool,
) (shown metav1.Condition) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(s.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
		last := meta.FindStatusCondition(subject.Status.Conditions, kudo.ConditionLastRequestSucceeded)
		g.Expect(last).To(HaveField("ObservedGeneration", subject.Generation))
		if shown = *last; last.Status == metav1.ConditionUnknown {
			shown = plan.RunningCondition(subject.Status.PlanStatus[name])
			g.Expect(shown).To(Satisfy(reached))
		}
	}).WithContext(ctx).WithTimeout(2 * timeout).WithPolling(interval).Should(Succeed())
	return shown
}

// expectStarted waits until an Instance is executed with a version and parameters.
func (s *shelf) expectStarted(ctx context.Context, subject *kudo.Instance, version string, parameters map[string]string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(s.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject)).To(Succeed())
		execution := ptr.Deref(subject.Status.Execution, kudo.Execution{})
		g.Expect(execution.OperatorVersion.Name).To(Equal(version))
		g.Expect(maps.Equal(execution.Parameters, parameters)).To(BeTrue(), "%v", execution.Parameters)
	}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval / 10).Should(Succeed())
}

// awaitSettled returns condition Ready once everything in an Instance's spec is executed, or its plan has failed.
func (s *shelf) awaitSettled(ctx context.Context, subject *kudo.Instance) metav1.Condition {
	GinkgoHelper()
	return s.awaitReady(ctx, subject, func(c metav1.Condition) bool {
		return c.Status == metav1.ConditionTrue || c.Reason == kudo.ReasonPlanFailed || lacksKindOf(c)
	})
}

// awaitReady returns condition Ready of an Instance's generation once it is reached, or its last state after the timeout.
func (s *shelf) awaitReady(ctx context.Context, subject *kudo.Instance, reached func(metav1.Condition) bool) (ready metav1.Condition) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if s.hub.Get(ctx, client.ObjectKeyFromObject(subject), subject) == nil {
			ready = ptr.Deref(meta.FindStatusCondition(subject.Status.Conditions, kudo.ConditionReady), metav1.Condition{})
			if ready.ObservedGeneration == subject.Generation && reached(ready) {
				return ready
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ready
		}
	}
}

// transient lists kinds of objects that are created and deleted without Tandem.
var transient = sets.New("Event", "Lease", "Namespace")

// census returns every object of the managed cluster, except the default objects of a namespace.
func (s *shelf) census(ctx context.Context) sets.Set[string] {
	GinkgoHelper()
	objects, err := census.OfAll(ctx, s.managed)
	Expect(err).NotTo(HaveOccurred())
	return sets.New(slices.DeleteFunc(objects, func(object string) bool {
		kind, name, _ := strings.Cut(object, " ")
		return transient.Has(kind) || kind == "ConfigMap" && strings.HasSuffix(name, "/kube-root-ca.crt") ||
			kind == "ServiceAccount" && strings.HasSuffix(name, "/default")
	})...)
}

// expectNothingSince waits until the managed cluster has no additional objects.
func (s *shelf) expectNothingSince(ctx context.Context, before sets.Set[string]) {
	GinkgoHelper()
	Eventually(func() []string { return sets.List(s.census(ctx).Difference(before)) }).
		WithContext(ctx).WithTimeout(timeout).WithPolling(time.Second).Should(BeEmpty())
}
