package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// The users of Tandem's programs, and a person.
var (
	theManager = rest.ImpersonationConfig{UserName: addonManager, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	theAgent   = rest.ImpersonationConfig{ // on its managed cluster
		UserName: "system:serviceaccount:tandem-system:addon-agent", Groups: []string{"system:serviceaccounts", "system:authenticated"},
	}
	anAgent = rest.ImpersonationConfig{ // on the hub
		UserName: "system:open-cluster-management:cluster:cluster1:addon:tandem:agent:addon-agent",
		Groups: []string{
			"system:open-cluster-management:cluster:cluster1:addon:tandem", "system:open-cluster-management:addon:tandem", "system:authenticated",
		},
	}
	anInstance = rest.ImpersonationConfig{ // on its managed cluster
		UserName: rights.User("kafka", "kafka"), Groups: []string{rights.Group, "system:authenticated"},
	}
	aPerson = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:authenticated"}}
)

const (
	agentsLeaseURL = "/apis/coordination.k8s.io/v1/namespaces/cluster1/leases/addon-agent"
	leaderLeaseURL = "/apis/coordination.k8s.io/v1/namespaces/tandem-system/leases/tandem-addon-manager"
	localLeaseURL  = "/apis/coordination.k8s.io/v1/namespaces/tandem-system/leases/tandem" // on the managed cluster
	definitionsURL = "/apis/addon.open-cluster-management.io/v1alpha1/clustermanagementaddons"
	addOnStatusURL = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/cluster1/managedclusteraddons/a/status"
	versionsURL    = "/apis/kudo.dev/v1beta1/namespaces/addon-packages/operatorversions"
	instancesURL   = "/apis/kudo.dev/v1beta1/namespaces/cluster1/instances"
	configMapsURL  = "/api/v1/namespaces/cluster1/configmaps"
)

// call is a request of a user, and the expected status of the response.
type call struct {
	who          rest.ImpersonationConfig
	method, path string
	status       int
}

var _ = Describe("The priority of requests", Ordered, func() {
	var busy *site
	BeforeAll(func(ctx SpecContext) {
		// So few seats that a spec can use all of them, and queues in which requests wait for a quarter of the timeout.
		busy = startSite(func(e *envtest.Environment) {
			e.ControlPlane.GetAPIServer().Configure().
				Set("max-requests-inflight", "20").Set("max-mutating-requests-inflight", "20").Set("request-timeout", "10m")
		})
		for _, folder := range []string{"hub", "agent", "cluster"} {
			Expect(busy.Apply(ctx, folder, manifests.ClusterParameters{Cluster: cluster})).To(Succeed())
		}
		for _, lease := range []client.ObjectKey{{Namespace: cluster, Name: "addon-agent"},
			{Namespace: "tandem-system", Name: "tandem-addon-manager"}, {Namespace: "tandem-system", Name: "tandem"}} {
			Expect(busy.as("").Create(ctx, &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name},
			})).To(Succeed())
		}
	})

	DescribeTable("is that of the FlowSchema",
		func(ctx SpecContext, who rest.ImpersonationConfig, method, path, schema string) {
			found := &flowcontrolv1.FlowSchema{}
			Expect(busy.as("").Get(ctx, client.ObjectKey{Name: schema}, found)).To(Succeed())
			Eventually(func() (string, error) {
				response, err := busy.request(ctx, who, method, path, nil)
				if err != nil {
					return "", err
				}
				return response.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), nil
			}).Should(Equal(string(found.UID)))
		},
		Entry("addon-manager reads the leader's lease", theManager, "GET", leaderLeaseURL, "tandem-hub-leases"),
		Entry("addon-manager renews the leader's lease", theManager, "PUT", leaderLeaseURL, "tandem-hub-leases"),
		Entry("an agent renews its lease", anAgent, "PATCH", agentsLeaseURL, "tandem-hub-leases"),
		Entry("an agent creates its lease", anAgent, "POST", "/apis/coordination.k8s.io/v1/namespaces/cluster1/leases", "tandem-hub-leases"),
		Entry("admission reads a version", theManager, "GET", versionsURL+"/a", "tandem-admission"),
		Entry("admission reads the definitions", theManager, "GET", definitionsURL, "tandem-admission"),
		Entry("admission reads a cluster", theManager, "GET", "/apis/cluster.open-cluster-management.io/v1/managedclusters/cluster1", "tandem-admission"),
		Entry("addon-manager writes a verdict", theManager, "PATCH", addOnStatusURL, "service-accounts"),
		Entry("addon-manager creates an Instance", theManager, "POST", instancesURL, "service-accounts"),
		Entry("an agent reports", anAgent, "PATCH", instancesURL+"/a/status", "tandem-agents"),
		Entry("an agent lists its Instances", anAgent, "GET", instancesURL, "tandem-agents"),
		Entry("an agent discovers APIs", anAgent, "GET", "/apis", "tandem-agents"),
		Entry("a person lists Instances", aPerson, "GET", instancesURL, "global-default"),
		Entry("addon-agent renews its lease on the managed cluster", theAgent, "PATCH", localLeaseURL, "tandem-leases"),
		Entry("addon-agent applies an object on the managed cluster", theAgent, "PATCH", configMapsURL+"/a", "service-accounts"),
		Entry("a plan with its own permissions applies an object", anInstance, "PATCH", configMapsURL+"/a", "tandem-instances"),
	)

	DescribeTable("lets urgent requests pass while all seats for others are taken",
		func(ctx SpecContext, bulk rest.ImpersonationConfig, level string, urgent ...call) {
			const requests = 60
			release, ended := busy.hold(ctx, bulk.UserName)
			busy.mayCreateConfigMaps(ctx, bulk.UserName)
			answers := make(chan error, requests)
			for range requests {
				go func() { answers <- busy.createConfigMap(ctx, bulk) }()
			}
			Eventually(busy.countQueued).WithArguments(level).WithContext(ctx).Should(BeNumerically(">", 0))
			for _, u := range urgent {
				Eventually(func() (int, error) { // the API server may still prepare the caches of custom resources
					response, err := busy.request(ctx, u.who, u.method, u.path, []byte("{}"))
					if err != nil {
						return 0, err
					}
					return response.StatusCode, nil
				}).Should(Equal(u.status), "%s %s by %s", u.method, u.path, u.who.UserName)
			}
			Expect(busy.countQueued(ctx, level)).To(BeNumerically(">", 0), "requests that wait for a seat")
			Expect(ended.Load()).To(BeZero(), "requests whose seat became free")
			release()
			for range requests {
				Expect(<-answers).To(Succeed())
			}
		},
		Entry("of agents on the hub", anAgent, "tandem-agents",
			call{anAgent, "PATCH", agentsLeaseURL, http.StatusOK},
			call{theManager, "GET", leaderLeaseURL, http.StatusOK},
			call{theManager, "GET", definitionsURL, http.StatusOK},
			call{theManager, "GET", instancesURL, http.StatusOK},
			call{aPerson, "GET", instancesURL, http.StatusForbidden}),
		Entry("of addon-manager", theManager, "workload-low",
			call{theManager, "GET", leaderLeaseURL, http.StatusOK},
			call{theManager, "GET", versionsURL, http.StatusOK},
			call{anAgent, "PATCH", agentsLeaseURL, http.StatusOK},
			call{anAgent, "GET", instancesURL, http.StatusOK},
			call{aPerson, "GET", instancesURL, http.StatusForbidden}),
		Entry("of addon-agent on the managed cluster", theAgent, "workload-low",
			call{theAgent, "PATCH", localLeaseURL, http.StatusOK},
			call{aPerson, "GET", configMapsURL, http.StatusForbidden}),
	)
})

// request sends a request with a body, and returns the response after reading it.
func (s *site) request(ctx context.Context, who rest.ImpersonationConfig, method, path string, body []byte) (*http.Response, error) {
	config := rest.CopyConfig(s.Config)
	config.Impersonate = who
	sender, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(config.Host, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", string(types.MergePatchType))
	}
	response, err := sender.Do(request)
	if err != nil {
		return nil, err
	}
	return response, response.Body.Close()
}

// createConfigMap creates a ConfigMap in the cluster's namespace.
func (s *site) createConfigMap(ctx context.Context, who rest.ImpersonationConfig) error {
	response, err := s.request(ctx, who, http.MethodPost, configMapsURL, []byte(`{"metadata": {"generateName": "bulk-"}}`))
	if err == nil && response.StatusCode != http.StatusCreated {
		err = fmt.Errorf("creating a ConfigMap: %s", response.Status)
	}
	return err
}

// mayCreateConfigMaps permits a user to create ConfigMaps in the cluster's namespace.
func (s *site) mayCreateConfigMaps(ctx context.Context, user string) {
	GinkgoHelper()
	named := metav1.ObjectMeta{Namespace: cluster, Name: "bulk:" + user}
	for _, object := range []client.Object{
		&rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		},
	} {
		Expect(s.as("").Create(ctx, object)).To(Succeed())
	}
	Eventually(func() (bool, error) { // the API server's own cache of roles is behind its answers
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: cluster, Verb: "create", Resource: "configmaps"},
		}}
		err := s.as("").Create(ctx, review)
		return review.Status.Allowed, err
	}).WithContext(ctx).Should(BeTrue())
}

// hold makes the API server execute requests to create ConfigMaps until release is called: it calls a webhook that does not answer before.
// It counts the requests of the user that have ended.
func (s *site) hold(ctx context.Context, user string) (release func(), ended *atomic.Int64) {
	GinkgoHelper()
	ended = &atomic.Int64{}
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	called := make(chan struct{}, 1)
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case called <- struct{}{}:
		default:
		}
		select {
		case <-released:
		case <-r.Context().Done():
		}
		if review.Request.UserInfo.Username == user {
			ended.Add(1)
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review) // the API server has given up if it fails
	}))
	DeferCleanup(webhook.Close)
	DeferCleanup(release)
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hold"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "hold.example.com", AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To(int32(30)),
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), FailurePolicy: ptr.To(admissionregistrationv1.Ignore),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(webhook.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	Expect(s.as("").Create(ctx, configuration)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(s.as("").Delete(ctx, configuration)).To(Succeed()) })
	Eventually(func() chan struct{} {
		go func() { _ = s.createConfigMap(ctx, rest.ImpersonationConfig{}) }() // as an administrator, whose requests need no seats
		return called
	}).Should(Receive(), "the API server takes a moment to notice the webhook")
	return release, ended
}

// countQueued returns how many requests of a priority level wait for a seat.
func (s *site) countQueued(ctx context.Context, level string) (int, error) {
	c, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return 0, err
	}
	metrics, err := c.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, "apiserver_flowcontrol_current_inqueue_requests{") && strings.Contains(line, `priority_level="`+level+`"`) {
			count, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(strings.TrimSpace(line), ' '):]), 64)
			if err != nil {
				return 0, err
			}
			sum += count
		}
	}
	return int(sum), nil
}
