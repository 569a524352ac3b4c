package agent

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// onlyPipe returns a package with declared permissions, whose plan has only the Pipe task of pipePackage.
func onlyPipe() kudo.OperatorVersionSpec {
	spec := pipePackage()
	spec.Tasks = slices.DeleteFunc(spec.Tasks, func(t kudo.Task) bool { return t.Kind != kudo.TaskPipe })
	spec.Plans = map[string]kudo.Plan{"deploy": serial("files")}
	return withDeclaredRights(spec)
}

// without returns the package without a verb on a resource.
func without(spec kudo.OperatorVersionSpec, verb, resource string) kudo.OperatorVersionSpec {
	spec = *spec.DeepCopy()
	var rules []rbacv1.PolicyRule
	for _, r := range spec.Permissions.Rules {
		for _, each := range r.Resources {
			verbs := slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return v == verb && each == resource })
			rules = append(rules, rule(r.APIGroups[0], each, verbs...))
		}
	}
	spec.Permissions.Rules = rules
	return spec
}

var _ = Describe("A Pipe task of a package that declares permissions", func() {
	var n *environment.Node
	BeforeEach(func(ctx context.Context) {
		n = newNode(ctx)
		DeferCleanup(runAgent())
	})

	It("needs exactly those that package rights prints", func(ctx context.Context) {
		spec := onlyPipe()
		Expect(spec.Permissions).To(Equal(&kudo.Permissions{Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"create", "patch"}},
			rule("", "pods", "create", "delete", "patch"), rule("", "pods/exec", "create", "get"),
		}}))
		h := newInstance(ctx, spec, nil)
		h.resolve(ctx)
		h.runs(ctx, n, environment.WaitInPipe)
		h.completes(ctx, "deploy", kudo.PlanStatus{})
		key, crt := h.keeps(ctx)
		Expect([]string{key, crt}).To(Equal([]string{"secret", "public"}))
		Expect(h.pod(ctx)).To(BeNil())
		Expect(h.grantedRules(ctx)).To(Equal(h.grants(spec.Permissions)))
		h.finish(ctx)
		h.expectNoRights(ctx)
	})

	It("fails with the name of each that is missing, and leaves no pod", func(ctx context.Context) {
		type missing struct{ verb, resource string }
		lacking, all := map[missing]*hubPart{}, []missing{
			{"create", "pods"}, {"patch", "pods"}, {"delete", "pods"},
			{"create", "configmaps"}, {"patch", "configmaps"}, {"create", "secrets"}, {"patch", "secrets"},
		}
		needed, err := managedServer.ExecNeedsCreate()
		Expect(err).NotTo(HaveOccurred())
		if needed {
			all = append(all, missing{"create", "pods/exec"})
		}
		for _, m := range all {
			h := newInstance(ctx, without(onlyPipe(), m.verb, m.resource), nil)
			h.resolve(ctx)
			lacking[m] = h
		}
		for m, h := range lacking {
			if m.resource != "pods" || m.verb == "delete" {
				h.runs(ctx, n, environment.WaitInPipe)
			}
			h.failsWith(ctx, "deploy", "the package has no permission to "+m.verb+" "+m.resource+` in namespace "`+h.namespace+
				`": declare it under permissions in operator.yaml`)
		}
		for _, h := range lacking {
			h.bare(ctx)
			h.finish(ctx)
		}
	})
})
