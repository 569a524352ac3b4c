package agent

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// defined counts the API groups of custom resources, to give each spec one of its own.
var defined int

// custom is an Instance with a custom resource, and the definition of its kind, which serves some of the versions v1alpha1 and v1.
type custom struct {
	*hubPart
	group string
}

// definition returns the definition that serves these versions, and stores the last one.
func (c *custom) definition(served ...string) *unstructured.Unstructured {
	GinkgoHelper()
	var versions []string
	for _, version := range []string{"v1alpha1", "v1"} {
		last, serves := len(served) > 0 && served[len(served)-1] == version, strings.Contains(strings.Join(served, " ")+" ", version+" ")
		if len(served) == 0 {
			last = version == "v1"
		}
		versions = append(versions, fmt.Sprintf("{name: %s, served: %t, storage: %t, schema: {openAPIV3Schema: {type: object}}}", version, serves, last))
	}
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos, singular: gizmo, listKind: GizmoList}
  versions: [%[2]s]
`, c.group, strings.Join(versions, ", "))), &object.Object)).To(Succeed())
	return object
}

// spec returns a package that applies a custom resource in one of the versions, after the definitions.
func (c *custom) spec(version string, definitions ...*unstructured.Unstructured) kudo.OperatorVersionSpec {
	GinkgoHelper()
	spec := configOnly()
	steps := []string{"config", "gizmo"}
	spec.Templates["gizmo.yaml"] = fmt.Sprintf("apiVersion: %s/%s\nkind: Gizmo\nmetadata: {name: \"{{ .Name }}-gizmo\"}\n", c.group, version)
	for _, definition := range definitions {
		text, err := yaml.Marshal(definition.Object)
		Expect(err).NotTo(HaveOccurred())
		spec.Templates["definition.yaml"] = string(text)
		spec.Tasks = append(spec.Tasks, task("definition", kudo.TaskApply, "definition.yaml"))
		steps = []string{"definition", "config", "gizmo"}
	}
	spec.Tasks = append(spec.Tasks, task("gizmo", kudo.TaskApply, "gizmo.yaml"))
	spec.Plans["deploy"] = serial(steps...)
	return spec
}

// upgrade changes the Instance to the next version of its package.
func (c *custom) upgrade(ctx context.Context, spec kudo.OperatorVersionSpec) {
	GinkgoHelper()
	before := c.plan(ctx, "deploy")
	spec.Version = "2.0.0"
	push(ctx, c.name+"-2.0.0", spec)
	c.change(ctx, func(s *kudo.InstanceSpec) { s.OperatorVersion.Name = c.name + "-2.0.0" })
	c.completes(ctx, "deploy", before)
}

// gizmo returns the custom resource as read in a version; nil if it does not exist there, or if the version is not served.
func (c *custom) gizmo(ctx context.Context, version string) *unstructured.Unstructured {
	GinkgoHelper()
	object := blank(c.group + "/" + version + " Gizmo")
	object.SetNamespace(c.namespace)
	object.SetName(c.name + "-gizmo")
	if err := managed.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return nil
	}
	return object
}

// apply applies a definition like another writer.
func (c *custom) apply(ctx context.Context, definition *unstructured.Unstructured) {
	GinkgoHelper()
	body, err := definition.MarshalJSON()
	Expect(err).NotTo(HaveOccurred())
	patch := client.RawPatch(types.ApplyPatchType, body)
	Expect(managed.Patch(ctx, definition.DeepCopy(), patch, client.FieldOwner("vendor"), client.ForceOwnership)).To(Succeed())
}

// define creates the definition, or updates it, and waits until the API server serves exactly these versions.
func (c *custom) define(ctx context.Context, served ...string) {
	GinkgoHelper()
	c.apply(ctx, c.definition(served...))
	for _, version := range []string{"v1alpha1", "v1"} {
		serves := strings.Contains(strings.Join(served, " ")+" ", version+" ")
		Eventually(func() bool {
			list := blank(c.group + "/" + version + " Gizmo")
			return managed.List(ctx, &unstructured.UnstructuredList{Object: list.Object}) == nil
		}).Should(Equal(serves), version)
	}
}

// undefine deletes the definition with all objects of the kind.
func (c *custom) undefine(ctx context.Context) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(managed.Delete(ctx, c.definition("v1")))).To(Succeed())
	Eventually(func() bool {
		object := c.definition("v1")
		return apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(object), object))
	}).Should(BeTrue())
}

// says waits until condition Ready is False because of the custom resource.
func (c *custom) says(ctx context.Context, message string) {
	GinkgoHelper()
	Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(is(metav1.ConditionFalse, kudo.ReasonUnhealthy,
		"Gizmo "+c.namespace+"/"+c.name+"-gizmo: "+message))
}

// restore creates the custom resource as it was, and waits until condition Ready is True.
func (c *custom) restore(ctx context.Context, stored *unstructured.Unstructured) {
	GinkgoHelper()
	stored.SetResourceVersion("")
	stored.SetUID("")
	Expect(managed.Create(ctx, stored)).To(Succeed())
	Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
}

// replaced deletes the custom resource in a version and restores it, which condition Ready follows.
func (c *custom) replaced(ctx context.Context, version string) {
	GinkgoHelper()
	stored := c.gizmo(ctx, version)
	Expect(managed.Delete(ctx, stored)).To(Succeed())
	c.says(ctx, "is missing")
	c.restore(ctx, stored)
}

// eventHandlers returns the number of event handlers of all informers of this process.
func eventHandlers() int {
	GinkgoHelper()
	var stacks strings.Builder
	Expect(pprof.Lookup("goroutine").WriteTo(&stacks, 2)).To(Succeed())
	return strings.Count(stacks.String(), ".(*processorListener).run(")
}

var _ = Describe("A custom resource whose definition changes", func() {
	var c *custom
	var stop func()
	BeforeEach(func() {
		stop = runAgent()
		defined++
		c = &custom{group: fmt.Sprintf("defined-%d.tandem.test", defined)}
		DeferCleanup(func(ctx context.Context) {
			stop()
			c.undefine(ctx)
		})
	})
	deploy := func(ctx context.Context, spec kudo.OperatorVersionSpec) {
		c.hubPart = newInstance(ctx, spec, nil)
		c.resolve(ctx)
		c.completes(ctx, "deploy", kudo.PlanStatus{})
	}

	It("is healthy after an upgrade that no longer serves its former version, and is removed", func(ctx context.Context) {
		deploy(ctx, c.spec("v1alpha1", c.definition("v1alpha1")))
		c.upgrade(ctx, c.spec("v1", c.definition("v1")))
		c.replaced(ctx, "v1")
		c.finish(ctx)
		c.define(ctx, "v1")
		Expect(c.gizmo(ctx, "v1")).To(BeNil())
	})

	It("is watched in the version that is served now", func(ctx context.Context) {
		c.define(ctx, "v1alpha1")
		deploy(ctx, c.spec("v1alpha1"))
		c.define(ctx, "v1")
		Expect(managed.Delete(ctx, c.gizmo(ctx, "v1"))).To(Succeed())
		c.says(ctx, "is missing")
		c.finish(ctx)
	})

	It("is missing while the definition is, and is healthy once both exist again", func(ctx context.Context) {
		c.define(ctx, "v1")
		deploy(ctx, c.spec("v1"))
		stored := c.gizmo(ctx, "v1")
		c.undefine(ctx)
		c.says(ctx, "is missing")
		c.define(ctx, "v1")
		c.restore(ctx, stored)
		c.replaced(ctx, "v1")
		c.finish(ctx)
	})

	It("is missing after the definition was re-created, and is applied again by a plan", func(ctx context.Context) {
		c.define(ctx, "v1")
		deploy(ctx, c.spec("v1"))
		c.undefine(ctx)
		c.define(ctx, "v1")
		c.says(ctx, "is missing")
		before := c.plan(ctx, "deploy")
		c.change(ctx, byHand("deploy", "again"))
		c.completes(ctx, "deploy", before)
		Expect(c.gizmo(ctx, "v1")).NotTo(BeNil())
		c.finish(ctx)
		Expect(c.gizmo(ctx, "v1")).To(BeNil())
	})

	It("is pruned in the version that is served now", func(ctx context.Context) {
		c.define(ctx, "v1alpha1")
		deploy(ctx, c.spec("v1alpha1"))
		c.define(ctx, "v1")
		Expect(c.gizmo(ctx, "v1")).NotTo(BeNil())
		c.upgrade(ctx, configOnly())
		Expect(c.gizmo(ctx, "v1")).To(BeNil())
		Expect(c.inventoryOf(ctx)).NotTo(ContainElement(ContainSubstring("gizmo")))
		c.finish(ctx)
	})

	It("is deleted by a Delete task whose template names a version that is no longer served", func(ctx context.Context) {
		c.define(ctx, "v1alpha1")
		spec := c.spec("v1alpha1")
		spec.Tasks = append(spec.Tasks, task("drop", kudo.TaskDelete, "gizmo.yaml"))
		spec.Plans["drop"] = serial("drop")
		deploy(ctx, spec)
		c.define(ctx, "v1")
		c.change(ctx, byHand("drop", "drop-1"))
		c.completes(ctx, "drop", kudo.PlanStatus{})
		Expect(c.gizmo(ctx, "v1")).To(BeNil())
		c.finish(ctx)
	})

	It("is deleted with its definition by a removal, although that serves no version", func(ctx context.Context) {
		deploy(ctx, c.spec("v1", c.definition("v1")))
		c.define(ctx)
		c.says(ctx, fmt.Sprintf("CustomResourceDefinition %q serves no version of the kind", "gizmos."+c.group))
		c.finish(ctx)
		Expect(apierrors.IsNotFound(managed.Get(ctx, client.ObjectKeyFromObject(c.definition("v1")), c.definition("v1")))).To(BeTrue())
	})

	It("is not gone while its version cannot be converted, which is reported", func(ctx context.Context) {
		c.define(ctx, "v1alpha1")
		deploy(ctx, c.spec("v1alpha1"))
		dead := c.definition("v1alpha1", "v1")
		Expect(unstructured.SetNestedMap(dead.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"},
		}}, "spec", "conversion")).To(Succeed())
		c.apply(ctx, dead)
		c.says(ctx, "conversion webhook for "+c.group+"/v1alpha1, Kind=Gizmo failed: ")
		Expect(unstructured.SetNestedMap(dead.Object, map[string]any{"strategy": "None", "webhook": nil}, "spec", "conversion")).To(Succeed())
		c.apply(ctx, dead)
		Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(HaveField("Status", metav1.ConditionTrue))
		c.finish(ctx)
		Expect(c.gizmo(ctx, "v1")).To(BeNil())
	})

	It("leaves no watch behind when its version changes again and again", func(ctx context.Context) {
		c.define(ctx, "v1")
		deploy(ctx, c.spec("v1"))
		before := eventHandlers()
		for range 2 {
			c.define(ctx, "v1alpha1")
			c.replaced(ctx, "v1alpha1")
			c.define(ctx, "v1")
			c.replaced(ctx, "v1")
		}
		Eventually(eventHandlers).Should(BeNumerically("<=", before))
		c.finish(ctx)
	})

	It("is not gone while no version is served, which is reported, and is removed once one is", func(ctx context.Context) {
		c.define(ctx, "v1")
		deploy(ctx, c.spec("v1"))
		c.define(ctx)
		c.says(ctx, fmt.Sprintf("CustomResourceDefinition %q serves no version of the kind", "gizmos."+c.group))
		Expect(hub.Delete(ctx, c.get(ctx))).To(Succeed())
		Eventually(func() metav1.Condition { return c.ready(ctx) }).Should(
			is(metav1.ConditionFalse, kudo.ReasonRemoving, "serves no version of the kind"))
		c.define(ctx, "v1alpha1", "v1")
		c.finish(ctx)
		Expect(c.gizmo(ctx, "v1")).To(BeNil())
	})
})
