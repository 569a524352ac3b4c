package uninstall

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// patch applies operations to a copy of an object, as an API server does.
func patch[T any](t *testing.T, object *T, operations []apply.Operation) *T {
	t.Helper()
	if len(operations) == 0 {
		return object
	}
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(operations)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(data)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	patched := new(T)
	if err := json.Unmarshal(after, patched); err != nil {
		t.Fatal(err)
	}
	return patched
}

// addOnWith returns an add-on with conditions, each given as "Type Reason".
func addOnWith(conditions ...string) *addonv1alpha1.ManagedClusterAddOn {
	a := &addonv1alpha1.ManagedClusterAddOn{}
	for _, condition := range conditions {
		conditionType, reason, _ := strings.Cut(condition, " ")
		a.Status.Conditions = append(a.Status.Conditions, metav1.Condition{Type: conditionType, Reason: reason})
	}
	return a
}

func conditionsOf(a *addonv1alpha1.ManagedClusterAddOn) []string {
	var conditions []string
	for _, condition := range a.Status.Conditions {
		conditions = append(conditions, condition.Type+" "+condition.Reason)
	}
	return conditions
}

func TestConditionsOfAddonManagerAreRemoved(t *testing.T) {
	const (
		optional   = addonv1alpha1.ConditionDegraded + " " + addonv1alpha1.ReasonDependencyNotSatisfied
		required   = addonv1alpha1.ConditionDegraded + " " + addonv1alpha1.ReasonRequiredDependencyNotSatisfied
		blocked    = addonv1alpha1.ConditionAvailable + " " + addonv1alpha1.ReasonRequiredDependencyNotSatisfied
		absent     = addonv1alpha1.ConditionAvailable + " " + addonv1alpha1.ReasonNotInstalled
		healthy    = addonv1alpha1.ConditionAvailable + " ProbeAvailable"
		resolved   = addonv1alpha1.ConditionResolved + " Resolved"
		complete   = addonv1alpha1.ConditionManifestApplied + " " + addonv1alpha1.ReasonPlanComplete
		incomplete = addonv1alpha1.ConditionManifestApplied + " " + addonv1alpha1.ReasonPlanNotComplete
		applied    = addonv1alpha1.ConditionManifestApplied + " AddonManifestApplied"
		remaining  = addonv1alpha1.ConditionAddOnsRemaining + " AddOnsRemaining"
		degraded   = addonv1alpha1.ConditionDegraded + " OutOfMemory"
		foreign    = "Configured ConfigurationsConfigured"
	)
	for sentence, test := range map[string]struct {
		conditions           []string
		withoutOne, withARun []string // what remains of an add-on without an Instance, and of one with an Instance that runs
	}{
		"a verdict is removed, whatever its severity": {[]string{optional}, nil, nil},
		"Available is removed if it repeats a verdict": {
			[]string{foreign, blocked, required}, []string{foreign}, []string{foreign},
		},
		"Available with the add-on's own health stays":           {[]string{healthy}, []string{healthy}, []string{healthy}},
		"Degraded of another writer stays":                       {[]string{degraded, remaining}, []string{degraded}, []string{degraded}},
		"Available of an add-on that is not installed":           {[]string{absent}, nil, []string{absent}},
		"conditions of an Instance are removed, or stay with it": {[]string{resolved, foreign, complete}, []string{foreign}, []string{resolved, foreign, complete}},
		"a plan that is not complete is one of them":             {[]string{incomplete}, nil, []string{incomplete}},
		"ManifestApplied of the framework stays":                 {[]string{applied}, []string{applied}, []string{applied}},
		"all of them, in any order, between those of others": {
			[]string{remaining, foreign, resolved, required, complete, blocked, "Progressing Upgrading"},
			[]string{foreign, "Progressing Upgrading"},
			[]string{foreign, resolved, complete, "Progressing Upgrading"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			for runs, want := range map[bool][]string{false: test.withoutOne, true: test.withARun} {
				addOn := addOnWith(test.conditions...)
				got := conditionsOf(patch(t, addOn, newRemoval(addOn, runs, nil).status))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("an Instance runs: %v; conditions (-want +got):\n%s", runs, diff)
				}
			}
		})
	}
}

func TestTheHealthCheckOfAnInstanceIsRemoved(t *testing.T) {
	const resolved = addonv1alpha1.ConditionResolved + " Resolved"
	for sentence, test := range map[string]struct {
		condition string
		mode      upstream.HealthCheckMode
		runs      bool
		want      upstream.HealthCheckMode
	}{
		"of an Instance that is gone":                 {resolved, upstream.HealthCheckModeCustomized, false, ""},
		"not of one that runs":                        {resolved, upstream.HealthCheckModeCustomized, true, upstream.HealthCheckModeCustomized},
		"not of an add-on that never had an Instance": {"Configured A", upstream.HealthCheckModeCustomized, false, upstream.HealthCheckModeCustomized},
		"not of another writer":                       {resolved, upstream.HealthCheckModeLease, false, upstream.HealthCheckModeLease},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := addOnWith(test.condition)
			addOn.Status.HealthCheck.Mode = test.mode
			if got := patch(t, addOn, newRemoval(addOn, test.runs, nil).status).Status.HealthCheck.Mode; got != test.want {
				t.Errorf("the mode is %q, want %q", got, test.want)
			}
		})
	}
}

func TestFinalizersOfAddonManagerAreRemoved(t *testing.T) {
	const foreign, another = "example.com/a", "example.com/b"
	finalizers := []string{addonv1alpha1.FinalizerAgent, foreign, kudo.Finalizer, another}
	for runs, want := range map[bool][]string{false: {foreign, another}, true: {foreign, kudo.Finalizer, another}} {
		addOn := addOnWith()
		addOn.Finalizers = finalizers
		if diff := cmp.Diff(want, patch(t, addOn, newRemoval(addOn, runs, nil).finalizers).Finalizers); diff != "" {
			t.Errorf("an Instance runs: %v; finalizers (-want +got):\n%s", runs, diff)
		}
	}
}

func TestManagedFieldsOfRemovedVersionsAreRemoved(t *testing.T) {
	const old, kept = "addon.open-cluster-management.io/v1beta1", "addon.open-cluster-management.io/v1alpha1"
	entry := func(manager, version string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, APIVersion: version}
	}
	for sentence, test := range map[string]struct {
		versions sets.Set[string]
		want     []string
	}{
		"those of versions that remain stay":         {sets.New(kept), []string{"b", "d"}},
		"all stay if all versions remain":            {sets.New(kept, old), []string{"a", "b", "c", "d"}},
		"all stay if the definition is not Tandem's": {nil, []string{"a", "b", "c", "d"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			addOn := addOnWith()
			addOn.ManagedFields = []metav1.ManagedFieldsEntry{entry("a", old), entry("b", kept), entry("c", old), entry("d", kept)}
			var got []string
			for _, entry := range patch(t, addOn, newRemoval(addOn, true, test.versions).managers).ManagedFields {
				got = append(got, entry.Manager)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("managers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAddOnIsReleasedOnceNothingIsLeft(t *testing.T) {
	verdict := addOnWith(addonv1alpha1.ConditionDegraded + " " + addonv1alpha1.ReasonDependencyNotSatisfied)
	finalized, managed := addOnWith(), addOnWith()
	finalized.Finalizers = []string{addonv1alpha1.FinalizerAgent}
	managed.ManagedFields = []metav1.ManagedFieldsEntry{{APIVersion: "v1beta1"}}
	for sentence, addOn := range map[string]*addonv1alpha1.ManagedClusterAddOn{
		"a verdict": verdict, "a finalizer": finalized, "managed fields": managed,
	} {
		r := newRemoval(addOn, false, sets.New("v1alpha1"))
		if r.isEmpty() {
			t.Errorf("%s is left", sentence)
		}
		released := patch(t, patch(t, patch(t, addOn, r.managers), r.status), r.finalizers)
		if r = newRemoval(released, false, sets.New("v1alpha1")); !r.isEmpty() {
			t.Errorf("%s: %v are left", sentence, r)
		}
	}
}

func TestInstancesThatRunKeepTheirAddOns(t *testing.T) {
	u := &uninstallation{owners: sets.New[types.UID]()}
	owners := func(uid types.UID, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{UID: uid, Controller: ptr.To(controls)}}
	}
	for _, instance := range []*metav1.ObjectMeta{
		{Namespace: "cluster2", Name: "a", OwnerReferences: owners("1", true)},
		{Namespace: "cluster1", Name: "a", OwnerReferences: owners("2", false)},
		{Namespace: "apps", Name: "a", OwnerReferences: owners("3", true), Annotations: map[string]string{kudo.AnnotationHubUID: "4"}},
	} {
		u.addInstance(instance)
	}
	if diff := cmp.Diff([]string{"cluster2/a", "cluster1/a"}, u.instances); diff != "" {
		t.Errorf("Instances (-want +got):\n%s", diff)
	}
	if !u.owners.Equal(sets.New[types.UID]("1")) {
		t.Errorf("the owners are %v, want only the controller of an Instance that is no mirror", u.owners.UnsortedList())
	}
	out := &strings.Builder{}
	u.out = out
	if err := u.nameWhatRuns(t.Context()); err != nil || !strings.Contains(out.String(), "cluster1/a, cluster2/a") {
		t.Errorf("%v, printed %q", err, out)
	}
}
