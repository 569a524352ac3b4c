package cli

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The spec has a hub of its own: the policies would affect other specs.
var _ = Describe("check", func() {
	var own client.Client
	var mutates bool // the API server is of Kubernetes 1.36 or later
	lease := func(namespace, name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{addonv1alpha1.LabelVersion: "v0.0.0"}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("pod"), LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NowMicro()),
			},
		}
	}
	// The hub has everything that addon-manager and its manifests leave there, and one cluster with an add-on.
	BeforeEach(func(ctx context.Context) {
		env, err := environment.Start()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(env.Stop)
		own, err = client.New(env.Config, client.Options{Scheme: hub.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(former string) { kubeconfig = former }, kubeconfig)
		kubeconfig = writeKubeconfig(env.Config)

		mutates, err = env.Mutates()
		Expect(err).NotTo(HaveOccurred())
		rules, err := manifests.Admission()
		Expect(err).NotTo(HaveOccurred())
		for _, rule := range rules {
			if !mutates && strings.HasPrefix(rule.GetKind(), "MutatingAdmissionPolicy") {
				continue
			}
			manifests.WebhooksAt(rule, "https://"+env.WebhookAddress)
			Expect(own.Create(ctx, rule)).To(Succeed())
		}
		trust := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: addonv1alpha1.ManagerConfigMap}}
		trust.Labels = map[string]string{addonv1alpha1.LabelVersion: "v0.0.0"}
		for _, object := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tandem-system"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
			trust, lease("tandem-system", addonv1alpha1.LeaderLease), lease("cluster1", addonv1alpha1.AgentLease), managedCluster("cluster1"),
			&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"}},
		} {
			Expect(own.Create(ctx, object)).To(Succeed())
		}
	})

	It("passes on a healthy hub, and fails, as why and fleet warn, once addon-manager is dead", func(ctx context.Context) {
		healthy := run(ctx, "check")
		if mutates {
			Expect(healthy.out).To(HaveSuffix("\n9 passed, 0 failed, 0 warnings, 0 unknown\n"))
		} else {
			Expect(healthy.out).To(And(HaveSuffix("\n8 passed, 0 failed, 1 warning, 0 unknown\n"), ContainSubstring("does not serve MutatingAdmissionPolicy")))
		}
		Expect(healthy.err).NotTo(HaveOccurred())
		for _, args := range [][]string{{"why", "kafka", "--cluster", "cluster1"}, {"fleet"}} {
			Expect(run(ctx, args...).errOut).NotTo(ContainSubstring("Warning"), "%v", args)
		}

		By("not renewing the Lease of addon-manager")
		dead := lease("tandem-system", addonv1alpha1.LeaderLease)
		dead.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-2*time.Hour - 30*time.Second)))
		Expect(own.Patch(ctx, dead, client.Merge)).To(Succeed())
		failed := run(ctx, "check")
		Expect(failed.code).To(Equal(cli.ExitFailure))
		Expect(failed.err).To(MatchError("1 check failed"))
		Expect(failed.out).To(And(
			MatchRegexp(`(?m)^✗ +addon-manager +does not run: its Lease was last renewed 120m ago, by "pod"; `),
			ContainSubstring("kubectl -n tandem-system get pods -l app.kubernetes.io/name=addon-manager\n")))
		Expect(run(ctx, "check", "-o", "jsonpath={.failed}").out).To(Equal("1"))
		for _, args := range [][]string{{"why", "kafka", "--cluster", "cluster1"}, {"fleet"}, {"fleet", "-o", "json"}} {
			warned := run(ctx, args...)
			Expect(warned.err).NotTo(HaveOccurred())
			Expect(warned.errOut).To(Equal(
				"Warning: addon-manager has not renewed its Lease for 120m: nothing on the hub changes until it runs; see 'kubectl addon check'\n"), "%v", args)
		}

		By("waiting, which says so once")
		waiting := run(ctx, "plan", "wait", "kafka", "--cluster", "cluster1", "--timeout", "3s")
		Expect(waiting.code).To(Equal(cli.ExitTimeout))
		Expect(strings.Count(waiting.errOut, "addon-manager: has not renewed its Lease for 120m: nothing on the hub changes until it runs; see 'kubectl addon check'\n")).To(
			Equal(1), waiting.errOut)

		By("reading with fewer permissions")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"addon.open-cluster-management.io", "cluster.open-cluster-management.io", "kudo.dev"},
			Resources: []string{"*"}, Verbs: []string{"get", "list"},
		}}}
		Expect(own.Create(ctx, role)).To(Succeed())
		Expect(own.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
		})).To(Succeed())
		Eventually(func(g Gomega) {
			silent := run(ctx, "fleet", "--as", "reader")
			g.Expect(silent.err).NotTo(HaveOccurred())
			g.Expect(silent.errOut).To(BeEmpty())
		}).Should(Succeed())
		reader := run(ctx, "check", "--as", "reader")
		Expect(reader.err).NotTo(HaveOccurred(), reader.out)
		Expect(reader.out).To(And(
			MatchRegexp(`(?m)^\? +addon-manager +unknown: forbidden: your user may not read its Lease in namespace tandem-system$`),
			MatchRegexp(`(?m)^\? +admission +unknown: forbidden: `), MatchRegexp(`(?m)^\? +agents +unknown: forbidden: `),
			MatchRegexp(`(?m)^! +permissions +your user may not create managedclusteraddons \(enable\), `),
			MatchRegexp(`\n3 passed, 0 failed, (1 warning|2 warnings), 5 unknown\n$`))) // the second one before Kubernetes 1.36
	})

	It("reviews permissions on cluster-scoped resources at the cluster scope", func(ctx context.Context) {
		Expect(own.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"},
		}}})).To(Succeed())
		Expect(own.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "tenant"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
		})).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(run(ctx, "check", "--cluster", "cluster1", "--as", "tenant").out).To(MatchRegexp(
				`(?m)^! +permissions +your user may not list clustermanagementaddons \(tree, why\), list managedclusters ` +
					`\(--selector, --all-clusters\), create clustermanagementaddons \(create\) at the cluster scope: `))
		}).Should(Succeed())
	})

	It("names what is missing", func(ctx context.Context) {
		policy := &unstructured.Unstructured{}
		policy.SetAPIVersion("admissionregistration.k8s.io/v1")
		policy.SetKind("ValidatingAdmissionPolicyBinding")
		policy.SetName("tandem-children")
		Expect(own.Delete(ctx, policy)).To(Succeed())
		silent := lease("cluster1", addonv1alpha1.AgentLease)
		silent.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-2*time.Hour - 30*time.Second)))
		silent.Labels[addonv1alpha1.LabelVersion] = "v0.0.1"
		Expect(own.Patch(ctx, silent, client.Merge)).To(Succeed())
		Expect(own.Create(ctx, managedCluster("cluster2"))).To(Succeed())
		source := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: "web"}}
		source.Spec.Package = &kudo.SourcePackage{Reference: "oci://registry.example.com/web", Tag: "stable"}
		source.Spec.Suspend = true
		Expect(own.Create(ctx, source)).To(Succeed())

		checked := run(ctx, "check")
		Expect(checked.err).To(MatchError("2 checks failed"))
		Expect(checked.out).To(And(
			MatchRegexp(`(?m)^✗ +admission +missing on the hub: ValidatingAdmissionPolicyBinding tandem-children; `),
			MatchRegexp(`(?m)^✗ +agents +addon-agent of cluster cluster1 has not renewed its Lease for up to 120m: `),
			MatchRegexp(`(?m)^! +sources +1 PackageSource is suspended by spec\.suspend: tandem-system/web\n +kubectl describe packagesource web -n tandem-system$`),
			MatchRegexp(`(?m)^! +agents +no addon-agent of cluster cluster2 has ever contacted the hub: `),
			MatchRegexp(`(?m)^! +agents +addon-manager is v0.0.0, and addon-agent of cluster cluster1 has another version: `)))
		one := run(ctx, "check", "--cluster", "cluster2")
		Expect(one.err).To(MatchError("1 check failed"))
		Expect(one.out).NotTo(ContainSubstring("cluster1"))
	})
})
