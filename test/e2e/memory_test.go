package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/bench/process"
)

// maxMB is the memory in MB that each program may take, including its caches, and maxFloodedMB what addon-manager may take during a flood of
// requests.
const (
	maxMB        = 300
	maxFloodedMB = 600
)

// The kernel measures the whole programs, each in a process of its own.
var _ = Describe("The memory of the programs", Label(quick), onSandbox("it reads the memory of processes"), Ordered, func() {
	var (
		box *sandbox.Sandbox
		hub client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		box = startSandbox(ctx, 1)
		hub = hubClient(box.Hub().Config())
	})

	// peak reports the most memory that a program has taken since its start, which it has survived.
	peak := func(cluster, program string, restarts, limit int) {
		GinkgoHelper()
		state := find(box, cluster, program)
		Expect(state.Restarts).To(Equal(restarts), program)
		used, err := process.UsageOf(state.PID)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry(program, fmt.Sprintf("%.0f MB", used.PeakMB()))
		Expect(used.PeakMB()).To(BeNumerically("<", limit), "MB of "+program)
	}

	DescribeTable("is bounded in addon-manager while 20 OperatorVersions are verified at a time", func(ctx SpecContext, name, template string) {
		var creations sync.WaitGroup
		for i := range 20 {
			creations.Go(func() {
				defer GinkgoRecover()
				version := bomb(fmt.Sprint(name, i), "a: b")
				version.Spec.Templates = map[string]string{"bomb.yaml": template}
				err := hub.Create(ctx, version)
				Expect(err == nil || apierrors.IsInvalid(err)).To(BeTrue(), "%v", err) // a busy webhook leaves it to the controllers
			})
		}
		creations.Wait()
		peak("hub", "addon-manager", 0, maxMB)
	},
		Entry("with a megabyte of unknown references", "references", strings.Repeat("{{.X}}", 170_000)),
		Entry("with 130,000 blocks without an end", "blocks", strings.Repeat("{{if 1}}", 130_000)),
		Entry("with a text of aliases", "aliases", aliases(strings.Repeat("x", 100_000), 100_000)),
	)

	It("is bounded in both while 20 Instances render bombs, also when the agent restarts", func(ctx SpecContext) {
		Expect(hub.Create(ctx, bomb("text", aliases(`{{ repeat 1000000 "x" }}`, 600)))).To(Succeed())
		Expect(hub.Create(ctx, bomb("value", "[{{ .Params.VALUE }}]"))).To(Succeed())
		for i := range 20 {
			name := []string{"text", "value"}[i%2]
			instance := newBomb(name, i)
			if name == "value" {
				instance.Spec.Parameters = map[string]string{"VALUE": strings.Trim(aliases(strings.Repeat("x", 200_000), 1200), "[]")}
			}
			Expect(hub.Create(ctx, instance)).To(Succeed())
		}
		allFail := func(g Gomega, ctx context.Context) {
			for i := range 20 {
				instance := newBomb([]string{"text", "value"}[i%2], i)
				g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(instance), instance)).To(Succeed())
				g.Expect(instance.Status.PlanStatus["deploy"].Status).To(Equal(kudo.FatalError), "%s: %v", instance.Name, instance.Status.Conditions)
			}
		}
		Eventually(allFail).WithContext(ctx).WithTimeout(2 * timeout).WithPolling(interval).Should(Succeed())
		peak("cluster1", "addon-agent", 0, maxMB)

		Expect(syscall.Kill(find(box, "cluster1", "addon-agent").PID, syscall.SIGKILL)).To(Succeed())
		Eventually(func() int { return find(box, "cluster1", "addon-agent").PID }).WithTimeout(timeout).WithPolling(interval).ShouldNot(BeZero())
		for i := range 20 {
			Expect(hub.Delete(ctx, newBomb([]string{"text", "value"}[i%2], i))).To(Succeed())
		}
		Eventually(func(g Gomega, ctx context.Context) {
			list := &kudo.InstanceList{}
			g.Expect(hub.List(ctx, list, client.InNamespace("cluster1"))).To(Succeed())
			g.Expect(list.Items).To(BeEmpty())
		}).WithContext(ctx).WithTimeout(2 * timeout).WithPolling(interval).Should(Succeed())
		peak("cluster1", "addon-agent", 1, maxMB)
		peak("hub", "addon-manager", 0, maxMB)
	})

	// The last spec, because addon-manager may take more in it than in the others.
	It("is bounded in addon-manager while anonymous clients call its webhooks with requests that expand", func(ctx SpecContext) {
		call := anonymousCaller(ctx, box)
		const conversion, admission = "/convert", "/admit/operatorversion"
		// Some cost almost as much as a request may, the others much more: all have 8 MiB at most.
		fitting := map[string]string{conversion: conversionOf(listOf(`{"a":0}`, 170_000)), admission: admissionOf(listOf("{}", 34_000))}
		costly := map[string]string{conversion: conversionOf(listOf(`{"a":0}`, 1_000_000)), admission: admissionOf(listOf("{}", 2_700_000))}
		long := strconv.Quote(strings.Repeat("x", 8_300_000))
		var flood sync.WaitGroup
		for _, bodies := range []map[string]string{fitting, costly, {conversion: conversionOf(long), admission: admissionOf(long)}} {
			for path, body := range bodies {
				for range 8 {
					flood.Go(func() {
						for range 5 {
							_, _ = call(path, body) // served, refused or terminated
						}
					})
				}
			}
		}
		flood.Wait()
		peak("hub", "addon-manager", 0, maxFloodedMB)
		for path := range fitting {
			Eventually(call).WithArguments(path, fitting[path]).WithTimeout(timeout).WithPolling(interval).Should(Equal(http.StatusOK), path)
			Eventually(call).WithArguments(path, costly[path]).WithTimeout(timeout).WithPolling(interval).Should(Equal(http.StatusRequestEntityTooLarge), path)
		}

		By("serving the API server")
		Eventually(func(ctx context.Context) error {
			return hub.Create(ctx, bomb("broken", "{{ .Nothing"), client.DryRunAll) // admitted if the webhook responds too late
		}).WithContext(ctx).WithTimeout(timeout).WithPolling(interval).Should(MatchError(apierrors.IsInvalid, "is refused"))
	})
})

// anonymousCaller returns a function that sends a request to a path of the webhooks without a certificate, and returns the status of the response.
func anonymousCaller(ctx context.Context, box *sandbox.Sandbox) func(path, body string) (int, error) {
	GinkgoHelper()
	administrator, err := client.New(box.Hub().Config(), client.Options{})
	Expect(err).NotTo(HaveOccurred())
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "tandem"}}
	Expect(administrator.Get(ctx, client.ObjectKeyFromObject(configuration), configuration)).To(Succeed())
	called := configuration.Webhooks[0].ClientConfig
	address, err := url.Parse(*called.URL)
	Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(called.CABundle)).To(BeTrue())
	anonymous := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return func(path, body string) (int, error) {
		response, err := anonymous.Post("https://"+address.Host+path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
}

// listOf returns a JSON list of equal items.
func listOf(item string, number int) string {
	return "[" + strings.Repeat(item+",", number-1) + item + "]"
}

// conversionOf returns a request to convert an object with a field.
func conversionOf(field string) string {
	return `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"x","desiredAPIVersion":` +
		`"addon.open-cluster-management.io/v1beta1","objects":[{"apiVersion":"addon.open-cluster-management.io/v1alpha1",` +
		`"kind":"AddOnDeploymentConfig","spec":{"x":` + field + `}}]}}`
}

// admissionOf returns a request to admit an OperatorVersion with tasks.
func admissionOf(tasks string) string {
	return `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"x","object":{"apiVersion":"kudo.dev/v1beta1",` +
		`"kind":"OperatorVersion","metadata":{"namespace":"addon-packages"},"spec":{"tasks":` + tasks + `}}}}`
}

// aliases returns a YAML list of a scalar and aliases to it.
func aliases(scalar string, count int) string {
	return "[&x " + scalar + strings.Repeat(", *x", count) + "]"
}

// bomb returns a package that applies a ConfigMap with a field that has that value.
func bomb(name, value string) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
		Spec: kudo.OperatorVersionSpec{
			Operator:   corev1.ObjectReference{Name: name},
			Version:    "1.0.0",
			Templates:  map[string]string{"bomb.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Name }}\"}\nmore: " + value + "\n"},
			Parameters: []kudo.Parameter{{Name: "VALUE", Default: ptr.To("x"), Structure: new(true)}},
			Tasks: []kudo.Task{
				{Name: "bomb", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"bomb.yaml"}}}},
			},
			Plans: map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "bomb", Tasks: []string{"bomb"}}}}}}},
		},
	}
}

// newBomb returns an Instance of a bomb.
func newBomb(name string, number int) *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: fmt.Sprintf("%s-%d", name, number)},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Name: name + "-1.0.0", Namespace: kudo.DefaultPackagesNamespace},
			InstallNamespace: "default",
		},
	}
}
