package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/census"
)

// A platform engineer's day with only the plugin. The specs check its output, its exit codes, and the resulting state of the clusters.
var _ = Describe("A day's work by the plugin alone", Label(quick), onSandbox("plans hang by the size of its nodes"), Ordered, func() {
	var d *day

	BeforeAll(func(ctx SpecContext) { d = newDay(ctx) })

	It("begins with a package, in which a problem is found and mended", func(ctx SpecContext) {
		Expect(d.run(ctx, "package", "new", "web").lines()).To(ContainElements("web/operator.yaml created", "web/params.yaml created", "web/templates/server.yaml created"))
		d.edit("web/params.yaml", "    default: IfNotPresent\n", "    default: IfNotPresent\n  - name: CPU\n    description: CPU that each server requests\n    default: 100m\n")
		d.edit("web/templates/server.yaml", "          ports:\n", "          resources: {requests: {cpu: {{ .Params.CPUS | toJson }}}}\n          ports:\n")

		faulty := d.fails(ctx, cli.ExitFailure, "package", "verify", "web")
		Expect(faulty.lines()).To(ContainElement(`web/templates/server.yaml:20: error: parameter "CPUS" is not defined in params.yaml: did you mean CPU?`))
		Expect(d.fails(ctx, cli.ExitFailure, "package", "push", "web").all()).To(ContainSubstring("is not valid"))
		Expect(d.hub.Get(ctx, d.version("0.1.0"), &kudo.OperatorVersion{})).NotTo(Succeed())

		d.edit("web/templates/server.yaml", "CPUS", "CPU")
		Expect(d.run(ctx, "package", "verify", "web").out).To(Equal("package web is valid: OperatorVersion web-1.27.3-0.1.0\n"))
	})

	It("continues with pushing it, once", func(ctx SpecContext) {
		d.run(ctx, "package", "push", d.zookeeper)
		Expect(d.run(ctx, "package", "push", "web").lines()).To(ContainElement("operatorversion.kudo.dev/web-1.27.3-0.1.0 created"))
		Expect(d.run(ctx, "package", "push", "web").lines()).To(ContainElement("operatorversion.kudo.dev/web-1.27.3-0.1.0 unchanged"))
		stored := &kudo.OperatorVersion{}
		Expect(d.hub.Get(ctx, d.version("0.1.0"), stored)).To(Succeed())
		Expect(stored.Spec.Parameters).To(ContainElement(HaveField("Name", "CPU")))
		Expect(d.run(ctx, "package", "list").lines()).To(ContainElement(MatchRegexp(`^addon-packages +web-1.27.3-0.1.0 +web +0.1.0 +1.27.3 +0$`)))
	})

	It("enables it on two clusters, with what it requires", func(ctx SpecContext) {
		d.define(ctx, "zookeeper", "zookeeper-3.9.2-1.0.0")
		d.define(ctx, "web", "web-1.27.3-0.1.0", addonv1alpha1.AddonDependency{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeRequired, Message: "Pages are kept there."})
		Expect(d.fails(ctx, cli.ExitUsage, "enable", "web").all()).To(ContainSubstring("--all-clusters"))
		enabled := d.run(ctx, "enable", "web", "--all-clusters", "--namespace", "site", "--with-dependencies", "--wait", "--timeout", "2m")
		for _, cluster := range []string{"cluster1", "cluster2"} {
			for _, name := range []string{"web", "zookeeper"} {
				Expect(enabled.lines()).To(ContainElement("managedclusteraddon.addon.open-cluster-management.io/" + name + " available on " + cluster))
			}
			Expect(d.deployment(ctx, cluster).Status.AvailableReplicas).To(Equal(int32(2)))
			Expect(d.clusters[cluster].Get(ctx, client.ObjectKey{Namespace: "site", Name: "zookeeper"}, &appsv1.StatefulSet{})).To(Succeed())
		}
	})

	It("asks how it is", func(ctx SpecContext) {
		Expect(d.run(ctx, "plan", "status", "web", "--cluster", "cluster1").lines()).To(ContainElement(MatchRegexp(`Plan deploy \(serial strategy\) \[COMPLETE\]`)))
		Expect(d.run(ctx, "tree", "web", "--cluster", "cluster2").out).To(ContainSubstring("zookeeper"))
		Expect(d.run(ctx, "fleet").out).To(ContainSubstring("2 managed clusters, 2 add-ons: 4 of 4 are available"))
	})

	It("changes a parameter, having seen what comes of that, and restarts nothing", func(ctx SpecContext) {
		pods := d.pods(ctx, "cluster1")
		Eventually(func(g Gomega) { // once hub and agents are idle
			before := d.resourceVersions(ctx)
			preview := d.run(ctx, "update", "web", "--cluster", "cluster1", "-p", "REPLICAS=3", "--dry-run")
			g.Expect(preview.out).To(And(ContainSubstring("plan deploy"), MatchRegexp(`(?m)^ *-.*replicas: 2$`), MatchRegexp(`(?m)^ *\+.*replicas: 3$`)))
			g.Expect(d.resourceVersions(ctx)).To(Equal(before), "a dry run writes nothing")
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())

		d.run(ctx, "update", "web", "--cluster", "cluster1", "-p", "REPLICAS=3", "--wait", "--timeout", "2m")
		Expect(d.deployment(ctx, "cluster1").Status.AvailableReplicas).To(Equal(int32(3)))
		Expect(d.deployment(ctx, "cluster2").Status.AvailableReplicas).To(Equal(int32(2)), "nothing was changed there")
		for name, uid := range pods {
			Expect(d.pods(ctx, "cluster1")).To(HaveKeyWithValue(name, uid))
		}
	})

	It("ends a plan that hangs, and goes back", func(ctx SpecContext) {
		d.run(ctx, "update", "web", "--cluster", "cluster1", "-p", "CPU=1000")
		Eventually(func() string {
			return d.fails(ctx, cli.ExitTimeout, "plan", "wait", "web", "--cluster", "cluster1", "--timeout", "5s").errOut
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(ContainSubstring("Deployment site/web: 1 of 3 replicas updated"))
		Expect(d.run(ctx, "plan", "cancel", "web", "--cluster", "cluster1", "--timeout", "1m").out).To(Equal("instance.kudo.dev/web plan deploy cancelled\n"))
		Expect(d.instance(ctx, "cluster1").Status.PlanStatus[kudo.DeployPlan].Status).To(Equal(kudo.FatalError))
		Expect(d.deployment(ctx, "cluster1").Status.AvailableReplicas).To(BeNumerically(">=", 2), "the servers from before still run")
		Eventually(func() string { return d.run(ctx, "why", "web", "--cluster", "cluster1").out }).
			WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(ContainSubstring("cancelled"))
		Expect(d.fails(ctx, cli.ExitFailure, "plan", "cancel", "web", "--cluster", "cluster1").errOut).To(ContainSubstring("the last plan, \"deploy\", is FATAL_ERROR"))

		d.run(ctx, "update", "web", "--cluster", "cluster1", "-p", "CPU=200m", "--wait", "--timeout", "2m")
		Expect(d.deployment(ctx, "cluster1").Spec.Template.Spec.Containers[0].Resources.Requests.Cpu().String()).To(Equal("200m"))
	})

	It("upgrades it to a second version, having seen what differs", func(ctx SpecContext) {
		d.edit("web/operator.yaml", "operatorVersion: 0.1.0", "operatorVersion: 0.2.0")
		d.edit("web/params.yaml", "default: It works.", "default: Hello, fleet!")
		Expect(d.run(ctx, "package", "diff", "web", "./web").lines()).To(ContainElements(
			"  ~ version: 0.1.0 -> 0.2.0", "  ~ TEXT default: It works. -> Hello, fleet!", "Upgrading an Instance runs plan deploy."))
		d.run(ctx, "package", "push", "web")
		preview := d.run(ctx, "upgrade", "web", "--all-clusters", "--operator-version", "0.2.0", "--dry-run")
		Expect(preview.out).To(And(ContainSubstring("plan deploy"), ContainSubstring("Hello, fleet!")))
		Expect(d.instance(ctx, "cluster1").Spec.OperatorVersion.Name).To(Equal("web-1.27.3-0.1.0"))

		d.run(ctx, "upgrade", "web", "--all-clusters", "--operator-version", "0.2.0", "--wait", "--timeout", "2m")
		for cluster, c := range d.clusters {
			page := &corev1.ConfigMap{}
			Expect(c.Get(ctx, client.ObjectKey{Namespace: "site", Name: "web-page"}, page)).To(Succeed())
			Expect(page.Data).To(HaveKeyWithValue("index.html", "Hello, fleet!"))
			Expect(d.instance(ctx, cluster).Spec.OperatorVersion.Name).To(Equal("web-1.27.3-0.2.0"))
		}
		Expect(d.instance(ctx, "cluster1").Spec.Parameters).To(Equal(map[string]string{"REPLICAS": "3", "CPU": "200m"}), "an upgrade keeps what was set")
	})

	It("asks why it is not available, and runs the commands that the answer names", func(ctx SpecContext) {
		Expect(d.fails(ctx, cli.ExitFailure, "disable", "zookeeper", "--cluster", "cluster2", "--yes").errOut).To(ContainSubstring("web"))
		Expect(d.hub.Get(ctx, client.ObjectKey{Namespace: "cluster2", Name: "zookeeper"}, &addonv1alpha1.ManagedClusterAddOn{})).To(Succeed())
		d.run(ctx, "disable", "zookeeper", "--cluster", "cluster2", "--force", "--yes", "--timeout", "2m")
		var why struct{ Commands []string }
		Eventually(func(g Gomega) {
			explained := d.run(ctx, "why", "web", "--cluster", "cluster2", "-o", "json")
			g.Expect(explained.out).To(ContainSubstring("Pages are kept there."))
			g.Expect(json.Unmarshal([]byte(explained.out), &why)).To(Succeed())
			g.Expect(why.Commands).To(HaveExactElements("kubectl addon enable zookeeper --cluster cluster2 --namespace site"))
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
		Expect(d.deployment(ctx, "cluster2").Status.AvailableReplicas).To(Equal(int32(2)), "what runs is left alone")

		d.run(ctx, append(strings.Fields(strings.TrimPrefix(why.Commands[0], "kubectl addon ")), "--wait", "--timeout", "2m")...)
		d.run(ctx, "enable", "web", "--cluster", "cluster2", "--wait", "--timeout", "1m")
		Expect(d.run(ctx, "why", "web", "--cluster", "cluster2").out).To(ContainSubstring("Nothing to do."))
	})

	It("ends with everything gone", func(ctx SpecContext) {
		d.run(ctx, "disable", "web", "--all-clusters", "--yes", "--timeout", "2m")
		d.run(ctx, "disable", "zookeeper", "--all-clusters", "--yes", "--timeout", "2m")
		for _, config := range d.configs {
			Eventually(func() ([]string, error) { return census.OfTandem(ctx, config) }).
				WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(BeEmpty())
		}
		instances := &kudo.InstanceList{}
		Expect(d.hub.List(ctx, instances)).To(Succeed())
		Expect(instances.Items).To(BeEmpty())
		Expect(d.run(ctx, "fleet").out).To(Equal("No add-ons are enabled on 2 managed clusters.\n"))
	})
})

// day is the environment of the user: a folder, the plugin, and a fleet.
type day struct {
	folder string
	// plugin is the program; zookeeper is the folder of a package.
	plugin, zookeeper, kubeconfig string
	hub                           client.Client
	clusters                      map[string]client.Client
	configs                       map[string]*rest.Config
}

func newDay(ctx context.Context) *day {
	GinkgoHelper()
	box := startSandbox(ctx, 2)
	d := &day{
		folder: GinkgoT().TempDir(), kubeconfig: box.Hub().Kubeconfig(), hub: hubClient(box.Hub().Config()),
		clusters: map[string]client.Client{}, configs: map[string]*rest.Config{},
	}
	var err error
	d.plugin, err = filepath.Abs(filepath.Join(programs, "kubectl-addon"))
	Expect(err).NotTo(HaveOccurred())
	d.zookeeper, err = filepath.Abs(filepath.Join(examplePackages, "zookeeper"))
	Expect(err).NotTo(HaveOccurred())
	for _, name := range []string{"cluster1", "cluster2"} {
		d.configs[name] = box.Cluster(name).Config()
		d.clusters[name], err = client.New(d.configs[name], client.Options{})
		Expect(err).NotTo(HaveOccurred())
	}
	return d
}

// result is the output of the plugin.
type result struct{ out, errOut string }

func (r result) all() string { return r.out + r.errOut }

func (r result) lines() []string { return strings.Split(strings.TrimSuffix(r.all(), "\n"), "\n") }

// run runs the plugin, which must succeed.
func (d *day) run(ctx context.Context, args ...string) result {
	GinkgoHelper()
	return d.fails(ctx, cli.ExitOK, args...)
}

// fails runs the plugin, which must exit with the code.
func (d *day) fails(ctx context.Context, code int, args ...string) result {
	GinkgoHelper()
	var out, errOut bytes.Buffer
	command := exec.CommandContext(ctx, d.plugin, args...)
	command.Dir, command.Env = d.folder, append(os.Environ(), "KUBECONFIG="+d.kubeconfig)
	command.Stdout, command.Stderr = &out, &errOut
	err := command.Run()
	GinkgoWriter.Printf("$ kubectl addon %s\n%s%s\n", strings.Join(args, " "), &out, &errOut)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(command.ProcessState.ExitCode()).To(Equal(code), "%s: %s%s", args, &out, &errOut)
	return result{out.String(), errOut.String()}
}

// edit replaces a text that occurs once in a file.
func (d *day) edit(file, before, after string) {
	GinkgoHelper()
	file = filepath.Join(d.folder, file)
	text, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Count(string(text), before)).To(Equal(1), "%q in %s", before, file)
	Expect(os.WriteFile(file, []byte(strings.Replace(string(text), before, after, 1)), 0o600)).To(Succeed())
}

// define creates an add-on's definition, which the plugin does not do.
func (d *day) define(ctx context.Context, name, version string, dependencies ...addonv1alpha1.AddonDependency) {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.Dependencies = dependencies
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			DefaultConfig:       &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: version},
		},
		{ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}},
	}
	Expect(d.hub.Create(ctx, definition)).To(Succeed())
}

// version returns the key of an OperatorVersion of web.
func (d *day) version(version string) client.ObjectKey {
	return client.ObjectKey{Namespace: kudo.DefaultPackagesNamespace, Name: "web-1.27.3-" + version}
}

func (d *day) instance(ctx context.Context, cluster string) *kudo.Instance {
	GinkgoHelper()
	instance := &kudo.Instance{}
	Expect(d.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "web"}, instance)).To(Succeed())
	return instance
}

func (d *day) deployment(ctx context.Context, cluster string) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{}
	Expect(d.clusters[cluster].Get(ctx, client.ObjectKey{Namespace: "site", Name: "web"}, deployment)).To(Succeed())
	return deployment
}

// pods returns the pods of web by name.
func (d *day) pods(ctx context.Context, cluster string) map[string]types.UID {
	GinkgoHelper()
	pods, uids := &corev1.PodList{}, map[string]types.UID{}
	Expect(d.clusters[cluster].List(ctx, pods, client.InNamespace("site"), client.MatchingLabels{"app": "web"})).To(Succeed())
	Expect(pods.Items).NotTo(BeEmpty())
	for _, pod := range pods.Items {
		uids[pod.Name] = pod.UID
	}
	return uids
}

// resourceVersions returns the resource versions of everything on the hub that the plugin may change.
func (d *day) resourceVersions(ctx context.Context) map[string]string {
	GinkgoHelper()
	versions := map[string]string{}
	for _, list := range []client.ObjectList{
		&addonv1alpha1.ManagedClusterAddOnList{}, &addonv1alpha1.AddOnDeploymentConfigList{}, &kudo.InstanceList{}, &kudo.OperatorVersionList{},
	} {
		Expect(d.hub.List(ctx, list)).To(Succeed())
		Expect(meta.EachListItem(list, func(object runtime.Object) error {
			found := object.(client.Object)
			versions[fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(found))] = found.GetResourceVersion()
			return nil
		})).To(Succeed())
	}
	return versions
}
