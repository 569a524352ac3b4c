package agent

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/agent"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// kubernetes gives the managed cluster another version of Kubernetes, and counts how often it is asked for it.
type kubernetes struct {
	version atomic.Pointer[string]
	asked   atomic.Int32
}

// through returns a copy of config whose clients see that version.
func (k *kubernetes) through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Path != "/version" {
				return next.RoundTrip(request)
			}
			k.asked.Add(1)
			body := fmt.Sprintf(`{"major":"1","minor":"0","gitVersion":%q}`, *k.version.Load())
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(body)), Request: request,
			}, nil
		})
	})
	return config
}

func (k *kubernetes) set(version string) { k.version.Store(&version) }

// runAgentOn starts an agent on a managed cluster with that version of Kubernetes, which checks often whether it changes.
func runAgentOn(gitVersion string) *kubernetes {
	on := &kubernetes{}
	on.set(gitVersion)
	runAgentWith(agentOnHub, on.through(agentLocally), func(o *agent.Options) { o.HoldInterval = time.Second })
	return on
}

var _ = Describe("A package for other versions of Kubernetes", func() {
	waits := func(h *hubPart, ctx context.Context, messages ...string) {
		GinkgoHelper()
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Reason", kudo.ReasonKubernetesVersionUnsupported))
		for _, message := range messages {
			Expect(h.ready(ctx).Message).To(ContainSubstring(message))
		}
	}

	It("is installed once the cluster is upgraded", func(ctx context.Context) {
		cluster := runAgentOn("v1.30.2-gke.100")
		spec := standard()
		spec.Operator.Name, spec.KubernetesVersion = "upgrading", "1.31.0"
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		waits(h, ctx, `plan "deploy" waits: the package requires Kubernetes 1.31.0, and the cluster has v1.30.2-gke.100: upgrade the cluster`)
		Expect(h.get(ctx).Status.Execution).To(BeNil())
		Expect(plansWaiting(spec.Operator.Name, kudo.ReasonKubernetesVersionUnsupported)).To(BeEquivalentTo(1))
		asked, started := cluster.asked.Load(), time.Now()
		Consistently(func() *kudo.Execution { return h.get(ctx).Status.Execution }).Should(BeNil())
		Expect(cluster.asked.Load()-asked).To(BeNumerically("<=", 2+2*int32(time.Since(started)/time.Second)), "no hot loop")

		cluster.set("v1.31.0-gke.1")
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		Expect(plansWaiting(spec.Operator.Name, kudo.ReasonKubernetesVersionUnsupported)).To(BeZero())
		h.finish(ctx)
	})

	It("leaves the version that runs in place, healthy and available", func(ctx context.Context) {
		cluster := runAgentOn("v1.30.2")
		h := newInstance(ctx, standard(), nil)
		h.resolve(ctx)
		h.rollOut(ctx)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		before := h.plan(ctx, "deploy")

		next := standard()
		next.Version, next.KubernetesVersion = "2.0.0", ">=1.31.0-0 <1.40.0-0"
		push(ctx, h.name+"-2.0.0", next)
		h.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = h.name + "-2.0.0" })
		waits(h, ctx, `the package requires Kubernetes >=1.31.0-0 <1.40.0-0, and the cluster has v1.30.2`)
		Consistently(func() metav1.ConditionStatus { return conditionOfMirror(ctx, h, kudo.ConditionAvailable) }).Should(Equal(metav1.ConditionTrue))
		Expect(h.plan(ctx, "deploy")).To(Equal(before))

		By("removing it meanwhile, which waits for nothing")
		other := newInstance(ctx, func() kudo.OperatorVersionSpec {
			spec := standard()
			spec.KubernetesVersion = "1.99.0"
			return spec
		}(), nil)
		other.resolve(ctx)
		waits(other, ctx)
		other.finish(ctx)

		By("upgrading the cluster")
		cluster.set("v1.31.4")
		Eventually(func() string { return h.ready(ctx).Message }).Should(ContainSubstring("Deployment"))
		h.rollOut(ctx)
		Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		Expect(h.get(ctx).Status.Whole.Version).To(Equal("2.0.0"))
		h.finish(ctx)
	})

	It("waits for the version that a chart requires, which the package may have recorded", func(ctx context.Context) {
		cluster := runAgentOn("v1.30.2")
		chart := chartFiles{"Chart.yaml": web["Chart.yaml"] + "kubeVersion: '>=1.31.0-0'\n", "templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"}
		unrecorded := newChart(ctx, chart, nil)
		recorded := newChart(ctx, chart, func(spec *kudo.OperatorVersionSpec) { spec.Content[0].KubeVersion = ">=1.31.0-0" })
		for h, message := range map[*hubPart]string{
			unrecorded: `plan "deploy" waits: phase "main": step "web": task "web": chart "web" requires Kubernetes >=1.31.0-0, and the cluster has v1.30.2`,
			recorded:   `plan "deploy" waits: chart "web.tgz" requires Kubernetes >=1.31.0-0, and the cluster has v1.30.2`,
		} {
			h.resolve(ctx)
			waits(h, ctx, message)
			Expect(h.get(ctx).Status.Execution).To(BeNil())
		}
		cluster.set("v1.31.0")
		for _, h := range []*hubPart{unrecorded, recorded} {
			Eventually(func() metav1.Condition { return h.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
			h.finish(ctx)
		}
	})
})

// conditionOfMirror returns the status of a condition on the managed cluster.
func conditionOfMirror(ctx context.Context, h *hubPart, kind string) metav1.ConditionStatus {
	mirror := h.mirror(ctx)
	if mirror == nil {
		return ""
	}
	for _, condition := range mirror.Status.Conditions {
		if condition.Type == kind {
			return condition.Status
		}
	}
	return ""
}
