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

// packagesNamespace is the namespace of packages on the hub (manifests/hub).
const packagesNamespace = kudo.DefaultPackagesNamespace

// The names of Tandem's agent: as an OCM add-on, of its program, of its Deployment, and of the container.
const (
	agentAddOnName = "tandem"
	agentProgram   = "addon-agent"
)

// program is a program to run: its path, its arguments, and the port that it serves on (0 if none).
type program struct {
	Name string
	Path string
	Args []string
	Port int

	// Pod is the Deployment that it runs for, if any.
	Pod types.NamespacedName
	// Root is the root folder of an image's program, which contains Path; Image is the program's file outside of it, Env its environment.
	// Other programs have the file system of this machine and the sandbox's default environment.
	Root, Image string
	Env         []string
}

// clusterPlan is the configuration of a cluster.
type clusterPlan struct {
	Name   string
	Home   home
	Assets string
	Ports  map[string]int

	AgentFlags  []string
	AuditPolicy []byte
	// AllowedNamespaces are the reserved namespaces in which packages may be installed, separated by commas; empty for none.
	AllowedNamespaces string
	// Tandem and OCM are the folders of their programs; empty if they do not run.
	Tandem, OCM string
	// Images is the folder of images with programs for pods; empty if pods run no programs.
	Images string
	// DeliverAgents leaves the delivery of Tandem's agents to OCM.
	DeliverAgents bool
}

func (c clusterPlan) folder() clusterFolder { return c.Home.cluster(c.Name) }
func (c clusterPlan) isManaged() bool       { return c.Name != hubName }
func (c clusterPlan) server() string        { return "https://" + loopback(c.port("kube-apiserver")) }
func (c clusterPlan) port(use string) int   { return c.Ports[portKey(c.Name, use)] }

// webhooks returns the address of addon-manager's webhooks.
func (c clusterPlan) webhooks() string { return loopback(c.Ports[portKey(hubName, "webhooks")]) }

// identity returns the kubeconfig of a component of the cluster.
func (c clusterPlan) identity(name string) string { return c.Home.identity(c.Name + "-" + name) }

// program returns a program in the folder of assets.
func (c clusterPlan) program(name string, port int, args ...string) program {
	return program{Name: name, Path: filepath.Join(c.Assets, name), Args: args, Port: port}
}

// portKey returns the key of a port of the sandbox.
func portKey(cluster, use string) string { return cluster + "/" + use }

// portKeys returns the keys of all ports of a sandbox.
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
	keys = append(keys, portKey(hubName, "webhooks")) // even without Tandem, for an addon-manager run by the user
	for _, cluster := range o.clusterNames() {
		keys = append(keys, portKey(cluster, "kubelet"))
	}
	return keys
}

// storage returns the programs that serve the API, in start order.
func (c clusterPlan) storage() []program {
	return []program{c.etcd(), c.apiServer()}
}

// control returns the programs that use the API, to be started once it is ready.
func (c clusterPlan) control() []program {
	programs := []program{c.controllerManager()}
	if c.isManaged() {
		programs = append(programs, c.scheduler(), c.kwok())
	}
	return programs
}

// etcd never syncs to disk: its data survives killed processes, but not a crash of the machine.
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
		"--audit-log-maxsize=1000000", // megabytes: analyses of the writes need them all in one file
		"--profiling=false",
	)
	if c.isManaged() {
		p.Args = append(p.Args,
			// The name of the simulated kubelets (cluster/kwok.yaml); an IP address would become their pods' host IP as well.
			"--kubelet-preferred-address-types=ExternalDNS",
			"--kubelet-certificate-authority="+folder.pki("ca.crt"),
			"--kubelet-client-certificate="+folder.pki("kubelet-client.crt"),
			"--kubelet-client-key="+folder.pki("kubelet-client.key"),
		)
	}
	if c.OCM != "" {
		p.Args = append(p.Args,
			// Without an authority for front proxies, OCM's programs log errors continuously. No client has a certificate with this one's
			// name.
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

// tandemManifests matches the files of manifests.FS to apply before Tandem's program runs.
func (c clusterPlan) tandemManifests() []string {
	switch {
	case c.isManaged() && c.DeliverAgents:
		return nil
	case c.isManaged():
		return []string{"agent/*.yaml"}
	default:
		return []string{"hub/*.yaml", "admission/*.yaml"}
	}
}

// addonManager returns the program addon-manager, which runs on the hub.
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

// withoutTandemText describes the limits of a hub without addon-manager.
func (c clusterPlan) withoutTandemText() string {
	lacking := "hub: v1beta1 of the add-on API is not served, and writes are not validated"
	if c.OCM != "" {
		lacking = "hub: writes are not validated"
	}
	return lacking + ", until you run addon-manager with --webhook-bind-address=" + c.webhooks() + " --webhook-hosts=127.0.0.1"
}

// addonAgent returns the program addon-agent, which runs for a managed cluster.
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
	args := []string{
		"--leader-elect=false",
		"--metrics-bind-address=" + loopback(c.port("metrics")),
		"--metrics-insecure",
		"--health-probe-bind-address=" + loopback(c.port("health")),
	}
	if c.AllowedNamespaces != "" {
		args = append(args, "--allow-namespaces="+c.AllowedNamespaces)
	}
	return args
}

// identities returns the identities with which the cluster's own components, OCM and Tandem connect to it, by the name of their kubeconfig.
func (c clusterPlan) identities() map[string]identity {
	ids := map[string]identity{"kube-controller-manager": {User: "system:kube-controller-manager"}}
	maps.Copy(ids, c.ocmIdentities())
	if !c.isManaged() {
		ids["addon-manager"] = serviceAccount("tandem-system", "addon-manager")
		return ids
	}
	ids["kube-scheduler"] = identity{User: "system:kube-scheduler"}
	ids["kwok"] = identity{User: "sandbox:kwok"}
	ids["volumes"] = identity{User: "sandbox:volumes"}
	ids[agentProgram] = serviceAccount("tandem-system", agentProgram)
	return ids
}

// hubIdentities returns the identities with which a managed cluster's programs connect to the hub, by the name of their kubeconfig.
func (c clusterPlan) hubIdentities() map[string]identity {
	ids := map[string]identity{"addon-agent-hub": hubAgent(c.Name)}
	if c.OCM != "" {
		ids["ocm-bootstrap"] = ocmBootstrap()
	}
	return ids
}

// administrator returns the identity of the users' kubeconfigs.
func administrator() identity {
	return identity{User: "admin", Groups: []string{"system:masters"}}
}

// serviceAccount returns a certificate identity in place of a service account's token, so that the same RBAC serves the sandbox and real
// clusters.
func serviceAccount(namespace, name string) identity {
	return identity{
		User:   fmt.Sprintf("system:serviceaccount:%s:%s", namespace, name),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

// hubAgent returns the identity of a managed cluster's agent on the hub, by OCM's convention for add-on agents.
func hubAgent(cluster string) identity {
	group := fmt.Sprintf("system:open-cluster-management:cluster:%s:addon:%s", cluster, agentAddOnName)
	return identity{
		User:   group + ":agent:" + agentProgram,
		Groups: []string{group, "system:open-cluster-management:addon:" + agentAddOnName},
	}
}
