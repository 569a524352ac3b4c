package webhook

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	addonv1beta1 "github.com/tandem-addons/tandem/pkg/api/addon/v1beta1"
)

// converter converts the add-on API between v1alpha1, which is stored, and v1beta1, for the API server. Its scheme registers the kinds as
// unstructured objects, so that unset fields stay unset.
func converter() (http.Handler, error) {
	scheme, registry := runtime.NewScheme(), conversion.NewRegistry()
	known := func(version schema.GroupVersion, kind string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(version.WithKind(kind))
		scheme.AddKnownTypeWithName(version.WithKind(kind), object)
		return object
	}
	for _, kind := range addonv1beta1.Kinds() {
		stored, served := known(addonv1alpha1.GroupVersion, kind), known(addonv1beta1.GroupVersion, kind)
		of, err := conversion.NewHubSpokeConverter(stored, conversion.NewSpokeConverter(served,
			into(addonv1beta1.FromV1alpha1), into(addonv1beta1.ToV1alpha1)))(scheme)
		if err != nil {
			return nil, fmt.Errorf("preparing the conversion of %ss: %w", kind, err)
		}
		if err := registry.RegisterConverter(stored.GroupVersionKind().GroupKind(), of); err != nil {
			return nil, fmt.Errorf("preparing the conversion of %ss: %w", kind, err)
		}
	}
	return conversion.NewWebhookHandler(scheme, registry), nil
}

// into returns a conversion that fills the given object.
func into(
	convert func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) func(_ context.Context, from, to *unstructured.Unstructured) error {
	return func(_ context.Context, from, to *unstructured.Unstructured) error {
		converted, err := convert(from)
		if err != nil {
			return err
		}
		to.Object = converted.Object
		return nil
	}
}
