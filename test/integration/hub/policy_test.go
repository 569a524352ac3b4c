package hub

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// refuse makes the API server reject every Instance of a cluster for which the CEL expression is false, until the spec ends or lift is
// called. It returns once the Instance probe is rejected.
func (f fleet) refuse(ctx context.Context, cluster, unless, message string, probe *kudo.Instance) (lift func(context.Context)) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: f.nameOf("refuse")}}
	policy.Spec = admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{kudo.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"instances"},
				},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{Expression: unless, Message: message}},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        policy.Name,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
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
