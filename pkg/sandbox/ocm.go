package sandbox

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/sandbox/cache"
)

// The namespaces that OCM's installers choose.
const (
	ocmNamespace      = "open-cluster-management"
	ocmHubNamespace   = "open-cluster-management-hub"
	ocmAgentNamespace = "open-cluster-management-agent"
)

// ocmBootstrap is whom a cluster registers as until the hub knows it, and whose clusters the hub accepts without asking anybody.
func ocmBootstrap() identity { return serviceAccount(ocmNamespace, "agent-registration-bootstrap") }

// ocmPrograms are what the folder of OCM's programs must hold.
func ocmPrograms() []string {
	return []string{"registration", "work", "placement", "addon", "webhooks"}
}

// FindOCM is the folder with OCM's programs and manifests: TANDEM_OCM_ASSETS, else the newest in the cache that hack/ocm builds them into.
func FindOCM(getenv func(string) string) (string, error) {
	if named := getenv("TANDEM_OCM_ASSETS"); named != "" {
		return checkOCM(named)
	}
	cached := cache.Folder(getenv)
	if folder := newestFolder(cached, "ocm-*", ocmPrograms()); folder != "" {
		return filepath.Abs(folder)
	}
	return "", fmt.Errorf("OCM's programs are not in %q; `make ocm` builds them", cached)
}

// checkOCM is the absolute path of a folder with OCM's programs, empty if none is named.
func checkOCM(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	if missing := missingPrograms(folder, ocmPrograms()); len(missing) > 0 {
		return "", fmt.Errorf("the folder %q lacks OCM's programs %q; `make ocm` builds them", folder, missing)
	}
	return filepath.Abs(folder)
}

func (o Options) runsOCM() string { return runsOCM(o.OCM, o.DeliverAgents) }
func (s State) runsOCM() string   { return runsOCM(s.OCM, s.DeliverAgents) }

// runsOCM is how one speaks of a sandbox with that folder of OCM's programs.
func runsOCM(folder string, deliversAgents bool) string {
	switch {
	case folder == "":
		return "runs without OCM"
	case deliversAgents:
		return "runs with OCM, which delivers Tandem's agents"
	default:
		return "runs with OCM"
	}
}

// The names of OCM's programs in a sandbox, of their ports and of their kubeconfigs.
const (
	ocmWebhooks          = "ocm-webhooks"
	ocmRegistration      = "ocm-registration"
	ocmPlacement         = "ocm-placement"
	ocmAddonManager      = "ocm-addon-manager"
	ocmRegistrationAgent = "ocm-registration-agent"
	ocmWorkAgent         = "ocm-work-agent"
)

// ocmPortUses are the uses of ports by OCM's programs on a hub or a managed cluster.
func ocmPortUses(cluster string) []string {
	if cluster == hubName {
		return []string{ocmWebhooks, ocmRegistration, ocmPlacement, ocmAddonManager}
	}
	return []string{ocmRegistrationAgent, ocmWorkAgent}
}

// ocmIdentities are those of the service accounts that OCM's operators run the programs as, by program.
func (c clusterPlan) ocmIdentities() map[string]identity {
	switch {
	case c.OCM == "":
		return nil
	case c.managed():
		return map[string]identity{
			ocmRegistrationAgent: serviceAccount(ocmAgentNamespace, "klusterlet-registration-sa"),
			ocmWorkAgent:         serviceAccount(ocmAgentNamespace, "klusterlet-work-sa"),
		}
	default:
		return map[string]identity{
			// It serves all webhooks of OCM's, of which those of registration need the most.
			ocmWebhooks:     serviceAccount(ocmHubNamespace, "registration-webhook-sa"),
			ocmRegistration: serviceAccount(ocmHubNamespace, "registration-controller-sa"),
			ocmPlacement:    serviceAccount(ocmHubNamespace, "placement-controller-sa"),
			ocmAddonManager: serviceAccount(ocmHubNamespace, "addon-manager-controller-sa"),
		}
	}
}

// ocm completes a program of OCM's that is built on library-go's command for controllers.
func (c clusterPlan) ocm(name, binary, command, namespace string, args ...string) program {
	return program{
		Name: name,
		Path: filepath.Join(c.OCM, binary),
		Port: c.port(name),
		Args: append([]string{
			command,
			"--kubeconfig=" + c.identity(name),
			"--namespace=" + namespace,
			"--config=" + c.folder().path("ocm.yaml"),
			"--listen=" + loopback(c.port(name)),
			"--disable-leader-election",
		}, args...),
	}
}

// ocmServing is the configuration by which OCM's programs of the cluster serve with a certificate of its authority. They would sign
// their own, and leave them in the folder of temporary files.
func (c clusterPlan) ocmServing() []byte {
	return fmt.Appendf(nil, `apiVersion: operator.openshift.io/v1alpha1
kind: GenericOperatorConfig
servingInfo:
  certFile: %q
  keyFile: %q
`, c.folder().pki("ocm.crt"), c.folder().pki("ocm.key"))
}

// ocmHub are OCM's programs of a hub in the order of their start: what the others write has to pass the webhooks.
func (c clusterPlan) ocmHub() []program {
	return []program{
		{
			Name: ocmWebhooks,
			Path: filepath.Join(c.OCM, "webhooks"),
			Port: c.port(ocmWebhooks),
			Args: []string{
				"--kubeconfig=" + c.identity(ocmWebhooks),
				"--bind-address=" + loopback(c.port(ocmWebhooks)),
				"--tls-cert-file=" + c.folder().pki("ocm.crt"),
				"--tls-private-key-file=" + c.folder().pki("ocm.key"),
			},
		},
		c.ocm(ocmRegistration, "registration", "controller", ocmHubNamespace,
			"--feature-gates=ManagedClusterAutoApproval=true",
			"--auto-approved-csr-users="+ocmBootstrap().User),
		c.ocm(ocmPlacement, "placement", "controller", ocmHubNamespace),
		c.ocm(ocmAddonManager, "addon", "manager", ocmHubNamespace),
	}
}

// hubKubeconfig is the folder in which the registration agent keeps what leads to the hub, and the work agent finds it.
func (c clusterPlan) hubKubeconfig() string { return c.folder().path("hub-kubeconfig") }

// ocmRegistrationAgent registers the cluster and those of its add-ons, and says that they are alive.
func (c clusterPlan) ocmRegistrationAgent() program {
	return c.ocm(ocmRegistrationAgent, "registration", "agent", ocmAgentNamespace,
		"--spoke-cluster-name="+c.Name,
		"--spoke-external-server-urls="+c.server(),
		"--bootstrap-kubeconfig="+c.identity("ocm-bootstrap"),
		"--hub-kubeconfig-dir="+c.hubKubeconfig(),
	)
}

// ocmWorkAgent carries ManifestWorks out. It ends when the hub's kubeconfig changes, and is started again.
func (c clusterPlan) ocmWorkAgent() program {
	file := filepath.Join(c.hubKubeconfig(), "kubeconfig")
	return c.ocm(ocmWorkAgent, "work", "agent", ocmAgentNamespace,
		"--spoke-cluster-name="+c.Name,
		"--workload-source-driver=kube",
		"--workload-source-config="+file,
		"--terminate-on-files="+file,
	)
}

// ocmParameters are what OCM's manifests are templates for, with the names that its operators fill in; what is not set belongs to
// features that are off by default.
type ocmParameters struct {
	Labels map[string]string

	// Of a hub.
	ClusterManagerName, ClusterManagerNamespace                    string
	AddonAPIServiceCABundle, RegistrationAPIServiceCABundle        string
	RegistrationWebhook                                            struct{ Port int }
	ClusterImporterEnabled, ClusterProfileEnabled, GRPCAuthEnabled bool

	// Of a managed cluster.
	KlusterletName, KlusterletNamespace, AgentNamespace string
	RegistrationServiceAccount, WorkServiceAccount      string
	ManagedClusterRoleArn                               string
	RegistrationDriver                                  struct{ AuthType string }
}

func newOCMParameters(managed bool, authority []byte) ocmParameters {
	if managed {
		return ocmParameters{
			Labels:         map[string]string{"open-cluster-management.io/created-by-klusterlet": "klusterlet"},
			KlusterletName: "klusterlet", KlusterletNamespace: ocmAgentNamespace, AgentNamespace: ocmAgentNamespace,
			RegistrationServiceAccount: "klusterlet-registration-sa", WorkServiceAccount: "klusterlet-work-sa",
		}
	}
	bundle := base64.StdEncoding.EncodeToString(authority)
	p := ocmParameters{
		Labels:             map[string]string{"open-cluster-management.io/created-by-clustermanager": "cluster-manager"},
		ClusterManagerName: "cluster-manager", ClusterManagerNamespace: ocmHubNamespace,
		AddonAPIServiceCABundle: bundle, RegistrationAPIServiceCABundle: bundle,
	}
	p.RegistrationWebhook.Port = 9443
	return p
}

// ocmPatterns find the manifests that OCM's operators apply where all their features are as by default, below the folder of OCM's
// programs. They leave out Deployments, which the sandbox's processes stand for, and Services, to which nothing leads.
func ocmPatterns(managed bool) []string {
	if managed {
		return []string{
			"manifests/klusterlet/managed/0000_*.crd.yaml",
			"manifests/klusterlet/managed/klusterlet-*.yaml",
			"manifests/klusterlet/management/*role*.yaml",
		}
	}
	patterns := []string{
		"manifests/cluster-manager/cluster-manager-namespace.yaml",
		"manifests/cluster-manager/hub/crds/*open-cluster-management.io_*.crd.yaml",
	}
	for _, part := range []string{"registration", "work", "placement", "addon-manager"} {
		folder := "manifests/cluster-manager/hub/" + part
		patterns = append(patterns, folder+"/*clusterrole*.yaml", folder+"/*configuration.yaml")
	}
	return patterns
}

// ocmObjects are what OCM's installer and operators put on the cluster: resource definitions, and everything else. On a hub its
// webhooks, which the authority's certificate is to be trusted by, are called where the sandbox runs them.
func (c clusterPlan) ocmObjects(authority []byte) (definitions, others []*unstructured.Unstructured, err error) {
	own := "cluster/ocm-hub.yaml"
	if c.managed() {
		own = "cluster/ocm-managed.yaml"
	}
	objects, err := manifests.Objects(clusterFiles, own, nil)
	if err != nil {
		return nil, nil, err
	}
	for _, pattern := range ocmPatterns(c.managed()) {
		found, err := manifests.Objects(os.DirFS(c.OCM), pattern, newOCMParameters(c.managed(), authority))
		if err != nil {
			return nil, nil, fmt.Errorf("reading OCM's manifests: %w", err)
		}
		objects = append(objects, found...)
	}
	for _, object := range objects {
		manifests.WebhooksAt(object, "https://"+loopback(c.port(ocmWebhooks)))
		if object.GetKind() == "CustomResourceDefinition" {
			definitions = append(definitions, object)
		} else {
			others = append(others, object)
		}
	}
	return definitions, others, nil
}
