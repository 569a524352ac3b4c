package policy

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/util/retry"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

const addOnGroup = "addon.open-cluster-management.io"

// The versions in which add-ons are served, and the ways to write their status.
var (
	versions = []string{"v1alpha1", "v1beta1"}
	ways     = map[string]way{"merge patch": mergePatch, "JSON patch": jsonPatch, "update": update, "server-side apply": serverSideApply}
)

// statusWrite is a status written by a writer: conditions, and other fields.
type statusWrite struct {
	conditions []metav1.Condition
	fields     map[string]any
	// alone is set if the writer sends only its own conditions.
	alone bool
}

// at returns the write with transition times: now for a condition whose stored status differs.
func (w statusWrite) at(now time.Time, stored []metav1.Condition) statusWrite {
	w.conditions = slices.Clone(w.conditions)
	for i := range w.conditions {
		c := &w.conditions[i]
		c.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		if known := meta.FindStatusCondition(stored, c.Type); known != nil && known.Status == c.Status {
			c.LastTransitionTime = known.LastTransitionTime
		}
	}
	return w
}

// all returns the conditions that the writer sends, given the ones that it has read.
func (w statusWrite) all(stored []metav1.Condition) []metav1.Condition {
	if w.alone {
		return w.conditions
	}
	for _, c := range w.conditions {
		meta.SetStatusCondition(&stored, c)
	}
	return stored
}

// way writes a status, given the object as the writer has read it, which is set to the API server's response.
type way func(ctx context.Context, c client.Client, read *unstructured.Unstructured, w statusWrite) error

// mergePatch patches like the patcher of OCM's sdk-go, which klusterlets, addon-framework and the hub's controllers use: from the read
// object to the desired one, with complete lists.
func mergePatch(ctx context.Context, c client.Client, read *unstructured.Unstructured, w statusWrite) error {
	before := read.DeepCopy()
	set(read, w.all(conditionsOf(read)), w.fields)
	return c.Status().Patch(ctx, read, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// writeStatus applies mergePatch to the object read by admin, and retries on a conflict with another writer.
func writeStatus(ctx context.Context, admin, c client.Client, version string, key types.NamespacedName, w statusWrite) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object := addOnIn(version, key)
		if err := admin.Get(ctx, key, object); err != nil {
			return err
		}
		return mergePatch(ctx, c, object, w)
	})
}

func jsonPatch(ctx context.Context, c client.Client, read *unstructured.Unstructured, w statusWrite) error {
	var operations []map[string]any
	if _, found := read.Object["status"]; !found {
		operations = append(operations, map[string]any{"op": "add", "path": "/status", "value": map[string]any{}})
	}
	operations = append(operations, map[string]any{"op": "add", "path": "/status/conditions", "value": plain(w.all(conditionsOf(read)))})
	for name, value := range w.fields {
		operations = append(operations, map[string]any{"op": "add", "path": "/status/" + name, "value": value})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	return c.Status().Patch(ctx, read, client.RawPatch(types.JSONPatchType, patch))
}

func update(ctx context.Context, c client.Client, read *unstructured.Unstructured, w statusWrite) error {
	set(read, w.all(conditionsOf(read)), w.fields)
	return c.Status().Update(ctx, read)
}

// serverSideApply applies, with force, only the writer's own conditions and fields.
func serverSideApply(ctx context.Context, c client.Client, read *unstructured.Unstructured, w statusWrite) error {
	applied := &unstructured.Unstructured{}
	applied.SetGroupVersionKind(read.GroupVersionKind())
	applied.SetNamespace(read.GetNamespace())
	applied.SetName(read.GetName())
	set(applied, w.conditions, w.fields)
	err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("applier"), client.ForceOwnership)
	applied.DeepCopyInto(read)
	return err
}

// set sets conditions and fields of a status.
func set(object *unstructured.Unstructured, conditions []metav1.Condition, fields map[string]any) {
	GinkgoHelper()
	status := map[string]any{"conditions": plain(conditions)}
	stored, _ := object.Object["status"].(map[string]any)
	for _, from := range []map[string]any{stored, fields} {
		for name, value := range from {
			if name != "conditions" {
				status[name] = value
			}
		}
	}
	object.Object["status"] = status
}

// plain converts conditions for an unstructured object.
func plain(conditions []metav1.Condition) []any {
	GinkgoHelper()
	list := []any{}
	for i := range conditions {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		Expect(err).NotTo(HaveOccurred())
		list = append(list, fields)
	}
	return list
}

// conditionsOf returns the conditions of an object in any version.
func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	GinkgoHelper()
	var typed struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions,omitempty"`
		} `json:"status,omitempty"`
	}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &typed)).To(Succeed())
	return typed.Status.Conditions
}

// read returns the stored add-on in a version.
func read(ctx context.Context, version string, key types.NamespacedName) *unstructured.Unstructured {
	GinkgoHelper()
	object := addOnIn(version, key)
	Expect(server.Get(ctx, key, object)).To(Succeed())
	return object
}

func addOnIn(version string, key types.NamespacedName) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: addOnGroup, Version: version, Kind: "ManagedClusterAddOn"})
	object.SetNamespace(key.Namespace)
	object.SetName(key.Name)
	return object
}

// condition returns a condition whose status changed some time ago.
func condition(conditionType, status, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)).Rfc3339Copy(),
	}
}

// seen is the expected state of a condition.
type seen struct{ Status, Reason, Message string }

// none is a missing condition.
var none = seen{}

func seenOf(conditions []metav1.Condition, conditionType string) seen {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return none
	}
	return seen{string(c.Status), c.Reason, c.Message}
}

// unmet returns the verdict on a dependency that is not installed.
func unmet(kind addonv1alpha1.DependencyType, reason string) seen {
	return seen{"True", reason, fmt.Sprintf("%s addon 'missing' is not installed or not available.", kind)}
}

// The verdicts, and the resulting Available of an unmet required dependency.
var (
	requiredUnmet = unmet(addonv1alpha1.DependencyTypeRequired, addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
	optionalUnmet = unmet(addonv1alpha1.DependencyTypeOptional, addonv1alpha1.ReasonDependencyNotSatisfied)
	gated         = seen{"False", requiredUnmet.Reason, requiredUnmet.Message}
)

// enable creates an add-on in cluster, and its definition with dependencies.
func enable(ctx context.Context, c client.Client, needs ...addonv1alpha1.AddonDependency) types.NamespacedName {
	GinkgoHelper()
	key := types.NamespacedName{Namespace: cluster, Name: "addon-" + rand.String(6)}
	Expect(c.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	})).To(Succeed())
	define(ctx, c, key.Name, needs...)
	return key
}

func define(ctx context.Context, c client.Client, name string, needs ...addonv1alpha1.AddonDependency) *addonv1alpha1.ClusterManagementAddOn {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.Dependencies = needs
	Expect(c.Create(ctx, definition)).To(Succeed())
	return definition
}

// redefine changes a definition.
func redefine(ctx context.Context, c client.Client, name string, change func(*addonv1alpha1.ClusterManagementAddOn)) {
	GinkgoHelper()
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(environment.Edit(ctx, c, definition, change)).To(Succeed())
}

// runs makes a definition run an OperatorVersion of that name.
func runs(version string) func(*addonv1alpha1.ClusterManagementAddOn) {
	return func(d *addonv1alpha1.ClusterManagementAddOn) {
		d.Spec.SupportedConfigs = []upstream.ConfigMeta{{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			DefaultConfig:       &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: version},
		}}
	}
}

// needs returns a dependency on an add-on that is never installed.
func needs(kind addonv1alpha1.DependencyType) addonv1alpha1.AddonDependency {
	return addonv1alpha1.AddonDependency{Name: "missing", Type: kind}
}

// reportedCondition returns a condition of an add-on, for Eventually.
func reportedCondition(c client.Client, key types.NamespacedName, conditionType string) func(Gomega, context.Context) seen {
	return func(g Gomega, ctx context.Context) seen {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		g.Expect(c.Get(ctx, key, addOn)).To(Succeed())
		return seenOf(addOn.Status.Conditions, conditionType)
	}
}

// newJudgedAddOn returns an add-on with that verdict of the hub.
func newJudgedAddOn(ctx context.Context, kind addonv1alpha1.DependencyType, verdict seen) types.NamespacedName {
	GinkgoHelper()
	key := enable(ctx, server, needs(kind))
	Eventually(reportedCondition(server, key, addonv1alpha1.ConditionDegraded)).WithContext(ctx).Should(Equal(verdict))
	return key
}

// newRequiringAddOn, newPreferringAddOn and newIndependentAddOn return add-ons with a verdict on a required dependency, on an optional
// dependency, and without a verdict.
func newRequiringAddOn(ctx context.Context) types.NamespacedName {
	GinkgoHelper()
	return newJudgedAddOn(ctx, addonv1alpha1.DependencyTypeRequired, requiredUnmet)
}

func newPreferringAddOn(ctx context.Context) types.NamespacedName {
	GinkgoHelper()
	return newJudgedAddOn(ctx, addonv1alpha1.DependencyTypeOptional, optionalUnmet)
}

func newIndependentAddOn(ctx context.Context) types.NamespacedName {
	GinkgoHelper()
	return enable(ctx, server)
}

// untilEnforced waits until the API server enforces the policies in all versions, which takes a few seconds.
func (s *site) untilEnforced(ctx context.Context) {
	GinkgoHelper()
	admin := s.as("")
	mutates, err := s.Mutates()
	Expect(err).NotTo(HaveOccurred())
	key := enable(ctx, admin, needs(addonv1alpha1.DependencyTypeOptional))
	Eventually(reportedCondition(admin, key, "Degraded")).WithContext(ctx).Should(Equal(optionalUnmet))
	for _, version := range versions {
		Eventually(func(g Gomega) {
			object := addOnIn(version, key)
			g.Expect(admin.Get(ctx, key, object)).To(Succeed())
			g.Expect(mergePatch(ctx, s.asAgent(cluster), object.DeepCopy(), statusWrite{alone: true})).To(MatchError(ContainSubstring("denied")))
			if mutates {
				g.Expect(mergePatch(ctx, s.asOCM(), object, statusWrite{alone: true})).To(Succeed())
				g.Expect(seenOf(conditionsOf(object), "Degraded")).To(Equal(optionalUnmet))
			}
		}).WithContext(ctx).Should(Succeed(), version)
	}
}
