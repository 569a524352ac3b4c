package webhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// caBundles updates the CA bundle of the webhook server in all of Tandem's objects that call it: the field caBundle of resource definitions
// and webhook configurations, and no other field. The cache only holds Tandem's objects, so those of a stock OCM are never touched. Only
// the leader does this.
type caBundles struct {
	client    client.Client
	namespace string
}

func (b *caBundles) SetUp(mgr manager.Manager) error {
	// They are few, and all get the same bundle: one pass checks all of them.
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: b.key()}}
	})
	return controller.New(mgr, "ca-bundle", controller.Options{}).
		Watches(&corev1.ConfigMap{}, all).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, all).
		Watches(&admissionregistrationv1.ValidatingWebhookConfiguration{}, all).
		Complete(b)
}

func (b *caBundles) key() types.NamespacedName {
	return types.NamespacedName{Namespace: b.namespace, Name: certificatesName}
}

// Reconcile updates the bundle where it differs.
func (b *caBundles) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var trust corev1.ConfigMap
	if err := b.client.Get(ctx, b.key(), &trust); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading ConfigMap %s: %w", b.key(), err))
	}
	bundle := []byte(trust.Data[trustKey])
	if !x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return ctrl.Result{}, nil // the certificates controller is about to repair it
	}
	stale, err := b.stale(ctx, bundle)
	if err != nil {
		return ctrl.Result{}, err
	}
	var failed []error
	for _, s := range stale {
		err := apply.Patch(ctx, b.client, s.object, s.mend, client.FieldOwner(ManagerCertificates))
		if err == nil {
			log.FromContext(ctx).Info("updated the CA bundle of the clients of the webhook server",
				"type", fmt.Sprintf("%T", s.object), "name", s.object.GetName())
		}
		failed = append(failed, err)
	}
	return controller.RetryConflict(errors.Join(failed...))
}

// staleObject is an object with a stale bundle.
type staleObject struct {
	object client.Object
	mend   []apply.Operation
}

func (b *caBundles) stale(ctx context.Context, bundle []byte) ([]staleObject, error) {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := b.client.List(ctx, &definitions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	var configurations admissionregistrationv1.ValidatingWebhookConfigurationList
	if err := b.client.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ValidatingWebhookConfigurations: %w", err)
	}
	var stale []staleObject
	for i := range definitions.Items {
		if mend := mendDefinition(&definitions.Items[i], bundle); len(mend) > 0 {
			stale = append(stale, staleObject{&definitions.Items[i], mend})
		}
	}
	for i := range configurations.Items {
		if mend := mendConfiguration(&configurations.Items[i], bundle); len(mend) > 0 {
			stale = append(stale, staleObject{&configurations.Items[i], mend})
		}
	}
	return stale, nil
}

func mendDefinition(definition *apiextensionsv1.CustomResourceDefinition, bundle []byte) []apply.Operation {
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil ||
		bytes.Equal(conversion.Webhook.ClientConfig.CABundle, bundle) {
		return nil
	}
	return []apply.Operation{{Op: "add", Path: "/spec/conversion/webhook/clientConfig/caBundle", Value: bundle}}
}

func mendConfiguration(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, bundle []byte) []apply.Operation {
	var mend []apply.Operation
	for i, webhook := range configuration.Webhooks {
		if bytes.Equal(webhook.ClientConfig.CABundle, bundle) {
			continue
		}
		path := fmt.Sprintf("/webhooks/%d", i)
		mend = append(mend,
			apply.Operation{Op: "test", Path: path + "/name", Value: webhook.Name},
			apply.Operation{Op: "add", Path: path + "/clientConfig/caBundle", Value: bundle})
	}
	return mend
}

// conversionOnly reduces a resource definition to its conversion before it is cached: most of its size is the schemas.
func conversionOnly(object any) (any, error) {
	if definition, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
		definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{Conversion: definition.Spec.Conversion}
		definition.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	return read.Trim(object)
}
