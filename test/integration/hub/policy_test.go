package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// refuse makes the API server refuse every Instance of a cluster for which the CEL expression is false, until the spec ends or lift
// is called. It returns once the Instance probe is refused.
func (f fleet) refuse(ctx context.Context, cluster, unless, message string, probe *kudo.Instance) (lift func(context.Context)) {
	GinkgoHelper()
	policy := &admission.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.named("refuse")}}
	policy.Spec = admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admission.MatchResources{ResourceRules: []admission.NamedRuleWithOperations{{
			RuleWithOperations: admission.RuleWithOperations{
				Operations: []admission.OperationType{admission.Create, admission.Update},
				Rule: admission.Rule{
					APIGroups: []string{kudo.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"instances"},
				},
			},
		}}},
		Validations: []admission.Validation{{Expression: unless, Message: message}},
	}
	binding := &admission.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec = admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        policy.Name,
		ValidationActions: []admission.ValidationAction{admission.Deny},
		MatchResources: &admission.MatchResources{NamespaceSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"kubernetes.io/metadata.name": cluster},
		}},
	}
	lift = func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(server.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(server.Delete(ctx, policy))).To(Succeed())
	}
	DeferCleanup(lift)
	Expect(server.Create(ctx, policy)).To(Succeed())
	Expect(server.Create(ctx, binding)).To(Succeed())
	probe.Namespace, probe.GenerateName = cluster, "probe-"
	Eventually(func() error { return server.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring(message)))
	return lift
}
