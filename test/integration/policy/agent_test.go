package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/test/integration/environment"
	"github.com/tandem-addons/tandem/test/integration/invariants"
	"github.com/tandem-addons/tandem/test/rights"
)

// newHeldAddOn creates an add-on with all fields that the hub can write: it is plan-based, requires a missing add-on, and refers to an
// OperatorVersion that does not exist. OCM has written the other fields.
func newHeldAddOn(ctx context.Context) types.NamespacedName {
	GinkgoHelper()
	key := enable(ctx, server)
	redefine(ctx, server, key.Name, func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.Dependencies = []addonv1alpha1.AddonDependency{needs(addonv1alpha1.DependencyTypeRequired)}
		runs("absent-1.0.0")(d)
	})
	Eventually(reportedCondition(server, key, "Degraded")).WithContext(ctx).Should(Equal(requiredUnmet))
	Eventually(reportedCondition(server, key, "Resolved")).WithContext(ctx).Should(HaveField("Reason", kudo.ReasonOperatorVersionNotFound))
	Expect(writeStatus(ctx, server, tandem.asOCM(), "v1alpha1", key, statusWrite{
		conditions: []metav1.Condition{workApplied, condition("RegistrationApplied", "True", "Set", "by OCM")},
	})).To(Succeed())
	return key
}

// Agents may write only one condition of an add-on's status. Each status below contains something else too.
var _ = Describe("An agent that writes, of an add-on's status,", Ordered, ContinueOnFailure, func() {
	var key types.NamespacedName
	BeforeAll(func(ctx SpecContext) { key = newHeldAddOn(ctx) })
	DescribeTableSubtree("",
		func(says statusWrite, except ...string) {
			send := maps.Clone(ways)
			delete(send, "update") // which RBAC rejects in any case
			for _, version := range versions {
				for by := range send {
					if slices.Contains(except, by) || slices.Contains(except, version) {
						continue
					}
					It("is refused, by "+by+" in "+version, func(ctx SpecContext) {
						before := read(ctx, version, key)
						err := send[by](ctx, tandem.asAgent(cluster), before.DeepCopy(), says)
						Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
						Expect(err).To(MatchError(Or(ContainSubstring("tandem-agents-on-add-ons"), ContainSubstring("tandem-dependency-reasons"),
							ContainSubstring("tandem-config-references"))))
						Expect(read(ctx, version, key)).To(Equal(before))
					})
				}
			}
		},
		Entry("Degraded with a value of its own", statusWrite{conditions: []metav1.Condition{condition("Degraded", "True", "MyOwn", "")}}),
		Entry("Degraded as good", statusWrite{conditions: []metav1.Condition{condition("Degraded", "False", "AllIsWell", "")}}),
		Entry("Degraded with another verdict", statusWrite{conditions: []metav1.Condition{condition("Degraded", "True", optionalUnmet.Reason, "not so bad")}}),
		Entry("Degraded with another message", statusWrite{conditions: []metav1.Condition{condition("Degraded", "True", requiredUnmet.Reason, "elsewhere")}}),
		Entry("Degraded beside Available", statusWrite{conditions: []metav1.Condition{workApplied, condition("Degraded", "False", "AllIsWell", "")}}),
		Entry("no Degraded", statusWrite{conditions: []metav1.Condition{workApplied}, alone: true}, "server-side apply"),
		Entry("nothing", statusWrite{alone: true}, "server-side apply"),
		Entry("Resolved", statusWrite{conditions: []metav1.Condition{condition("Resolved", "True", "Resolved", "")}}),
		Entry("OCM's Configured", statusWrite{conditions: []metav1.Condition{condition("Configured", "True", "ConfigurationsConfigured", "")}}),
		Entry("OCM's RegistrationApplied", statusWrite{conditions: []metav1.Condition{condition("RegistrationApplied", "False", "Undone", "")}}),
		Entry("a condition of its own making", statusWrite{conditions: []metav1.Condition{condition("Mine", "True", "Mine", "")}}),
		Entry("healthCheck", statusWrite{fields: map[string]any{"healthCheck": map[string]any{"mode": "Lease"}}}),
		Entry("namespace", statusWrite{fields: map[string]any{"namespace": "kube-system"}}),
		Entry("registrations", statusWrite{fields: map[string]any{"registrations": []any{map[string]any{
			"signerName": "example.com/signer",
		}}}}, "v1beta1"),
		Entry("registrations", statusWrite{fields: map[string]any{"registrations": []any{map[string]any{
			"type": "customSigner", "customSigner": map[string]any{"signerName": "example.com/signer"},
		}}}}, "v1alpha1"),
		Entry("configReferences", statusWrite{fields: map[string]any{"configReferences": []any{map[string]any{
			"group": "kudo.dev", "resource": "operatorversions", "name": "evil-1.0.0", "namespace": "addon-packages", "lastObservedGeneration": int64(1),
			"desiredConfig": map[string]any{"name": "evil-1.0.0", "namespace": "addon-packages", "specHash": "0"},
		}}}}, "v1beta1"),
		Entry("configReferences", statusWrite{fields: map[string]any{"configReferences": []any{map[string]any{
			"group": "kudo.dev", "resource": "operatorversions", "lastObservedGeneration": int64(1),
			"desiredConfig":     map[string]any{"name": "evil-1.0.0", "namespace": "addon-packages", "specHash": "0"},
			"lastAppliedConfig": map[string]any{"name": "evil-1.0.0", "namespace": "addon-packages", "specHash": "0"},
		}}}}, "v1alpha1"),
		Entry("supportedConfigs", statusWrite{fields: map[string]any{"supportedConfigs": []any{map[string]any{"group": "kudo.dev", "resource": "operatorversions"}}}}),
		Entry("relatedObjects", statusWrite{fields: map[string]any{"relatedObjects": []any{map[string]any{"group": "", "resource": "secrets", "name": "s"}}}}),
		Entry("addOnMeta", statusWrite{fields: map[string]any{"addOnMeta": map[string]any{"displayName": "trustworthy"}}}),
	)
})

// instance returns a user's Instance in cluster with the hub's verdict and a child.
func instance(ctx context.Context) *kudo.Instance {
	GinkgoHelper()
	created := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "instance-" + rand.String(6)}}
	created.Spec.OperatorVersion.Name = "absent-1.0.0"
	Expect(server.Create(ctx, created)).To(Succeed())
	Eventually(func(g Gomega) {
		g.Expect(server.Get(ctx, client.ObjectKeyFromObject(created), created)).To(Succeed())
		g.Expect(seenOf(created.Status.Conditions, "Resolved").Reason).To(Equal(kudo.ReasonOperatorVersionNotFound))
	}).WithContext(ctx).Should(Succeed())
	Expect(apply.Status(ctx, server, created, "addon-manager-children", map[string]any{
		"children": []any{map[string]any{"task": "child", "instance": created.Name + ".child", "state": "Applied"}},
	})).To(Succeed())
	Expect(server.Get(ctx, client.ObjectKeyFromObject(created), created)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(invariants.OfInstances(ctx, server)).To(BeEmpty(), "who wrote what")
	})
	return created
}

var _ = Describe("An agent that writes, of an Instance's status,", Ordered, ContinueOnFailure, func() {
	var created *kudo.Instance
	BeforeAll(func(ctx SpecContext) { created = instance(ctx) })
	DescribeTableSubtree("",
		func(patch, fields string) {
			refused := func(send func(context.Context, client.Client, *kudo.Instance) error) func(SpecContext) {
				return func(ctx SpecContext) {
					err := send(ctx, tandem.asAgent(cluster), created.DeepCopy())
					Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
					Expect(err).To(MatchError(ContainSubstring("tandem-agents-on-instances")))
					reported := &kudo.Instance{}
					Expect(server.Get(ctx, client.ObjectKeyFromObject(created), reported)).To(Succeed())
					Expect(reported.ResourceVersion).To(Equal(created.ResourceVersion))
				}
			}
			It("is refused, by merge patch", refused(func(ctx context.Context, c client.Client, i *kudo.Instance) error {
				return c.Status().Patch(ctx, i, client.RawPatch(types.MergePatchType, []byte(patch)))
			}))
			if fields == "" {
				return
			}
			It("is refused, by server-side apply", refused(func(ctx context.Context, c client.Client, i *kudo.Instance) error {
				applied := &unstructured.Unstructured{}
				Expect(applied.UnmarshalJSON([]byte(`{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","status":` + fields + `}`))).To(Succeed())
				applied.SetNamespace(i.Namespace)
				applied.SetName(i.Name)
				return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"), client.ForceOwnership)
			}))
		},
		Entry("Resolved", `{"status":{"conditions":[`+resolvedByAgent+`]}}`, `{"conditions":[`+resolvedByAgent+`]}`),
		Entry("no Resolved", `{"status":{"conditions":null}}`, ""),
		Entry("a child", `{"status":{"children":[{"task":"child","state":"Removed"}]}}`, `{"children":[{"task":"child","state":"Removed"}]}`),
		Entry("another child", `{"status":{"children":[{"task":"child","state":"Applied"},{"task":"more"}]}}`, `{"children":[{"task":"more"}]}`),
		Entry("no children", `{"status":{"children":null}}`, ""),
		Entry("nothing", `{"status":null}`, ""),
	)
})

const resolvedByAgent = `{"type":"Resolved","status":"True","reason":"Resolved","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}`

// RBAC rejects everything else: an agent has no permissions outside of its cluster's namespace, and few inside.
var _ = Describe("An agent is refused", Ordered, func() {
	var (
		c           client.WithWatch
		addOn       *addonv1alpha1.ManagedClusterAddOn
		neighbour   *addonv1alpha1.ManagedClusterAddOn
		mine        *kudo.Instance
		elsewhere   *kudo.Instance
		otherLease  *coordinationv1.Lease
		leaseBeside *coordinationv1.Lease
	)
	BeforeAll(func(ctx SpecContext) {
		c = tandem.asAgent(cluster)
		key := newHeldAddOn(ctx)
		addOn = &addonv1alpha1.ManagedClusterAddOn{}
		Expect(server.Get(ctx, key, addOn)).To(Succeed())
		neighbour = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: otherCluster, Name: "neighbour"}}
		Expect(server.Create(ctx, neighbour)).To(Succeed())
		mine = instance(ctx)
		elsewhere = &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: otherCluster, Name: "elsewhere"}}
		Expect(server.Create(ctx, elsewhere)).To(Succeed())
		otherLease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: otherCluster, Name: "addon-agent"}}
		leaseBeside = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "someone-elses"}}
		for _, lease := range []*coordinationv1.Lease{otherLease, leaseBeside} {
			Expect(server.Create(ctx, lease)).To(Succeed())
		}
	})
	merge := func(object client.Object, patch string) error {
		return c.Patch(context.Background(), object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	mergeStatus := func(object client.Object, patch string) error {
		return c.Status().Patch(context.Background(), object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	named := func(object client.Object, namespace, name string) client.Object {
		object.SetNamespace(namespace)
		object.SetName(name)
		return object
	}
	in := func(version string, of *addonv1alpha1.ManagedClusterAddOn) *unstructured.Unstructured {
		return addOnIn(version, client.ObjectKeyFromObject(of))
	}
	refusals := map[string]func(context.Context) error{
		"to enable an add-on": func(ctx context.Context) error {
			return c.Create(ctx, named(&addonv1alpha1.ManagedClusterAddOn{}, cluster, "new"))
		},
		"to disable an add-on": func(ctx context.Context) error { return c.Delete(ctx, addOn.DeepCopy()) },
		"to disable all of its": func(ctx context.Context) error {
			return c.DeleteAllOf(ctx, addOn.DeepCopy(), client.InNamespace(cluster))
		},
		"to read other clusters' add-ons": func(ctx context.Context) error {
			return c.List(ctx, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(otherCluster))
		},
		"to read all clusters' add-ons": func(ctx context.Context) error { return c.List(ctx, &addonv1alpha1.ManagedClusterAddOnList{}) },
		"to read definitions":           func(ctx context.Context) error { return c.List(ctx, &addonv1alpha1.ClusterManagementAddOnList{}) },
		"to change a definition": func(context.Context) error {
			return merge(named(&addonv1alpha1.ClusterManagementAddOn{}, "", addOn.Name), `{"spec":{"dependencies":[]}}`)
		},
		"to make an Instance": func(ctx context.Context) error { return c.Create(ctx, named(&kudo.Instance{}, cluster, "new")) },
		"to change an Instance": func(context.Context) error {
			return merge(mine, `{"spec":{"parameters":{"A":"b"}}}`)
		},
		"to run a plan by hand": func(context.Context) error {
			return merge(mine, `{"spec":{"planExecution":{"planName":"deploy"}}}`)
		},
		"to take an Instance's finalizer": func(context.Context) error { return merge(mine, `{"metadata":{"finalizers":null}}`) },
		"to delete an Instance":           func(ctx context.Context) error { return c.Delete(ctx, mine.DeepCopy()) },
		"to read other clusters' Instances": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(elsewhere), &kudo.Instance{})
		},
		"to report of other clusters' Instances": func(context.Context) error {
			return mergeStatus(elsewhere, `{"status":{"observedGeneration":7}}`)
		},
		"to list packages": func(ctx context.Context) error {
			return c.List(ctx, &kudo.OperatorVersionList{}, client.InNamespace(kudo.DefaultPackagesNamespace))
		},
		"to list its own packages": func(ctx context.Context) error {
			return c.List(ctx, &kudo.OperatorVersionList{}, client.InNamespace(cluster))
		},
		"to push a package": func(ctx context.Context) error {
			return c.Create(ctx, named(&kudo.OperatorVersion{}, kudo.DefaultPackagesNamespace, "evil-1.0.0"))
		},
		"to push a package of its own": func(ctx context.Context) error {
			return c.Create(ctx, named(&kudo.OperatorVersion{}, cluster, "evil-1.0.0"))
		},
		"to renew another cluster's lease":  func(context.Context) error { return merge(otherLease, `{"spec":{"holderIdentity":"me"}}`) },
		"to delete another cluster's lease": func(ctx context.Context) error { return c.Delete(ctx, otherLease.DeepCopy()) },
		"to make a lease for another cluster": func(ctx context.Context) error {
			return c.Create(ctx, named(&coordinationv1.Lease{}, otherCluster, "new"))
		},
		"to renew another owner's lease": func(context.Context) error { return merge(leaseBeside, `{"spec":{"holderIdentity":"me"}}`) },
		"to take the leader's lease": func(context.Context) error {
			return merge(named(&coordinationv1.Lease{}, "tandem-system", "tandem-addon-manager"), `{"spec":{"holderIdentity":"me"}}`)
		},
		"to read Secrets": func(ctx context.Context) error { return c.List(ctx, &corev1.SecretList{}, client.InNamespace(cluster)) },
		"to read addon-manager's Secret": func(ctx context.Context) error {
			return c.Get(ctx, types.NamespacedName{Namespace: "tandem-system", Name: "addon-manager-webhooks"}, &corev1.Secret{})
		},
		"to read ConfigMaps": func(ctx context.Context) error {
			return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(cluster))
		},
		"to run a pod": func(ctx context.Context) error { return c.Create(ctx, named(&corev1.Pod{}, cluster, "pod")) },
		"to read its configuration": func(ctx context.Context) error {
			return c.List(ctx, &addonv1alpha1.AddOnDeploymentConfigList{}, client.InNamespace(cluster))
		},
		"to give itself rights": func(ctx context.Context) error {
			return c.Create(ctx, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tandem:addon-manager"},
			})
		},
		"to remove a policy": func(ctx context.Context) error {
			return c.Delete(ctx, named(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, "", "tandem-agents-on-add-ons"))
		},
		"to remove the webhooks": func(ctx context.Context) error {
			return c.Delete(ctx, named(&admissionregistrationv1.ValidatingWebhookConfiguration{}, "", "tandem"))
		},
	}
	for _, version := range versions {
		maps.Copy(refusals, map[string]func(context.Context) error{
			"to change an add-on's spec in " + version: func(context.Context) error {
				return merge(in(version, addOn), `{"spec":{"configs":[]}}`)
			},
			"to change an add-on's labels in " + version: func(context.Context) error {
				return merge(in(version, addOn), `{"metadata":{"labels":{"a":"b"}}}`)
			},
			"to take an add-on's finalizers in " + version: func(context.Context) error {
				return merge(in(version, addOn), `{"metadata":{"finalizers":null}}`)
			},
			"to apply an add-on in " + version: func(ctx context.Context) error {
				applied := in(version, addOn)
				applied.SetAnnotations(map[string]string{"a": "b"})
				return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"), client.ForceOwnership)
			},
			"to replace an add-on in " + version: func(ctx context.Context) error {
				return c.Update(ctx, read(ctx, version, client.ObjectKeyFromObject(addOn)))
			},
			"to replace an add-on's status in " + version: func(ctx context.Context) error {
				return update(ctx, c, read(ctx, version, client.ObjectKeyFromObject(addOn)), statusWrite{conditions: []metav1.Condition{workApplied}})
			},
			"to say that another cluster's add-on is available in " + version: func(context.Context) error {
				return mergeStatus(in(version, neighbour), `{"status":{"conditions":[]}}`)
			},
			"to apply another cluster's Available in " + version: func(ctx context.Context) error {
				return serverSideApply(ctx, c, in(version, neighbour), statusWrite{conditions: []metav1.Condition{workApplied}})
			},
		})
	}
	for what, attempt := range refusals {
		It(what, func(ctx SpecContext) {
			err := attempt(ctx)
			Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		})
	}
})

var _ = Describe("An agent's certificate", func() {
	It("grants the documented permissions, and no others", func(ctx SpecContext) {
		group := "system:open-cluster-management:cluster:" + cluster + ":addon:tandem"
		agent, err := tandem.AddUser(group+":agent:addon-agent", group, "system:open-cluster-management:addon:tandem")
		Expect(err).NotTo(HaveOccurred())
		granted, err := rights.Of(ctx, tandem.Config, agent.Config(), "addon-agent", cluster, otherCluster)
		Expect(err).NotTo(HaveOccurred())
		documented, err := rights.DocumentedRows("../../../docs/operations.md", cluster)
		Expect(err).NotTo(HaveOccurred())
		Expect(rights.Table(granted)).To(ConsistOf(documented))
	})
})

var _ = Describe("An agent may", func() {
	for _, version := range versions {
		for by, send := range ways {
			if by == "update" {
				continue
			}
			It(fmt.Sprintf("write Available, by %s in %s", by, version), func(ctx SpecContext) {
				key := enable(ctx, server)
				object := read(ctx, version, key)
				Expect(send(ctx, tandem.asAgent(cluster), object, statusWrite{conditions: []metav1.Condition{workApplied}})).To(Succeed())
				Expect(seenOf(conditionsOf(object), "Available")).To(Equal(of(workApplied)))
			})

			It(fmt.Sprintf("not say Available against a verdict, by %s in %s", by, version), Label(environment.Mutating), func(ctx SpecContext) {
				key := newRequiringAddOn(ctx)
				var last string
				for tick := range 3 {
					object := read(ctx, version, key)
					says := statusWrite{conditions: []metav1.Condition{workApplied}}.at(time.Now().Add(time.Duration(1+tick)*time.Minute), conditionsOf(object))
					Expect(send(ctx, tandem.asAgent(cluster), object, says)).To(Succeed())
					Expect(seenOf(conditionsOf(object), "Available")).To(Equal(gated))
					Expect(seenOf(conditionsOf(object), "Degraded")).To(Equal(requiredUnmet))
					if last != "" {
						Expect(object.GetResourceVersion()).To(Equal(last), "repeating the write changes nothing")
					}
					last = object.GetResourceVersion()
				}
			})
		}

		It("send spec and metadata with a status in "+version+", of which nothing is stored", Label(environment.Mutating), func(ctx SpecContext) {
			key := newHeldAddOn(ctx)
			before := read(ctx, version, key)
			object := before.DeepCopy()
			Expect(tandem.asAgent(cluster).Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(
				`{"metadata":{"labels":{"a":"b"},"finalizers":["a.example.com/b"]},"spec":{"configs":[{"group":"kudo.dev","resource":"x","name":"y"}]}}`,
			)))).To(Succeed())
			Expect(object).To(Equal(before))
		})
	}

	It("report an Instance, and keep its lease", func(ctx SpecContext) {
		c, created := tandem.asAgent(cluster), instance(ctx)
		Expect(apply.Status(ctx, c, created, "addon-agent-report", map[string]any{
			"execution":  map[string]any{"uid": "1", "plan": "deploy"},
			"planStatus": map[string]any{"deploy": map[string]any{"name": "deploy", "status": "COMPLETE"}},
			"conditions": plain([]metav1.Condition{condition("Ready", "True", "Healthy", "")}),
		})).To(Succeed())
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "addon-agent"}}
		Expect(c.Create(ctx, lease)).To(Succeed())
		now := metav1.NewMicroTime(time.Now())
		renewed := lease.DeepCopy()
		renewed.Spec.RenewTime = &now
		Expect(c.Patch(ctx, renewed, client.MergeFrom(lease))).To(Succeed())
		Expect(apierrors.IsForbidden(c.Delete(ctx, renewed))).To(BeTrue(), "it may not delete it")
	})

	It("read what it needs", func(ctx SpecContext) {
		c := tandem.asAgent(cluster)
		for _, namespace := range []string{kudo.DefaultPackagesNamespace, cluster} {
			err := c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "absent-1.0.0"}, &kudo.OperatorVersion{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
		}
		Expect(c.List(ctx, &kudo.InstanceList{}, client.InNamespace(cluster))).To(Succeed())
		Expect(c.List(ctx, &addonv1alpha1.ManagedClusterAddOnList{}, client.InNamespace(cluster))).To(Succeed())
	})
})
