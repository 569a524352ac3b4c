package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// hubName is the name of the hub among the clusters of a sandbox.
const hubName = "hub"

// packagesNamespace is where packages are pushed to on the hub (manifests/hub).
const packagesNamespace = kudo.DefaultPackagesNamespace

// program is one program to run: where it is, what it is told, and which port it serves on (0 if none).
type program struct {
	Name string
	Path string
	Args []string
	Port int
}

// clusterPlan is what there is to know about a cluster before it runs.
type clusterPlan struct {
	Name   string
	Home   home
	Assets string
	Ports  map[string]int

	AgentFlags  []string
	AuditPolicy []byte
}

func (c clusterPlan) folder() clusterFolder { return c.Home.cluster(c.Name) }
func (c clusterPlan) managed() bool         { return c.Name != hubName }
func (c clusterPlan) server() string        { return "https://" + loopback(c.port("kube-apiserver")) }
func (c clusterPlan) port(use string) int   { return c.Ports[portKey(c.Name, use)] }

// webhooks is where the hub's API server calls addon-manager.
func (c clusterPlan) webhooks() string { return loopback(c.Ports[portKey(hubName, "webhooks")]) }

// identity is the kubeconfig with which a part of the cluster's own machinery reaches it.
func (c clusterPlan) identity(name string) string { return c.Home.identity(c.Name + "-" + name) }

// program completes one that lies among the assets.
func (c clusterPlan) program(name string, port int, args ...string) program {
	return program{Name: name, Path: filepath.Join(c.Assets, name), Args: args, Port: port}
}

// portKey is how the ports of a sandbox are told apart.
func portKey(cluster, use string) string { return cluster + "/" + use }

// portKeys are all ports that a sandbox with these managed clusters needs.
func portKeys(clusters []string, tandem bool) []string {
	var keys []string
	for _, cluster := range append([]string{hubName}, clusters...) {
		keys = append(keys, portKey(cluster, "etcd"), portKey(cluster, "kube-apiserver"))
		if tandem {
			keys = append(keys, portKey(cluster, "metrics"), portKey(cluster, "health"))
		}
	}
	keys = append(keys, portKey(hubName, "webhooks")) // without Tandem too, for an addon-manager that the user runs
	for _, cluster := range clusters {
		keys = append(keys, portKey(cluster, "kubelet"))
	}
	return keys
}

// storage are the programs that answer API requests, in the order of their start.
func (c clusterPlan) storage() []program {
	return []program{c.etcd(), c.apiServer()}
}

// control are the programs that work through the API, to be started once it answers.
func (c clusterPlan) control() []program {
	programs := []program{c.controllerManager()}
	if c.managed() {
		programs = append(programs, c.scheduler(), c.kwok())
	}
	return programs
}

// etcd never syncs to disk: its data survives the death of processes, though not of the machine.
func (c clusterPlan) etcd() program {
	url := "http://" + loopback(c.port("etcd"))
	return c.program("etcd", c.port("etcd"),
		"--name="+c.Name,
		"--data-dir="+c.folder().path("etcd"),
		"--listen-client-urls="+url,
		"--advertise-client-urls="+url,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync",
		"--quota-backend-bytes=4294967296",
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=5m",
		"--log-level=warn",
	)
}

func (c clusterPlan) apiServer() program {
	folder := c.folder()
	p := c.program("kube-apiserver", c.port("kube-apiserver"),
		"--etcd-servers=http://"+loopback(c.port("etcd")),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port("kube-apiserver")),
		"--tls-cert-file="+folder.pki("apiserver.crt"),
		"--tls-private-key-file="+folder.pki("apiserver.key"),
		"--client-ca-file="+folder.pki("ca.crt"),
		"--anonymous-auth=false",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+folder.pki("service-account.crt"),
		"--service-account-signing-key-file="+folder.pki("service-account.key"),
		"--service-cluster-ip-range=10.0.0.0/16",
		"--endpoint-reconciler-type=none",
		"--audit-policy-file="+folder.path("audit.yaml"),
		"--audit-log-path="+folder.path("audit.log"),
		"--audit-log-maxsize=1000000", // megabytes: whoever counts writes wants them all in one file
		"--profiling=false",
	)
	if c.managed() {
		p.Args = append(p.Args,
			// Where the simulated kubelets answer (cluster/kwok.yaml); an IP would become their pods' as well.
			"--kubelet-preferred-address-types=ExternalDNS",
			"--kubelet-certificate-authority="+folder.pki("ca.crt"),
			"--kubelet-client-certificate="+folder.pki("kubelet-client.crt"),
			"--kubelet-client-key="+folder.pki("kubelet-client.key"),
		)
	}
	return p
}

func (c clusterPlan) controllerManager() program {
	folder := c.folder()
	return c.program("kube-controller-manager", 0,
		"--kubeconfig="+c.identity("kube-controller-manager"),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+folder.pki("service-account.key"),
		"--root-ca-file="+folder.pki("ca.crt"),
		"--cluster-signing-cert-file="+folder.pki("ca.crt"),
		"--cluster-signing-key-file="+folder.pki("ca.key"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	)
}

func (c clusterPlan) scheduler() program {
	return c.program("kube-scheduler", 0,
		"--kubeconfig="+c.identity("kube-scheduler"),
		"--leader-elect=false",
		"--secure-port=0",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
	)
}

func (c clusterPlan) kwok() program {
	return c.program("kwok", 0,
		"--kubeconfig="+c.identity("kwok"),
		"--config="+c.folder().path("kwok.yaml"),
		"--manage-all-nodes=true",
		"--cidr=10.244.0.0/16",
		"--node-lease-duration-seconds=40",
		"--v=WARN",
	)
}

// addonManager runs on the hub.
func (c clusterPlan) addonManager(tandem string) program {
	return program{
		Name: "addon-manager",
		Path: filepath.Join(tandem, "addon-manager"),
		Port: c.port("metrics"),
		Args: append([]string{
			"--kubeconfig=" + c.identity("addon-manager"),
			"--packages-namespace=" + packagesNamespace,
			"--webhook-bind-address=" + c.webhooks(),
			"--webhook-hosts=127.0.0.1",
		}, c.tandemArgs()...),
	}
}

// withoutTandem says what a hub lacks on which addon-manager does not run.
func (c clusterPlan) withoutTandem() string {
	return "nothing serves v1beta1 of the add-on API, and nothing checks writes, until you run addon-manager with " +
		"--webhook-bind-address=" + c.webhooks() + " --webhook-hosts=127.0.0.1"
}

// addonAgent runs beside a managed cluster.
func (c clusterPlan) addonAgent(tandem string) program {
	return program{
		Name: "addon-agent",
		Path: filepath.Join(tandem, "addon-agent"),
		Port: c.port("metrics"),
		Args: append([]string{
			"--hub-kubeconfig=" + c.identity("addon-agent-hub"),
			"--kubeconfig=" + c.identity("addon-agent"),
			"--cluster-name=" + c.Name,
			"--standalone",
		}, slices.Concat(c.tandemArgs(), c.AgentFlags)...),
	}
}

func (c clusterPlan) tandemArgs() []string {
	return []string{
		"--leader-elect=false",
		"--metrics-bind-address=" + loopback(c.port("metrics")),
		"--health-probe-bind-address=" + loopback(c.port("health")),
	}
}

// identities are the client certificates that the cluster's own machinery, and Tandem on that cluster, reach it with, by
// the name of their kubeconfig.
func (c clusterPlan) identities() map[string]identity {
	ids := map[string]identity{"kube-controller-manager": {User: "system:kube-controller-manager"}}
	if !c.managed() {
		ids["addon-manager"] = serviceAccount("tandem-system", "addon-manager")
		return ids
	}
	ids["kube-scheduler"] = identity{User: "system:kube-scheduler"}
	ids["kwok"] = identity{User: "sandbox:kwok"}
	ids["volumes"] = identity{User: "sandbox:volumes"}
	ids["addon-agent"] = serviceAccount("tandem-system", "addon-agent")
	return ids
}

// administrator is whom the kubeconfigs for people stand for.
func administrator() identity {
	return identity{User: "admin", Groups: []string{"system:masters"}}
}

// serviceAccount is a certificate's stand-in for a service account's token: one set of RBAC serves the sandbox and real
// clusters.
func serviceAccount(namespace, name string) identity {
	return identity{
		User:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// hubAgent is the identity of a managed cluster's agent on the hub, by OCM's convention for add-on agents.
func hubAgent(cluster string) identity {
	const addon, agent = "tandem", "addon-agent"
	group := fmt.Sprintf("system:open-cluster-management:cluster:%s:addon:%s", cluster, addon)
	return identity{
		User:   group + ":agent:" + agent,
		Groups: []string{group, "system:open-cluster-management:addon:" + addon},
	}
}
