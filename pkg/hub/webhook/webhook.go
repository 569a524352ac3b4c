// Package webhook serves what API servers ask addon-manager: conversions of the add-on API and admission of writes, with certificates that it
// renews. It reads the hub, and writes certificates and what trusts them.
package webhook

import (
	"cmp"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/controller"
)

// How long the certificates are valid unless Options say otherwise.
const (
	DefaultAuthorityValidity   = 365 * 24 * time.Hour
	DefaultCertificateValidity = 30 * 24 * time.Hour
)

// Options say how webhooks are served.
type Options struct {
	// Address is HOST:PORT; empty or "0" serves none.
	Address string
	// Hosts are the DNS names and IPs by which API servers call the webhooks.
	Hosts []string
	// Namespace is where the certificates are kept.
	Namespace string
	// CertificateValidity and AuthorityValidity are how long the certificate and the authority that signs it are valid: the defaults if
	// zero. They are renewed at two thirds of that.
	CertificateValidity, AuthorityValidity time.Duration
	// PackagesNamespace is where OperatorVersions for all clusters stand.
	PackagesNamespace string
	// Version of the program, for `kubectl addon version`.
	Version string
}

// serves reports whether there is an address to serve webhooks at.
func (o Options) serves() bool { return o.Address != "" && o.Address != "0" }

// Controllers is what serving webhooks takes; nothing where they are not served.
func Controllers(mgr manager.Manager, options Options) []controller.Runner {
	if !options.serves() {
		mgr.GetLogger().Info("this process serves no webhooks: unless another one does, " +
			"the add-on API can be used in v1alpha1 only, and writes are not checked before they are stored")
		return nil
	}
	return []controller.Runner{
		&certificates{client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: options.Namespace, version: options.Version, terms: certificateTerms{
			hosts:     options.Hosts,
			authority: cmp.Or(options.AuthorityValidity, DefaultAuthorityValidity),
			serving:   cmp.Or(options.CertificateValidity, DefaultCertificateValidity),
		}},
		&caBundles{client: mgr.GetClient(), namespace: options.Namespace},
		&server{client: mgr.GetClient(), address: options.Address, packagesNamespace: options.PackagesNamespace},
	}
}

// Cache limits what the cache holds of the kinds that serving webhooks is about: the one Secret and the one ConfigMap, and
// of what calls the webhooks Tandem's own.
func Cache(namespace string) map[client.Object]cache.ByObject {
	named := cache.ByObject{Namespaces: map[string]cache.Config{
		namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", certificatesName)},
	}}
	ours := labels.SelectorFromSet(labels.Set{manifests.LabelPartOf: manifests.PartOf})
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:                                          named,
		&corev1.ConfigMap{}:                                       named,
		&apiextensionsv1.CustomResourceDefinition{}:               {Label: ours, Transform: conversionOnly},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Label: ours},
	}
}
