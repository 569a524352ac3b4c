package plans

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// certificates is the life of what the API server needs to call the webhooks: a user deletes the keys, then what the API server trusts, then
// both, and applies the manifests again.
func certificates() scenario {
	lose := func(objects ...client.Object) func(context.Context, *run) error {
		return func(ctx context.Context, r *run) error {
			for _, o := range objects {
				if err := r.hub.Delete(ctx, o.DeepCopyObject().(client.Object)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	name := metav1.ObjectMeta{Namespace: "tandem-system", Name: addonv1alpha1.ManagerConfigMap}
	keys, trust := &corev1.Secret{ObjectMeta: name}, &corev1.ConfigMap{ObjectMeta: name}
	return scenario{
		name:    "certificates",
		prepare: func(context.Context, *world) error { return nil },
		actions: []action{
			{"keys", lose(keys), expectTrust}, {"trust", lose(trust), expectTrust}, {"both", lose(keys, trust), expectTrust}, {"manifests", distrust, expectTrust},
		},
	}
}

// distrust removes the bundle of one webhook and one resource definition, as a user who replaces them by the manifests does.
func distrust(ctx context.Context, r *run) error {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: manifests.PartOf}}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "managedclusteraddons." + addonv1alpha1.GroupVersion.Group
	return errors.Join(
		environment.Edit(ctx, r.hub, configuration, func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			c.Webhooks[0].ClientConfig.CABundle = nil
		}),
		environment.Edit(ctx, r.hub, definition, func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
		}))
}

// expectTrust returns an error unless all callers of the webhooks have the current bundle, and a write is converted.
func expectTrust(ctx context.Context, r *run) error {
	key := client.ObjectKey{Namespace: "tandem-system", Name: addonv1alpha1.ManagerConfigMap}
	secret, trust := &corev1.Secret{}, &corev1.ConfigMap{}
	if err := errors.Join(r.hub.Get(ctx, key, secret), r.hub.Get(ctx, key, trust)); err != nil {
		return err
	}
	bundles, err := r.bundles(ctx)
	if err != nil {
		return err
	}
	for name, bundle := range bundles {
		if string(bundle) != trust.Data["ca-bundle.crt"] || !bytes.Contains(bundle, bytes.TrimSpace(secret.Data["ca.crt"])) {
			return fmt.Errorf("%s does not have the current bundle", name)
		}
	}
	if len(bundles) != 7 {
		return fmt.Errorf("%d bundles, want those of three resource definitions and four webhooks", len(bundles))
	}
	converted := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	converted.SetAPIVersion(addonv1alpha1.GroupVersion.Group + "/v1beta1")
	converted.SetKind("ManagedClusterAddOn")
	converted.SetNamespace(cluster)
	converted.SetName(r.name)
	return r.hub.Create(ctx, converted, client.DryRunAll)
}

// bundles returns the bundles of all callers of the webhooks.
func (w *world) bundles(ctx context.Context) (map[string][]byte, error) {
	definitions, configuration := &apiextensionsv1.CustomResourceDefinitionList{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := errors.Join(w.hub.List(ctx, definitions), w.hub.Get(ctx, client.ObjectKey{Name: manifests.PartOf}, configuration)); err != nil {
		return nil, err
	}
	bundles := map[string][]byte{}
	for _, d := range definitions.Items {
		if conversion := d.Spec.Conversion; conversion != nil && conversion.Webhook != nil {
			bundles[d.Name] = conversion.Webhook.ClientConfig.CABundle
		}
	}
	for _, webhook := range configuration.Webhooks {
		bundles[webhook.Name] = webhook.ClientConfig.CABundle
	}
	return bundles, nil
}
