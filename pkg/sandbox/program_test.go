package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testPlan(name string) clusterPlan {
	return testPlanOf(name, Options{Clusters: 1, Tandem: "/tandem"})
}

func testPlanOf(name string, options Options) clusterPlan {
	ports := map[string]int{}
	for i, key := range portKeys(options) {
		ports[key] = 20001 + i
	}
	return clusterPlan{Name: name, Home: "/home", Assets: "/assets", Tandem: options.Tandem, OCM: options.OCM, Ports: ports}
}

func names(programs []program) []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.Name)
	}
	return names
}

func TestPrograms(t *testing.T) {
	for name, test := range map[string]struct {
		cluster string
		want    []string
	}{
		"a hub schedules no pods": {"hub", []string{"etcd", "kube-apiserver", "kube-controller-manager"}},
		"a managed cluster has simulated nodes": {"cluster1", []string{
			"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := testPlan(test.cluster)
			if diff := cmp.Diff(test.want, names(append(plan.storage(), plan.control()...))); diff != "" {
				t.Errorf("programs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	hub, managed := testPlan("hub"), testPlan("cluster1")
	openHub, openManaged := hub, managed
	openHub.AllowedNamespaces, openManaged.AllowedNamespaces = "kube-system", "kube-system"
	for name, test := range map[string]struct {
		program program
		path    string
		port    int
		want    []string
	}{
		"etcd serves its API server on loopback only": {managed.etcd(), "/assets/etcd", 20005, []string{
			"--listen-client-urls=http://127.0.0.1:20005", "--listen-peer-urls=http://127.0.0.1:0", "--data-dir=/home/cluster1/etcd",
		}},
		"the API server asks for certificates and keeps to RBAC": {managed.apiServer(), "/assets/kube-apiserver", 20006, []string{
			"--etcd-servers=http://127.0.0.1:20005", "--bind-address=127.0.0.1", "--secure-port=20006", "--anonymous-auth=false",
			"--authorization-mode=RBAC", "--client-ca-file=/home/cluster1/pki/ca.crt", "--audit-log-path=/home/cluster1/audit.log",
		}},
		"controllers have identities of their own": {hub.controllerManager(), "/assets/kube-controller-manager", 0, []string{
			"--use-service-account-credentials=true",
			"--kubeconfig=/home/kubeconfig/identities/hub-kube-controller-manager.kubeconfig",
		}},
		"kwok plays the kubelets of all nodes": {managed.kwok(), "/assets/kwok", 0, []string{
			"--manage-all-nodes=true", "--config=/home/cluster1/kwok.yaml",
		}},
		"addon-manager works on the hub": {hub.addonManager(), "/tandem/addon-manager", 20003, []string{
			"--kubeconfig=/home/kubeconfig/identities/hub-addon-manager.kubeconfig", "--packages-namespace=addon-packages",
			"--leader-elect=false", "--metrics-bind-address=127.0.0.1:20003", "--metrics-insecure", "--health-probe-bind-address=127.0.0.1:20004",
			"--webhook-bind-address=127.0.0.1:20009", "--webhook-hosts=127.0.0.1",
		}},
		"addon-manager allows reserved namespaces": {openHub.addonManager(), "/tandem/addon-manager", 20003, []string{"--allow-namespaces=kube-system"}},
		"addon-agent allows reserved namespaces":   {openManaged.addonAgent(), "/tandem/addon-agent", 20007, []string{"--allow-namespaces=kube-system"}},
		"addon-agent works on hub and cluster": {managed.addonAgent(), "/tandem/addon-agent", 20007, []string{
			"--hub-kubeconfig=/home/kubeconfig/identities/cluster1-addon-agent-hub.kubeconfig",
			"--kubeconfig=/home/kubeconfig/identities/cluster1-addon-agent.kubeconfig", "--cluster-name=cluster1", "--standalone=true",
			"--leader-elect=false", "--metrics-bind-address=127.0.0.1:20007", "--metrics-insecure", "--health-probe-bind-address=127.0.0.1:20008",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.program.Path != test.path || test.program.Port != test.port {
				t.Errorf("it is %s on port %d, want %s on %d", test.program.Path, test.program.Port, test.path, test.port)
			}
			for _, argument := range test.want {
				if !slices.Contains(test.program.Args, argument) {
					t.Errorf("%s is missing in\n%s", argument, strings.Join(test.program.Args, "\n"))
				}
			}
		})
	}
}

func TestPortKeysWithoutTandem(t *testing.T) {
	want := []string{"hub/etcd", "hub/kube-apiserver", "cluster1/etcd", "cluster1/kube-apiserver", "hub/webhooks", "cluster1/kubelet"}
	if diff := cmp.Diff(want, portKeys(Options{Clusters: 1})); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

// Name and groups follow OCM's convention, so that the same RBAC serves agents registered by OCM.
func TestHubAgentIsNamedByTheConventionOfOCM(t *testing.T) {
	want := identity{
		User: "system:open-cluster-management:cluster:cluster1:addon:tandem:agent:addon-agent",
		Groups: []string{
			"system:open-cluster-management:cluster:cluster1:addon:tandem",
			"system:open-cluster-management:addon:tandem",
		},
	}
	if diff := cmp.Diff(want, hubAgent("cluster1")); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
}
