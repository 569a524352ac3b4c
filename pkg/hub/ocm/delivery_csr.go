package ocm

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
)

// agentDNSName is the name that OCM's klusterlet writes into every request for addon-agent. It is never resolved.
const agentDNSName = addonv1alpha1.AgentAddOn + ".addon.open-cluster-management.io"

// csrProblem returns why a certificate request was not made by the klusterlet of a managed cluster for its addon-agent; empty if it was. The
// user and the groups must match the agent's identity on the hub exactly.
func csrProblem(csr *certificatesv1.CertificateSigningRequest, cluster, user string, groups []string) string {
	if !isKlusterlet(csr.Spec.Username, cluster) {
		return "it was not created by the cluster's klusterlet"
	}
	return identity.Problem(csr, user, groups, agentDNSName)
}

// isKlusterlet reports whether a user of the hub is the registration agent of that cluster: system:open-cluster-management:CLUSTER:AGENT.
// It rejects clusters whose name only shares a prefix, and the agents of add-ons, whatever the name of a cluster.
func isKlusterlet(user, cluster string) bool {
	agent, found := strings.CutPrefix(user, "system:open-cluster-management:"+cluster+":")
	return found && agent != "" && !strings.Contains(agent, ":")
}

// copyingRequests returns a constructor of informers of certificate requests whose listers return copies. addon-framework 1.3.0 writes its
// approval into the request from the lister before it sends the approval: a request whose approval fails would count as approved, and the
// signer reads the same request at that time.
func copyingRequests(tweak func(*metav1.ListOptions)) func(kubernetes.Interface, time.Duration) toolscache.SharedIndexInformer {
	return func(kube kubernetes.Interface, resync time.Duration) toolscache.SharedIndexInformer {
		return copyingInformer{certificatesinformers.NewFilteredCertificateSigningRequestInformer(kube, resync, toolscache.Indexers{}, tweak)}
	}
}

// copyingInformer is an informer whose indexer returns copies by key.
type copyingInformer struct{ toolscache.SharedIndexInformer }

func (i copyingInformer) GetIndexer() toolscache.Indexer {
	return copyingIndexer{i.SharedIndexInformer.GetIndexer()}
}

type copyingIndexer struct{ toolscache.Indexer }

func (i copyingIndexer) GetByKey(key string) (any, bool, error) {
	cached, exists, err := i.Indexer.GetByKey(key)
	if object, ok := cached.(runtime.Object); ok && exists && err == nil {
		return object.DeepCopyObject(), true, nil
	}
	return cached, exists, err
}
