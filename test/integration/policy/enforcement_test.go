package policy

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/hub"
)

// lines is a log.
type lines struct {
	mutex sync.Mutex
	all   []string
}

func (l *lines) log(options *hub.Options) {
	options.Logger = funcr.New(func(prefix, text string) {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.all = append(l.all, prefix+" "+text)
	}, funcr.Options{})
}

// about returns the lines that report policies that are not enforced.
func (l *lines) about() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(l.all), func(line string) bool { return !strings.HasPrefix(line, "policy ") })
}

// An API server of the last release before MutatingAdmissionPolicy was stable.
var _ = Describe("addon-manager where the API server does not enforce everything", Ordered, func() {
	var (
		older *site
		admin client.WithWatch
	)
	elsewhere()
	BeforeAll(func(ctx SpecContext) {
		mutates, err := tandem.Mutates()
		Expect(err).NotTo(HaveOccurred())
		older = startSite(func(s *envtest.Environment) {
			if mutates {
				s.ControlPlane.GetAPIServer().Configure().Set("emulated-version", "kube=1.35")
			}
		})
		admin = older.as("")
		older.furnish(ctx, "hub")
	})

	It("says once, for each rule, what is missing", func() {
		log := &lines{}
		older.runHub(log.log)
		Eventually(log.about).Should(HaveLen(11))
		stopHub()
		Expect(log.about()).To(ConsistOf(
			And(ContainSubstring("Available is False while Degraded has reason"),
				ContainSubstring("does not serve MutatingAdmissionPolicy (admissionregistration.k8s.io/v1)")),
			And(ContainSubstring("Only writers with the RBAC verb judge can set the dependency reasons"), ContainSubstring("apply manifests/admission")),
			ContainSubstring("Only writers with the RBAC verb judge can set the annotations of automatic installation"),
			And(ContainSubstring("Agents can write nothing in an add-on's status"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("Agents can write neither condition Resolved"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("service account of a child Instance"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("can detach an Instance from its add-on"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("can delete an Instance of an add-on"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("can share the AddOnDeploymentConfigs"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("can change the configs in an add-on's status"), ContainSubstring("apply manifests/admission")),
			And(ContainSubstring("Only writers of OperatorVersions can write their content"), ContainSubstring("apply manifests/admission")),
		))
	})

	It("says only what still is, once the policies are there", func(ctx SpecContext) {
		older.applyServed(ctx, "admission")
		log := &lines{}
		older.runHub(log.log, withWebhooks(older))
		Eventually(log.about).Should(ConsistOf(ContainSubstring("does not serve MutatingAdmissionPolicy")))
	})

	It("still writes verdicts, restores those that others drop, and is obeyed by agents", func(ctx SpecContext) {
		key := enable(ctx, admin, needs("Required"))
		Eventually(reportedCondition(admin, key, "Degraded")).WithContext(ctx).Should(Equal(requiredUnmet))
		Eventually(func(g Gomega) {
			object := addOnIn("v1alpha1", key)
			g.Expect(admin.Get(ctx, key, object)).To(Succeed())
			g.Expect(mergePatch(ctx, older.asAgent(cluster), object, statusWrite{alone: true})).To(MatchError(ContainSubstring("tandem-agents-on-add-ons")))
		}).WithContext(ctx).Should(Succeed())

		says := func(w statusWrite) error { return writeStatus(ctx, admin, older.asOCM(), "v1alpha1", key, w) }
		Expect(says(statusWrite{conditions: []metav1.Condition{leaseUpdated}, alone: true})).To(Succeed(), "never refused")
		Eventually(reportedCondition(admin, key, "Degraded")).WithContext(ctx).Should(Equal(requiredUnmet))
		Expect(says(statusWrite{conditions: []metav1.Condition{stale}})).
			To(MatchError(ContainSubstring("RBAC verb judge")), "no other writer can store a verdict")
	})

	It("uninstalls all the same", func(ctx SpecContext) {
		stopHub()
		Expect(hub.Uninstall(ctx, older.Config, older.options(), &interrupter{})).To(Succeed())
		Expect(hub.Uninstall(ctx, older.Config, older.options(), &interrupter{})).To(Succeed())
	})

	It("has nothing to uninstall once the resource definitions are gone", func(ctx SpecContext) {
		Expect(admin.DeleteAllOf(ctx, &apiextensionsv1.CustomResourceDefinition{})).To(Succeed())
		Eventually(func(g Gomega) []apiextensionsv1.CustomResourceDefinition {
			var left apiextensionsv1.CustomResourceDefinitionList
			g.Expect(admin.List(ctx, &left)).To(Succeed())
			return left.Items
		}).WithContext(ctx).Should(BeEmpty())
		Expect(hub.Uninstall(ctx, older.Config, older.options(), &interrupter{})).To(Succeed())
	})
})

// applyServed applies the objects of a folder whose kinds the API server serves.
func (s *site) applyServed(ctx context.Context, folder string) {
	GinkgoHelper()
	objects, err := manifests.Objects(manifests.FS, folder+"/*.yaml", nil)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		s.ServeWebhooks(object)
		err := s.as("").Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("administrator"), client.ForceOwnership)
		if !meta.IsNoMatchError(err) {
			Expect(err).NotTo(HaveOccurred(), object.GetName())
		}
	}
}
