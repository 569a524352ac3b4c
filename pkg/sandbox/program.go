package sandbox

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// hubName is the name of the hub among the clusters of a sandbox.
const hubName = "hub"

// packagesNamespace is where packages are pushed to on the hub (manifests/hub).
const packagesNamespace = kudo.DefaultPackagesNamespace

// The names of Tandem's agent: as an add-on of OCM's, and those of its program, its Deployment and that one's container.
const (
	agentAddOnName = "tandem"
	agentProgram   = "addon-agent"
)

// program is one program to run: where it is, what it is told, and which port it serves on (0 if none).
type program struct {
	Name string
	Path string
	Args []string
	Port int

	// Pod is the Deployment that it runs for, if it does.
	Pod types.NamespacedName
	// Root is the folder that is everything to a program of an image, where Path is; Image is its file outside, Env its environment.
	// Others see this machine, and have an environment that the sandbox gives to all.
	Root, Image string
	Env         []string
}

// clusterPlan is what there is to know about a cluster before it runs.
type clusterPlan struct {
	Name   string
	Home   home
	Assets string
	Ports  map[string]int

	AgentFlags  []string
	AuditPolicy []byte
	// Tandem and OCM are the folders with their programs; empty if these do not run.
	Tandem, OCM string
	// Images is the folder of images whose programs pods run; empty if they run none.
	Images string
	// DeliverAgents leaves it to OCM to bring Tandem's agents.
	DeliverAgents bool
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

// portKeys are all ports that such a sandbox needs.
func portKeys(o Options) []string {
	var keys []string
	for _, cluster := range append([]string{hubName}, o.clusterNames()...) {
		keys = append(keys, portKey(cluster, "etcd"), portKey(cluster, "kube-apiserver"))
		if o.Tandem != "" {
			keys = append(keys, portKey(cluster, "metrics"), portKey(cluster, "health"))
		}
		if o.OCM == "" {
			continue
		}
		for _, use := range ocmPortUses(cluster) {
			keys = append(keys, portKey(cluster, use))
		}
	}
	keys = append(keys, portKey(hubName, "webhooks")) // without Tandem too, for an addon-manager that the user runs
	for _, cluster := range o.clusterNames() {
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
	if c.OCM != "" {
		p.Args = append(p.Args,
			// OCM's programs complain without end about a cluster that has no authority for front proxies. Nobody has this one's name.
			"--requestheader-client-ca-file="+folder.pki("ca.crt"),
			"--requestheader-allowed-names=front-proxy-client",
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

// tandemManifests find what the cluster is to hold of manifests.FS before Tandem's program runs.
func (c clusterPlan) tandemManifests() []string {
	switch {
	case c.managed() && c.DeliverAgents:
		return nil
	case c.managed():
		return []string{"agent/*.yaml"}
	default:
		return []string{"hub/*.yaml", "admission/*.yaml"}
	}
}

// addonManager runs on the hub.
func (c clusterPlan) addonManager() program {
	p := program{
		Name: "addon-manager",
		Path: filepath.Join(c.Tandem, "addon-manager"),
		Port: c.port("metrics"),
		Args: append([]string{
			"--kubeconfig=" + c.identity("addon-manager"),
			"--packages-namespace=" + packagesNamespace,
			"--webhook-bind-address=" + c.webhooks(),
			"--webhook-hosts=127.0.0.1",
		}, c.tandemArgs()...),
	}
	if c.DeliverAgents {
		p.Args = append(p.Args, "--deliver-agents")
	}
	return p
}

// withoutTandem says what a hub lacks on which addon-manager does not run.
func (c clusterPlan) withoutTandem() string {
	lacking := "nothing serves v1beta1 of the add-on API, and nothing checks writes"
	if c.OCM != "" {
		lacking = "nothing checks writes"
	}
	return lacking + ", until you run addon-manager with --webhook-bind-address=" + c.webhooks() + " --webhook-hosts=127.0.0.1"
}

// addonAgent runs beside a managed cluster.
func (c clusterPlan) addonAgent() program {
	return program{
		Name: agentProgram,
		Path: filepath.Join(c.Tandem, agentProgram),
		Port: c.port("metrics"),
		Args: append([]string{
			"--hub-kubeconfig=" + c.identity("addon-agent-hub"),
			"--kubeconfig=" + c.identity(agentProgram),
			"--cluster-name=" + c.Name,
			fmt.Sprintf("--standalone=%t", c.OCM == ""),
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

// identities are the client certificates that the cluster's own machinery, OCM and Tandem on that cluster, reach it with, by
// the name of their kubeconfig.
func (c clusterPlan) identities() map[string]identity {
	ids := map[string]identity{"kube-controller-manager": {User: "system:kube-controller-manager"}}
	maps.Copy(ids, c.ocmIdentities())
	if !c.managed() {
		ids["addon-manager"] = serviceAccount("tandem-system", "addon-manager")
		return ids
	}
	ids["kube-scheduler"] = identity{User: "system:kube-scheduler"}
	ids["kwok"] = identity{User: "sandbox:kwok"}
	ids["volumes"] = identity{User: "sandbox:volumes"}
	ids[agentProgram] = serviceAccount("tandem-system", agentProgram)
	return ids
}

// hubIdentities are those with which a managed cluster's programs reach the hub, by the name of their kubeconfig.
func (c clusterPlan) hubIdentities() map[string]identity {
	ids := map[string]identity{"addon-agent-hub": hubAgent(c.Name)}
	if c.OCM != "" {
		ids["ocm-bootstrap"] = ocmBootstrap()
	}
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
	group := fmt.Sprintf("system:open-cluster-management:cluster:%s:addon:%s", cluster, agentAddOnName)
	return identity{
		User:   group + ":agent:" + agentProgram,
		Groups: []string{group, "system:open-cluster-management:addon:" + agentAddOnName},
	}
}
