package sandbox

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/sandbox/cache"
)

// The namespaces used by OCM's installers.
const (
	ocmNamespace      = "open-cluster-management"
	ocmHubNamespace   = "open-cluster-management-hub"
	ocmAgentNamespace = "open-cluster-management-agent"
)

// ocmBootstrap is the identity with which a cluster registers. The hub accepts its clusters automatically.
func ocmBootstrap() identity { return serviceAccount(ocmNamespace, "agent-registration-bootstrap") }

// ocmPrograms lists the programs required in the folder of OCM's programs.
func ocmPrograms() []string {
	return []string{"registration", "work", "placement", "addon", "webhooks"}
}

// FindOCM returns the folder of OCM's programs and manifests: TANDEM_OCM_ASSETS, else the latest in the cache that hack/ocm fills.
func FindOCM(getenv func(string) string) (string, error) {
	if named := getenv("TANDEM_OCM_ASSETS"); named != "" {
		return checkOCM(named)
	}
	cached := cache.Folder(getenv)
	if folder := latestFolder(cached, "ocm-*", ocmPrograms()); folder != "" {
		return filepath.Abs(folder)
	}
	return "", fmt.Errorf("no OCM programs in %q; run `make ocm` to build them", cached)
}

// checkOCM returns the absolute path of a folder of OCM's programs, or an empty string if none is given.
func checkOCM(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	if missing := missingPrograms(folder, ocmPrograms()); len(missing) > 0 {
		return "", fmt.Errorf("the folder %q does not contain OCM's programs %q; run `make ocm` to build them", folder, missing)
	}
	return filepath.Abs(folder)
}

func (o Options) ocmText() string { return ocmText(o.OCM, o.DeliverAgents) }
func (s State) ocmText() string   { return ocmText(s.OCM, s.DeliverAgents) }

// ocmText describes whether a sandbox with that folder runs OCM, for messages.
func ocmText(folder string, deliversAgents bool) string {
	switch {
	case folder == "":
		return "runs without OCM"
	case deliversAgents:
		return "runs with OCM, which delivers Tandem's agents"
	default:
		return "runs with OCM"
	}
}

// The names of OCM's programs in a sandbox, also used for their ports and kubeconfigs.
const (
	ocmWebhooks          = "ocm-webhooks"
	ocmRegistration      = "ocm-registration"
	ocmPlacement         = "ocm-placement"
	ocmAddonManager      = "ocm-addon-manager"
	ocmRegistrationAgent = "ocm-registration-agent"
	ocmWorkAgent         = "ocm-work-agent"
)

// ocmPortUses lists the uses of ports by OCM's programs on a hub or a managed cluster.
func ocmPortUses(cluster string) []string {
	if cluster == hubName {
		return []string{ocmWebhooks, ocmRegistration, ocmPlacement, ocmAddonManager}
	}
	return []string{ocmRegistrationAgent, ocmWorkAgent}
}

// ocmIdentities returns the service accounts of OCM's programs, by program.
func (c clusterPlan) ocmIdentities() map[string]identity {
	switch {
	case c.OCM == "":
		return nil
	case c.isManaged():
		return map[string]identity{
			ocmRegistrationAgent: serviceAccount(ocmAgentNamespace, "klusterlet-registration-sa"),
			ocmWorkAgent:         serviceAccount(ocmAgentNamespace, "klusterlet-work-sa"),
		}
	default:
		return map[string]identity{
			// This program serves all of OCM's webhooks; the registration webhooks need the most permissions.
			ocmWebhooks:     serviceAccount(ocmHubNamespace, "registration-webhook-sa"),
			ocmRegistration: serviceAccount(ocmHubNamespace, "registration-controller-sa"),
			ocmPlacement:    serviceAccount(ocmHubNamespace, "placement-controller-sa"),
			ocmAddonManager: serviceAccount(ocmHubNamespace, "addon-manager-controller-sa"),
		}
	}
}

// ocm completes an OCM program that is built on library-go's controller command.
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

// ocmServing returns the serving configuration of OCM's programs, with a certificate of the cluster's authority. By default they would sign
// their own, and leave them in the folder for temporary files.
func (c clusterPlan) ocmServing() []byte {
	return fmt.Appendf(nil, `apiVersion: operator.openshift.io/v1alpha1
kind: GenericOperatorConfig
servingInfo:
  certFile: %q
  keyFile: %q
`, c.folder().pki("ocm.crt"), c.folder().pki("ocm.key"))
}

// ocmHub returns OCM's programs of a hub in start order: the webhooks first, because the writes of the others have to pass them.
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

// hubKubeconfig returns the folder where the registration agent stores the hub's kubeconfig and the work agent reads it.
func (c clusterPlan) hubKubeconfig() string { return c.folder().path("hub-kubeconfig") }

// ocmRegistrationAgent registers the cluster and its add-ons, and renews their leases.
func (c clusterPlan) ocmRegistrationAgent() program {
	return c.ocm(ocmRegistrationAgent, "registration", "agent", ocmAgentNamespace,
		"--spoke-cluster-name="+c.Name,
		"--spoke-external-server-urls="+c.server(),
		"--bootstrap-kubeconfig="+c.identity("ocm-bootstrap"),
		"--hub-kubeconfig-dir="+c.hubKubeconfig(),
	)
}

// ocmWorkAgent applies ManifestWorks. It exits when the hub's kubeconfig changes, and is restarted.
func (c clusterPlan) ocmWorkAgent() program {
	file := filepath.Join(c.hubKubeconfig(), "kubeconfig")
	return c.ocm(ocmWorkAgent, "work", "agent", ocmAgentNamespace,
		"--spoke-cluster-name="+c.Name,
		"--workload-source-driver=kube",
		"--workload-source-config="+file,
		"--terminate-on-files="+file,
	)
}

// ocmParameters returns the parameters of OCM's manifest templates, with the names that its operators use. All others belong to features
// that are disabled by default.
func ocmParameters(managed bool, authority []byte) map[string]any {
	if managed {
		return map[string]any{
			"Labels":         map[string]string{"open-cluster-management.io/created-by-klusterlet": "klusterlet"},
			"KlusterletName": "klusterlet", "KlusterletNamespace": ocmAgentNamespace, "AgentNamespace": ocmAgentNamespace,
			"RegistrationServiceAccount": "klusterlet-registration-sa", "WorkServiceAccount": "klusterlet-work-sa",
		}
	}
	bundle, webhook := base64.StdEncoding.EncodeToString(authority), map[string]any{"Port": 9443}
	return map[string]any{
		"Labels":             map[string]string{"open-cluster-management.io/created-by-clustermanager": "cluster-manager"},
		"ClusterManagerName": "cluster-manager", "ClusterManagerNamespace": ocmHubNamespace,
		"AddonAPIServiceCABundle": bundle, "RegistrationAPIServiceCABundle": bundle, "WorkAPIServiceCABundle": bundle,
		"RegistrationWebhook": webhook, "WorkWebhook": webhook,
	}
}

// ocmManifests is a file system with rendered templates. Unlike Tandem's own templates, they may have unknown parameters, which are empty:
// every release of OCM adds some, for features that the sandbox does not use.
type ocmManifests struct {
	fs.FS
	parameters map[string]any
}

// ReadFile implements fs.ReadFileFS.
func (m ocmManifests) ReadFile(name string) ([]byte, error) {
	source, err := fs.ReadFile(m.FS, name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Parse(string(source))
	if err != nil {
		return nil, err
	}
	var rendered bytes.Buffer
	if err := parsed.Execute(&rendered, withFields(m.parameters, source)); err != nil {
		return nil, err
	}
	const unknown = "<no value>" // text/template's
	return bytes.ReplaceAll(rendered.Bytes(), []byte(unknown), nil), nil
}

// nestedField matches a field of a parameter in a template, such as .WorkWebhook.Port.
var nestedField = regexp.MustCompile(`\.(\w+)\.\w+`)

// withFields returns the parameters together with an empty one for each unknown parameter of which the template reads a field, which
// would otherwise be an error.
func withFields(parameters map[string]any, source []byte) map[string]any {
	all := maps.Clone(parameters)
	for _, match := range nestedField.FindAllSubmatch(source, -1) {
		if name := string(match[1]); all[name] == nil {
			all[name] = map[string]any{}
		}
	}
	return all
}

// ocmPatterns matches the manifests that OCM's operators apply with default features, below the folder of OCM's programs. Deployments are
// excluded, because the sandbox runs their programs as processes, and Services, because they would have no endpoints.
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

// ocmObjects returns the objects that OCM's installer and operators create on the cluster: resource definitions, and all others. On a hub
// the webhooks point at the sandbox's process and trust the authority's certificate.
func (c clusterPlan) ocmObjects(authority []byte) (definitions, others []*unstructured.Unstructured, err error) {
	own := "cluster/ocm-hub.yaml"
	if c.isManaged() {
		own = "cluster/ocm-managed.yaml"
	}
	objects, err := manifests.Objects(clusterFiles, own, nil)
	if err != nil {
		return nil, nil, err
	}
	rendered := ocmManifests{os.DirFS(c.OCM), ocmParameters(c.isManaged(), authority)}
	for _, pattern := range ocmPatterns(c.isManaged()) {
		found, err := manifests.Objects(rendered, pattern, nil)
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
