package read

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/selector"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// at is when the conditions of these tests last changed.
var at = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func newCondition(conditionType string) metav1.Condition {
	return metav1.Condition{
		Type: conditionType, Status: metav1.ConditionTrue, ObservedGeneration: 3, LastTransitionTime: at, Reason: "Said", Message: "what was said",
	}
}

// whole returns an add-on with all fields that OCM, users and Tandem set.
func whole() *addonv1alpha1.ManagedClusterAddOn {
	config := upstream.ConfigGroupResource{Group: "addon.open-cluster-management.io", Resource: "addondeploymentconfigs"}
	referent := upstream.ConfigReferent{Namespace: "n", Name: "config"}
	return &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta: metav1.TypeMeta{APIVersion: "addon.open-cluster-management.io/v1alpha1", Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster", Name: "web", UID: "uid", ResourceVersion: "7", Generation: 3, CreationTimestamp: at,
			Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "web"}},
			Finalizers:      []string{"other", "kudo.dev/instance"},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: upstream.ManagedClusterAddOnSpec{
			InstallNamespace: "agents", Configs: []upstream.AddOnConfig{{ConfigGroupResource: config, ConfigReferent: referent}},
		},
		Status: upstream.ManagedClusterAddOnStatus{
			Conditions: []metav1.Condition{
				newCondition("RegistrationApplied"), newCondition("Available"), newCondition("Progressing"), newCondition("Degraded"), newCondition("Configured"), newCondition("Resolved"),
				newCondition("ManifestApplied"), newCondition("AddOnsRemaining"),
			},
			RelatedObjects:     []upstream.ObjectReference{{Name: "r"}},
			AddOnMeta:          upstream.AddOnMeta{DisplayName: "d"},
			AddOnConfiguration: upstream.ConfigCoordinates{CRName: "c"},
			SupportedConfigs:   []upstream.ConfigGroupResource{config},
			ConfigReferences: []upstream.ConfigReference{{
				ConfigGroupResource: config, ConfigReferent: referent, LastObservedGeneration: 2,
				DesiredConfig:     &upstream.ConfigSpecHash{ConfigReferent: referent, SpecHash: "wanted"},
				LastAppliedConfig: &upstream.ConfigSpecHash{ConfigReferent: referent, SpecHash: "applied"},
			}},
			Namespace:        "agents",
			Registrations:    []upstream.RegistrationConfig{{SignerName: "s"}},
			HealthCheck:      upstream.HealthCheck{Mode: upstream.HealthCheckModeCustomized},
			KubeClientDriver: "csr",
		},
	}
}

// trimObject returns an add-on as the cache has it.
func trimObject[T any](t *testing.T, object T) T {
	t.Helper()
	cached, err := Transform()(object)
	if err != nil {
		t.Fatal(err)
	}
	return cached.(T)
}

func TestTheCacheHoldsWhatIsRead(t *testing.T) {
	want := whole()
	want.TypeMeta = metav1.TypeMeta{}
	want.Labels, want.Annotations, want.OwnerReferences, want.ManagedFields = nil, nil, nil, nil
	conditions := want.Status.Conditions
	for _, other := range []int{0, 2} {
		conditions[other] = metav1.Condition{Type: conditions[other].Type}
	}
	conditions[1].Message, conditions[4].Message = "", ""
	reference := want.Status.ConfigReferences[0]
	want.Status = upstream.ManagedClusterAddOnStatus{
		Conditions: conditions, SupportedConfigs: want.Status.SupportedConfigs, HealthCheck: want.Status.HealthCheck,
		ConfigReferences: []upstream.ConfigReference{{
			ConfigGroupResource: reference.ConfigGroupResource, DesiredConfig: reference.DesiredConfig,
		}},
	}
	got := trimObject(t, whole())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got.DeepCopy(), trimObject(t, got)); diff != "" {
		t.Errorf("a second time changes it (-once +twice):\n%s", diff)
	}
}

// Every decision and every patch is the same with the cached object as with the stored one.
func TestNothingThatIsDroppedDecides(t *testing.T) {
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	for name, decide := range map[string]func(*addonv1alpha1.ManagedClusterAddOn) any{
		"as a dependency": func(a *addonv1alpha1.ManagedClusterAddOn) any { return dependency.See(nil, a) },
		"its configuration": func(a *addonv1alpha1.ManagedClusterAddOn) any {
			return install.Configure(definition, a, install.Namespaces{})
		},
		"the configs that it has": func(a *addonv1alpha1.ManagedClusterAddOn) any { return install.References(definition, a) },
		"what OCM desires":        func(a *addonv1alpha1.ManagedClusterAddOn) any { return install.DesiredFingerprint(a) },
		"its rollout": func(a *addonv1alpha1.ManagedClusterAddOn) any {
			return install.RolloutOf(install.AddOn{Definition: definition, ManagedAddOn: a}, "")
		},
		"the release of its health check": func(a *addonv1alpha1.ManagedClusterAddOn) any { return apply.ReleaseHealthCheck(a) },
		"the release of conditions": func(a *addonv1alpha1.ManagedClusterAddOn) any {
			var all []apply.Operation
			for _, conditionType := range []string{"Degraded", "Resolved", "ManifestApplied"} {
				all = append(all, apply.Release(a.Status.Conditions, conditionType, "Said")...)
			}
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(decide(whole()), decide(trimObject(t, whole()))); diff != "" {
				t.Errorf("(-stored +cached):\n%s", diff)
			}
		})
	}
}

// The hub's writers of conditions, each of which compares the stored condition with the one that it wants.
func TestConditionsOfTheHubAreSettledAlike(t *testing.T) {
	for _, condition := range []metav1.Condition{
		newCondition("Degraded"), newCondition("Resolved"), newCondition("ManifestApplied"), newCondition("AddOnsRemaining"),
		{Type: "Available", Status: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonClusterLeaseStopped, Message: "stopped"},
		{Type: "Available", Status: metav1.ConditionTrue, Reason: "Another", Message: "another"},
	} {
		for _, message := range []string{condition.Message, "another"} {
			condition.Message = message
			stored, changed := apply.MergeCondition(whole().Status.Conditions, condition, at.Add(time.Hour))
			cached, changedToo := apply.MergeCondition(trimObject(t, whole()).Status.Conditions, condition, at.Add(time.Hour))
			if diff := cmp.Diff(stored, cached); diff != "" || changed != changedToo {
				t.Errorf("%s: written %t and %t (-stored +cached):\n%s", condition.Type, changed, changedToo, diff)
			}
		}
	}
}

func TestLeasesKeepTheirTimes(t *testing.T) {
	lease := func() *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cluster", Name: "addon-agent", Labels: map[string]string{"l": "v"}},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: ptr.To("holder"), LeaseDurationSeconds: ptr.To(int32(30)), RenewTime: ptr.To(metav1.NewMicroTime(at.Time)),
			},
		}
	}
	cached := trimObject(t, lease())
	if cached.Labels != nil || cached.Spec.HolderIdentity != nil || !cached.Spec.RenewTime.Equal(lease().Spec.RenewTime) ||
		availability.LeaseTimeout(cached) != availability.LeaseTimeout(lease()) {
		t.Errorf("cached as %+v", cached)
	}
}

func TestClustersKeepNameAndDeletion(t *testing.T) {
	want := Namespace()
	want.Name, want.UID, want.DeletionTimestamp = "cluster", "uid", &at
	stored := want.DeepCopy()
	stored.Labels, stored.Annotations = map[string]string{"l": "v"}, map[string]string{"a": "v"}
	if diff := cmp.Diff(want, trimObject(t, stored)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManagedClustersKeepTheirFacts(t *testing.T) {
	want := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster", UID: "uid", DeletionTimestamp: &at, Labels: map[string]string{"region": "eu"}},
		Status: clusterv1.ManagedClusterStatus{
			ClusterClaims: []clusterv1.ManagedClusterClaim{{Name: "a", Value: "x"}, {Name: "b", Value: "y"}},
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1.34.0"},
		},
	}
	stored := want.DeepCopy()
	stored.Labels["feature.open-cluster-management.io/addon-web"], stored.Annotations = "available", map[string]string{"a": "v"}
	stored.Spec.HubAcceptsClient, stored.Status.Capacity = true, clusterv1.ResourceList{"cpu": resource.MustParse("1")}
	stored.Status.ClusterClaims[0], stored.Status.ClusterClaims[1] = stored.Status.ClusterClaims[1], stored.Status.ClusterClaims[0]
	before := ViewSelected(stored)
	cached := trimObject(t, stored)
	if diff := cmp.Diff(want, cached); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if after := ViewSelected(cached); after != before {
		t.Errorf("the cache changes the facts from %s to %s", before, after)
	}
	huge := want.DeepCopy()
	huge.Status.ClusterClaims = append(huge.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: "c", Value: strings.Repeat("x", 1<<20)})
	if cached := selector.FactsOf(trimObject(t, huge)); len(cached.Claims["c"]) > 32<<10 || facts.Problem(cached) == "" {
		t.Errorf("the cache has %d bytes, and the problem %q", len(cached.Claims["c"]), facts.Problem(cached))
	}
}

func TestManagedClustersKeepTheirSuspension(t *testing.T) {
	for value, want := range map[string]string{"": "", "a reason": "a reason", strings.Repeat("x", 1<<18): strings.Repeat("x", 200) + "…"} {
		stored := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster", Annotations: map[string]string{"a": "v", kudo.AnnotationSuspend: value}}}
		before := ViewPassedOn(stored)
		cached := trimObject(t, stored)
		if diff := cmp.Diff(map[string]string{kudo.AnnotationSuspend: want}, cached.Annotations); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if ViewPassedOn(cached) != before || before == ViewPassedOn(&clusterv1.ManagedCluster{}) {
			t.Errorf("the cache changes the suspension with %d characters", len(value))
		}
	}
}

func TestNamespacesKeepTheLabelsThatDecideAboutConfigs(t *testing.T) {
	want := Namespace()
	want.Name, want.Labels = "cluster", map[string]string{"open-cluster-management.io/cluster-name": "cluster", "kudo.dev/shared-configs": "true"}
	stored := want.DeepCopy()
	stored.Labels["l"] = "v"
	if diff := cmp.Diff(want, trimObject(t, stored)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOtherMetadataIsKept(t *testing.T) {
	want := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "work.open-cluster-management.io/v1", Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{Name: "mark", Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"a": "v"}},
	}
	if diff := cmp.Diff(want, trimObject(t, want.DeepCopy())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// decode returns a string in its own memory, as a decoder does.
func decode(text string) string { return string([]byte(text)) }

func TestEqualStringsOfObjectsAreShared(t *testing.T) {
	transform := Transform()
	cached := func() *addonv1alpha1.ManagedClusterAddOn {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: decode("cluster"), Name: decode("web")}}
		addOn.Status.Conditions = []metav1.Condition{{Type: decode("Degraded"), Reason: decode("R"), Message: decode("said")}}
		if _, err := transform(addOn); err != nil {
			t.Fatal(err)
		}
		return addOn
	}
	a, b := cached(), cached()
	for name, pair := range map[string][2]string{
		"namespace": {a.Namespace, b.Namespace}, "name": {a.Name, b.Name},
		"message": {a.Status.Conditions[0].Message, b.Status.Conditions[0].Message},
	} {
		if unsafe.StringData(pair[0]) != unsafe.StringData(pair[1]) {
			t.Errorf("the %s %q is in memory twice", name, pair[0])
		}
	}
}

func TestSharedStringsAreBounded(t *testing.T) {
	known := newTexts()
	for i := range 2 * textsLimit {
		if want := fmt.Sprint(i); known.of(want) != want {
			t.Fatalf("another string than %q", want)
		}
	}
	if got := len(known.known); got > textsLimit {
		t.Errorf("%d strings, more than %d", got, textsLimit)
	}
	long := decode(string(make([]byte, maxTextLength+1)))
	if known.of(long); known.known[long] != "" {
		t.Error("a long string is kept")
	}
}

func TestTrimInstance(t *testing.T) {
	instance := &kudo.Instance{Status: kudo.InstanceStatus{
		Execution: &kudo.Execution{UID: "e", Plan: "deploy"}, Whole: &kudo.WholeVersion{}, Inventory: []kudo.InventoryEntry{{Name: "a"}},
		History: []kudo.HistoryEntry{{Revision: 1, UID: "e", Plan: "deploy"}},
	}}
	trimmed, err := Trim(instance)
	if err != nil {
		t.Fatal(err)
	}
	if status := trimmed.(*kudo.Instance).Status; len(status.History)+len(status.Inventory) > 0 || status.Execution == nil {
		t.Errorf("the cache holds %v", status)
	}
}

func TestTrimConfigMap(t *testing.T) {
	config := func(value string, labels map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"a": "b"}}, Data: map[string]string{"VALUE": value}}
	}
	marked := map[string]string{kudo.LabelConfiguration: "true"}
	views := map[string]bool{}
	for _, value := range []string{"one", "two"} {
		trimmed, err := Trim(config(value, marked))
		if err != nil {
			t.Fatal(err)
		}
		got := trimmed.(*corev1.ConfigMap)
		if len(got.Data)+len(got.BinaryData) > 0 || len(got.Annotations) != 1 {
			t.Errorf("the cache holds %v", got)
		}
		views[ViewConfigMap(got)] = true
	}
	if len(views) != 2 || views[""] {
		t.Errorf("the cache does not show a change: %v", views)
	}
	other, err := Trim(config("certificates", nil))
	if err != nil || other.(*corev1.ConfigMap).Data["VALUE"] != "certificates" {
		t.Errorf("got %v, %v", other, err)
	}
}
