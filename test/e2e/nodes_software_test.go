package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/census"
)

// softwareLabel is the label of specs whose packages run real software, in images that nodes have or can pull.
const softwareLabel = "software"

// long is the timeout of a plan that starts several servers, on a busy machine.
const long = "5m"

var _ = Describe("An ensemble of ZooKeeper servers", Label(onNodes, softwareLabel), Ordered, func() {
	var f *fleet

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		f.pushes(ctx, examplePackages+"/zookeeper")
		f.pushes(ctx, copyWithImage(examplePackages+"/zookeeper", "3.9.2", "3.9.3"))
		f.deletes("cluster1", "instance.kudo.dev/zookeeper")
	})

	It("is deployed by its plan, elects a leader, and serves clients what others wrote", func(ctx SpecContext) {
		must(f.addon(ctx, "install", "zookeeper", "--cluster", "cluster1", "--namespace", "ensemble", "--operator-version", "1.0.0",
			"--wait", "--timeout", long))
		Expect(modes(ctx, f, "zookeeper", 3)).To(Equal(map[string]int{"leader": 1, "follower": 2}))
		Expect(zkCli(ctx, f, 0, "create", "/greeting", "hello")).To(ContainSubstring("Created /greeting"))
		Expect(zkCli(ctx, f, 2, "get", "/greeting")).To(ContainSubstring("hello"))
	})

	It("is scaled to five servers, and keeps its data", func(ctx SpecContext) {
		must(f.addon(ctx, "update", "zookeeper", "--cluster", "cluster1", "-p", "REPLICAS=5", "--wait", "--timeout", long))
		Expect(modes(ctx, f, "zookeeper", 5)).To(Equal(map[string]int{"leader": 1, "follower": 4}))
		Expect(zkCli(ctx, f, 4, "get", "/greeting")).To(ContainSubstring("hello"))
	})

	It("is upgraded to another image one server at a time, and keeps its data", func(ctx SpecContext) {
		must(f.addon(ctx, "upgrade", "zookeeper", "--cluster", "cluster1", "-p", "REPLICAS=3", "--wait", "--timeout", long))
		Expect(imagesOf(ctx, f, "cluster1", "ensemble", "app=zookeeper")).To(Equal("zookeeper:3.9.3 zookeeper:3.9.3 zookeeper:3.9.3"))
		Expect(zkCli(ctx, f, 1, "get", "/greeting")).To(ContainSubstring("hello"))
	})

	It("names the server that a wrong setting breaks, and recovers", func(ctx SpecContext) {
		must(f.addon(ctx, "update", "zookeeper", "--cluster", "cluster1", "-p", "TICK_TIME=0"))
		Eventually(f.addon).WithContext(ctx).WithArguments("plan", "status", "zookeeper", "--cluster", "cluster1").WithTimeout(2 * time.Minute).
			WithPolling(time.Second).Should(MatchRegexp(`(?s)Pod ensemble/zookeeper-2: .* restarts: CrashLoopBackOff \(image .*\): exited with code 2`))
		must(f.addon(ctx, "update", "zookeeper", "--cluster", "cluster1", "--unset", "TICK_TIME", "--wait", "--timeout", long))
		Expect(zkCli(ctx, f, 2, "get", "/greeting")).To(ContainSubstring("hello"))
	})

	It("is uninstalled", func(ctx SpecContext) {
		must(f.addon(ctx, "uninstall", "zookeeper", "--cluster", "cluster1", "--yes", "--timeout", long))
		f.isEmpty(ctx, "cluster1", "ensemble")
	})
})

// modes counts the servers of an ensemble, which are the pods of a StatefulSet, by mode, or by their response if it has none.
func modes(ctx context.Context, f *fleet, name string, servers int) map[string]int {
	GinkgoHelper()
	counts := map[string]int{}
	for i := range servers {
		said := must(f.kubectl(ctx, "cluster1", "exec", fmt.Sprintf("%s-%d", name, i), "-n", "ensemble", "--",
			"sh", "-c", "printf srvr | nc localhost 2181")) // the answer can be lost if a line feed remains unread
		_, mode, found := strings.Cut(said, "Mode: ")
		if !found {
			counts[said]++
			continue
		}
		mode, _, _ = strings.Cut(mode, "\n")
		counts[mode]++
	}
	return counts
}

// zkCli runs a command of ZooKeeper's client in one of the pods, on any server. It returns both outputs, because the client prints answers
// to both.
func zkCli(ctx context.Context, f *fleet, in int, command ...string) (string, error) {
	return f.kubectl(ctx, "cluster1", append([]string{
		"exec", fmt.Sprintf("zookeeper-%d", in), "-n", "ensemble", "--",
		"sh", "-c", `exec zkCli.sh -server zookeeper-client:2181 "$@" 2>&1`, "sh",
	}, command...)...)
}

var _ = Describe("Redis as an add-on of two clusters", Label(onNodes, softwareLabel), Ordered, func() {
	var (
		f        *fleet
		hub      client.Client
		clusters = []string{"cluster1", "cluster2"}
		both     = strings.Join(clusters, ",")
	)
	// redis runs a command of its client in its pod.
	redis := func(ctx context.Context, cluster string, command ...string) (string, error) {
		return f.kubectl(ctx, cluster, append([]string{
			"exec", "redis-0", "-n", "cache", "--", "env", "REDISCLI_AUTH=hunter2", "redis-cli",
		}, command...)...)
	}

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, len(clusters))
		hub = hubClient(f.hub)
		for _, cluster := range clusters {
			must(f.kubectl(ctx, cluster, "create", "namespace", "cache"))
			DeferCleanup(func(ctx SpecContext) {
				must(f.kubectl(ctx, cluster, "delete", "namespace", "cache"))
			})
			must(f.kubectl(ctx, cluster, "create", "secret", "generic", "redis", "-n", "cache", "--from-literal=password=hunter2"))
		}
		f.pushes(ctx, copyWithImage(examplePackages+"/redis", "7.4.1", "7.4.2"))
		create(ctx, hub, definitionOf("redis", f.pushes(ctx, examplePackages+"/redis")))
		create(ctx, hub, onePlan("visitor", visitor))
		create(ctx, hub, definitionOf("visitor", "visitor-1.0.0", "redis"))
		must(f.addon(ctx, "enable", "visitor", "--cluster", both, "--namespace", "cache"))
		for _, cluster := range clusters {
			f.deletes(cluster, "managedclusteraddon/visitor", "managedclusteraddon/redis")
		}
	})

	It("keeps its dependent waiting until it is enabled", func(ctx SpecContext) {
		for _, cluster := range clusters {
			Eventually(func(g Gomega) {
				waiting := addOnOn(ctx, g, hub, cluster, "visitor")
				g.Expect(meta.IsStatusConditionTrue(waiting.Status.Conditions, addonv1alpha1.ConditionDegraded)).To(BeTrue())
			}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(Succeed())
			Expect(f.kubectl(ctx, cluster, "get", "deployments", "-n", "cache", "-o", "name")).To(BeEmpty())
		}
	})

	It("serves its dependent on both clusters once it is enabled", func(ctx SpecContext) {
		must(f.addon(ctx, "enable", "redis", "--cluster", both, "--namespace", "cache", "-p", "PASSWORD=secret:redis/password",
			"--wait", "--timeout", long))
		for _, cluster := range clusters {
			Eventually(func(g Gomega) {
				dependent := addOnOn(ctx, g, hub, cluster, "visitor")
				g.Expect(meta.IsStatusConditionTrue(dependent.Status.Conditions, addonv1alpha1.ConditionAvailable)).To(BeTrue())
				visits, err := redis(ctx, cluster, "get", "visits")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(visits).To(MatchRegexp(`^[1-9]\d*\n$`))
			}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
			Expect(redis(ctx, cluster, "set", "greeting", "hello")).To(Equal("OK\n"))
		}
	})

	It("uses a changed parameter, and keeps its data", func(ctx SpecContext) {
		must(f.addon(ctx, "update", "redis", "--cluster", both, "-p", "MAX_CLIENTS=500", "--wait", "--timeout", long))
		for _, cluster := range clusters {
			Expect(redis(ctx, cluster, "config", "get", "maxclients")).To(Equal("maxclients\n500\n"))
			Expect(redis(ctx, cluster, "get", "greeting")).To(Equal("hello\n"))
		}
	})

	It("is upgraded to another image on one cluster, and keeps its data", func(ctx SpecContext) {
		must(f.addon(ctx, "upgrade", "redis", "--cluster", "cluster1", "--wait", "--timeout", long))
		for cluster, version := range map[string]string{"cluster1": "7.4.2", "cluster2": "7.4.1"} {
			Expect(imagesOf(ctx, f, cluster, "cache", "app=redis")).To(Equal("redis:" + version))
			Expect(redis(ctx, cluster, "get", "greeting")).To(Equal("hello\n"))
		}
	})

	It("names the server that a wrong parameter breaks as the reason why its dependent is unavailable, and recovers", func(ctx SpecContext) {
		must(f.addon(ctx, "update", "redis", "--cluster", "cluster1", "-p", "MAX_CLIENTS=-5"))
		Eventually(f.addon).WithContext(ctx).WithArguments("why", "visitor", "--cluster", "cluster1").WithTimeout(2 * time.Minute).
			WithPolling(time.Second).Should(MatchRegexp(`(?s)Pod cache/redis-0: container redis restarts: CrashLoopBackOff \(image .*\): exited with code 1`))
		must(f.addon(ctx, "update", "redis", "--cluster", "cluster1", "-p", "MAX_CLIENTS=600"))
		Eventually(f.kubectl).WithContext(ctx).WithArguments("cluster1", "get", "statefulset", "redis", "-n", "cache", "-o", "yaml").
			WithTimeout(timeout).WithPolling(time.Second).Should(ContainSubstring(`"600"`))
		must(f.kubectl(ctx, "cluster1", "delete", "pod", "redis-0", "-n", "cache")) // a StatefulSet does not replace a pod that has never been ready
		must(f.addon(ctx, "plan", "wait", "redis", "--cluster", "cluster1", "--timeout", long))
		Expect(redis(ctx, "cluster1", "get", "greeting")).To(Equal("hello\n"))
		Eventually(func(g Gomega) {
			dependent := addOnOn(ctx, g, hub, "cluster1", "visitor")
			g.Expect(meta.IsStatusConditionTrue(dependent.Status.Conditions, addonv1alpha1.ConditionAvailable)).To(BeTrue())
		}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(interval).Should(Succeed())
	})

	It("is removed after its dependent, and leaves nothing", func(ctx SpecContext) {
		must(f.addon(ctx, "disable", "visitor", "--cluster", both, "--yes", "--timeout", long))
		must(f.addon(ctx, "disable", "redis", "--cluster", both, "--yes", "--timeout", long))
		for _, cluster := range clusters {
			f.isEmpty(ctx, cluster, "cache")
		}
	})
})

// ofFolder is the label of specs for packages that only the folder in packagesFolder has.
const ofFolder = "packages of a folder"

var _ = Describe("Packages of the KUDO community", Label(onNodes, softwareLabel, ofFolder), Ordered, ContinueOnFailure, func() {
	var f *fleet

	BeforeAll(func(ctx SpecContext) {
		f = newFleet(ctx, 1)
		for _, name := range []string{"redis", "zookeeper"} {
			f.pushes(ctx, filepath.Join(os.Getenv(packagesFolder), name))
			f.deletes("cluster1", "instance.kudo.dev/"+name)
		}
	})

	It("deploy six Redis servers as a cluster, in which clients read what others wrote", func(ctx SpecContext) {
		must(f.addon(ctx, "install", "redis", "--cluster", "cluster1", "--namespace", "six", "--wait", "--timeout", long))
		redis := func(in string, command ...string) (string, error) {
			return f.kubectl(ctx, "cluster1", append([]string{"exec", "redis-redis-" + in, "-n", "six", "--", "redis-cli", "-c"}, command...)...)
		}
		Eventually(redis).WithContext(ctx).WithArguments("0", "cluster", "info").WithTimeout(timeout).WithPolling(time.Second).
			Should(And(ContainSubstring("cluster_state:ok"), ContainSubstring("cluster_known_nodes:6"), ContainSubstring("cluster_size:3")))
		Expect(redis("1", "set", "greeting", "hello")).To(Equal("OK\n"))
		Expect(redis("2", "get", "greeting")).To(Equal("hello\n"))
		must(f.addon(ctx, "uninstall", "redis", "--cluster", "cluster1", "--yes", "--timeout", long))
		f.isEmpty(ctx, "cluster1", "six")
	})

	It("deploy and scale an ensemble of ZooKeeper servers, in which clients read what others wrote", func(ctx SpecContext) {
		must(f.addon(ctx, "install", "zookeeper", "--cluster", "cluster1", "--namespace", "ensemble", "-p", "IMAGE_PULL_POLICY=IfNotPresent",
			"-p", "NODE_COUNT=1", "-p", "MEMORY=256Mi", "--wait", "--timeout", long))
		must(f.addon(ctx, "update", "zookeeper", "--cluster", "cluster1", "-p", "NODE_COUNT=3", "--wait", "--timeout", long))
		Expect(modes(ctx, f, "zookeeper-zookeeper", 3)).To(Equal(map[string]int{"leader": 1, "follower": 2}))
		zkCli := func(in string, command ...string) (string, error) {
			return f.kubectl(ctx, "cluster1", append([]string{
				"exec", "zookeeper-zookeeper-" + in, "-n", "ensemble", "--", "zkCli.sh", "-server", "zookeeper-cs:2181",
			}, command...)...)
		}
		Expect(zkCli("0", "create", "/greeting", "hello")).To(ContainSubstring("Created /greeting"))
		Expect(zkCli("2", "get", "/greeting")).To(ContainSubstring("hello"))
		must(f.addon(ctx, "uninstall", "zookeeper", "--cluster", "cluster1", "--yes", "--timeout", long))
		f.isEmpty(ctx, "cluster1", "ensemble")
	})
})

// visitor is the template of a Deployment that counts in Redis.
const visitor = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: visitor}
spec:
  selector: {matchLabels: {app: visitor}}
  template:
    metadata: {labels: {app: visitor}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
      - name: main
        image: redis:7.4.1
        command: [sh, -c, "while true; do redis-cli -h redis incr visits; sleep 1; done"]
        env: [{name: REDISCLI_AUTH, valueFrom: {secretKeyRef: {name: redis, key: password}}}]
        readinessProbe: {exec: {command: [sh, -c, "redis-cli -h redis ping | grep PONG"]}, periodSeconds: 2}
`

// imagesOf returns the images of the containers of pods.
func imagesOf(ctx context.Context, f *fleet, cluster, namespace, labels string) (string, error) {
	return f.kubectl(ctx, cluster, "get", "pods", "-n", namespace, "-l", labels, "-o", "jsonpath={.items[*].spec.containers[*].image}")
}

// addOnOn returns an add-on on a cluster.
func addOnOn(ctx context.Context, g Gomega, hub client.Client, cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	g.Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, addOn)).To(Succeed())
	return addOn
}

// pushes pushes a package to the hub for all specs of a container, and returns the name of its OperatorVersion.
func (f *fleet) pushes(ctx context.Context, folder string) string {
	GinkgoHelper()
	out := must(f.addon(ctx, "package", "push", folder))
	names := pushed.FindAllStringSubmatch(out, -1)
	Expect(names).NotTo(BeEmpty(), out)
	for _, name := range names {
		f.deletes(kudo.DefaultPackagesNamespace, "operatorversion.kudo.dev/"+name[1])
	}
	return names[len(names)-1][1] // after its child operators
}

// deletes deletes objects in a namespace of the hub after the specs, also if one has failed.
func (f *fleet) deletes(namespace string, objects ...string) {
	DeferCleanup(func(ctx SpecContext) {
		must(f.kubectl(ctx, "hub", append([]string{"delete", "-n", namespace, "--ignore-not-found", "--timeout=2m"}, objects...)...))
	})
}

// isEmpty waits until neither objects of Tandem nor pods and volume claims in the namespace are left on a cluster.
func (f *fleet) isEmpty(ctx context.Context, cluster, namespace string) {
	GinkgoHelper()
	pods, err := kubernetes.NewForConfig(f.clusters[cluster])
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		left, err := census.OfTandem(ctx, f.clusters[cluster])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(left).To(BeEmpty())
		g.Expect(slices.Collect(maps.Values(podsOf(ctx, pods, namespace, "")))).To(Equal([]types.UID(nil)))
	}).WithContext(ctx).WithTimeout(2 * time.Minute).WithPolling(time.Second).Should(Succeed())
}

// copyWithImage returns a copy of a package with a higher version and another image.
func copyWithImage(folder, before, after string) string {
	GinkgoHelper()
	higher := successor(folder)
	Expect(filepath.WalkDir(higher, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, []byte(strings.ReplaceAll(string(content), before, after)), 0o600)
	})).To(Succeed())
	return higher
}
