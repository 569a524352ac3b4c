package uninstall

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// version describes a version of a definition.
type version struct {
	name           string
	served, stored bool
}

func definition(strategy apiextensionsv1.ConversionStrategyType, versions ...version) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Spec.Group = "example.com"
	if strategy != "" {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: strategy}
	}
	for _, v := range versions {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.name, Served: v.served, Storage: v.stored})
	}
	return d
}

func TestADefinitionIsReducedToItsStorageVersion(t *testing.T) {
	const byWebhook, none = apiextensionsv1.WebhookConverter, apiextensionsv1.NoneConverter
	old, stored, next := version{"v1alpha1", true, false}, version{"v1beta1", true, true}, version{"v1", true, false}
	retired := version{"v1alpha1", false, false}
	for sentence, test := range map[string]struct {
		definition        *apiextensionsv1.CustomResourceDefinition
		want              []string // the versions that remain
		strategy          apiextensionsv1.ConversionStrategyType
		from, convertedTo string
	}{
		"with conversion by a webhook":             {definition(byWebhook, old, stored), []string{"v1beta1"}, none, "v1beta1", "v1alpha1"},
		"wherever the storage version is":          {definition(byWebhook, stored, old, next), []string{"v1beta1"}, none, "v1beta1", "v1"},
		"between others":                           {definition(byWebhook, old, stored, next), []string{"v1beta1"}, none, "v1beta1", "v1"},
		"also if the others are not served":        {definition(byWebhook, retired, stored), []string{"v1beta1"}, none, "v1beta1", ""},
		"also if it is the only one":               {definition(byWebhook, stored), []string{"v1beta1"}, none, "v1beta1", ""},
		"not without a webhook":                    {definition(none, old, stored), []string{"v1alpha1", "v1beta1"}, none, "v1beta1", ""},
		"not without a strategy, which means None": {definition("", old, stored), []string{"v1alpha1", "v1beta1"}, "", "v1beta1", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			reduced := patch(t, test.definition, withoutConversion(test.definition))
			var got []string
			remaining := sets.New[string]()
			for _, v := range reduced.Spec.Versions {
				got = append(got, v.Name)
				remaining.Insert("example.com/" + v.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if c := ptr.Deref(reduced.Spec.Conversion, apiextensionsv1.CustomResourceConversion{}); c.Strategy != test.strategy {
				t.Errorf("the strategy is %q, want %q", c.Strategy, test.strategy)
			}
			for when, d := range map[string]*apiextensionsv1.CustomResourceDefinition{"before": test.definition, "after": reduced} {
				if versions := remainingVersions(d); !versions.Equal(remaining) {
					t.Errorf("%s: %v are said to remain, want %v", when, sets.List(versions), sets.List(remaining))
				}
			}
			if from, to := versionsOf(test.definition); from != test.from || to != test.convertedTo {
				t.Errorf("objects are stored as %q and converted to %q, want %q and %q", from, to, test.from, test.convertedTo)
			}
			if _, to := versionsOf(reduced); to != "" {
				t.Errorf("objects are still converted to %q", to)
			}
		})
	}
}

func TestBindingsAreRemovedFirst(t *testing.T) {
	object := func(kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": name}}}
	}
	var got []string
	for _, o := range bindingsFirst([]*unstructured.Unstructured{
		object("ValidatingAdmissionPolicy", "a"), object("ValidatingAdmissionPolicyBinding", "a"),
		object("ValidatingWebhookConfiguration", "b"), object("MutatingAdmissionPolicyBinding", "c"), object("MutatingAdmissionPolicy", "c"),
	}) {
		got = append(got, o.GetKind()+" "+o.GetName())
	}
	want := []string{
		"ValidatingAdmissionPolicyBinding a", "MutatingAdmissionPolicyBinding c",
		"ValidatingAdmissionPolicy a", "ValidatingWebhookConfiguration b", "MutatingAdmissionPolicy c",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestALeaseIsHeldUntilItExpires(t *testing.T) {
	renewed := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for sentence, test := range map[string]struct {
		lease  coordinationv1.LeaseSpec
		holder string
		until  time.Time
	}{
		"for its duration after the renewal": {
			coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To[int32](15)},
			"a", renewed.Add(15 * time.Second),
		},
		"not if it was released": {
			coordinationv1.LeaseSpec{HolderIdentity: ptr.To(""), RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To[int32](1)},
			"", time.Time{},
		},
		"not if it was never renewed": {coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), LeaseDurationSeconds: ptr.To[int32](15)}, "", time.Time{}},
		"not without a duration": {
			coordinationv1.LeaseSpec{HolderIdentity: ptr.To("a"), RenewTime: &metav1.MicroTime{Time: renewed}}, "a", renewed,
		},
		"not if it is empty": {},
	} {
		t.Run(sentence, func(t *testing.T) {
			holder, until := holderOf(&coordinationv1.Lease{Spec: test.lease})
			if holder != test.holder || !until.Equal(test.until) {
				t.Errorf("%q holds it until %v, want %q until %v", holder, until, test.holder, test.until)
			}
		})
	}
}

func TestAnAddOnWithFieldsInAnotherVersionNeedsConversion(t *testing.T) {
	const stored = "addon.open-cluster-management.io/v1alpha1"
	for sentence, test := range map[string]struct {
		versions []string
		want     bool
	}{
		"none":           {nil, false},
		"the stored one": {[]string{stored, stored}, false},
		"another one":    {[]string{stored, "addon.open-cluster-management.io/v1beta1"}, true},
	} {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		for _, v := range test.versions {
			addOn.ManagedFields = append(addOn.ManagedFields, metav1.ManagedFieldsEntry{APIVersion: v})
		}
		if got := needsConversion(addOn); got != test.want {
			t.Errorf("%s: %v, want %v", sentence, got, test.want)
		}
	}
}
