package hub

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// pkg/kube/apply evaluates how the API server rejects a JSON patch.
var _ = Describe("A patch of what was read", func() {
	var (
		f        fleet
		instance *kudo.Instance
	)
	BeforeEach(func(ctx SpecContext) {
		stopHub() // which writes condition Resolved
		f = newFleet()
		namespace := f.nameOf("elsewhere")
		makeNamespace(ctx, namespace)
		instance = &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
		instance.Spec.Parameters = map[string]string{"TEXT": "one"}
		Expect(server.Create(ctx, instance)).To(Succeed())
	})
	set := func(path string, value any) apply.Operation {
		return apply.Operation{Op: "add", Path: path, Value: value}
	}
	test := func(path string, value any) apply.Operation {
		return apply.Operation{Op: "test", Path: path, Value: value}
	}

	It("changes the object, and of what was read the version only", func(ctx SpecContext) {
		before := instance.DeepCopy()
		Expect(apply.Patch(ctx, server, instance, []apply.Operation{
			test("/metadata/generation", instance.Generation), set("/spec/parameters/TEXT", "two"),
		})).To(Succeed())
		before.ResourceVersion = get(ctx, instance).ResourceVersion
		Expect(instance).To(Equal(before))
		Expect(get(ctx, instance).Spec.Parameters).To(Equal(map[string]string{"TEXT": "two"}))
	})

	DescribeTable("is a conflict where",
		func(ctx SpecContext, operations ...apply.Operation) {
			err := apply.Patch(ctx, server, instance, operations)
			Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
			Expect(get(ctx, instance).ResourceVersion).To(Equal(instance.ResourceVersion))
		},
		Entry("a value is another one", test("/spec/parameters/TEXT", "two"), set("/spec/parameters/TEXT", "three")),
		Entry("a value is not there", test("/spec/parameters/COUNT", "1"), set("/spec/parameters/COUNT", "2")),
		Entry("what it removes is not there", apply.Operation{Op: "remove", Path: "/metadata/finalizers/0"}),
	)

	It("is a conflict where the object was replaced", func(ctx SpecContext) {
		Expect(server.Delete(ctx, instance)).To(Succeed())
		replaced := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: instance.Name}, Spec: instance.Spec}
		Expect(server.Create(ctx, replaced)).To(Succeed())
		err := apply.Patch(ctx, server, instance, []apply.Operation{set("/spec/parameters/TEXT", "two")})
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(get(ctx, replaced).Spec).To(Equal(instance.Spec))
	})

	It("is not found where the object is gone", func(ctx SpecContext) {
		Expect(server.Delete(ctx, instance)).To(Succeed())
		err := apply.Patch(ctx, server, instance, []apply.Operation{set("/spec/parameters/TEXT", "two")})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})

	DescribeTable("is an error, and no conflict, where the schema refuses",
		func(ctx SpecContext, operation apply.Operation, message string) {
			err := apply.Patch(ctx, server, instance, []apply.Operation{operation})
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
			Expect(apierrors.IsConflict(err)).To(BeFalse(), "%v", err)
			Expect(err).To(MatchError(ContainSubstring(message)))
		},
		Entry("a type", set("/spec/parameters/COUNT", 1), "spec.parameters.COUNT"),
		Entry("a value", set("/spec/planExecution", map[string]any{"status": "DONE"}), "spec.planExecution.status"),
		Entry("a change", set("/spec/installNamespace", "x"), "spec.installNamespace is immutable"),
	)

	It("is an error, and no conflict, where a policy refuses", func(ctx SpecContext) {
		probe := &kudo.Instance{}
		probe.Spec.Parameters = map[string]string{"TEXT": "forbidden"}
		f.refuse(ctx, instance.Namespace, `object.spec.parameters["TEXT"] != "forbidden"`, "not this text", probe)
		err := apply.Patch(ctx, server, instance, []apply.Operation{set("/spec/parameters/TEXT", "forbidden")})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(apierrors.IsConflict(err)).To(BeFalse(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("not this text")))
	})
})
