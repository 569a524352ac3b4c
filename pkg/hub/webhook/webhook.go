// Package webhook serves the webhooks of addon-manager: conversion of the add-on API and admission of writes, with certificates that it
// renews. It reads the hub, and writes certificates and the objects that trust them.
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
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// The default validity of certificates.
const (
	DefaultAuthorityValidity   = 365 * 24 * time.Hour
	DefaultCertificateValidity = 30 * 24 * time.Hour
)

// Options configure the webhook server.
type Options struct {
	// Address is HOST:PORT; empty or "0" disables the server.
	Address string
	// Hosts are the DNS names and IP addresses at which API servers call the webhooks.
	Hosts []string
	// Callers are the clients that may call the admission webhooks.
	Callers Callers
	// Namespace is the namespace of the certificates.
	Namespace string
	// CertificateValidity and AuthorityValidity are the validity of the certificate and of the signing authority: the defaults if zero.
	// They are renewed at two thirds of their validity.
	CertificateValidity, AuthorityValidity time.Duration
	// Namespaces are those for all clusters.
	Namespaces install.Namespaces
	// Reserved are the namespaces of managed clusters in which nothing is installed.
	Reserved []string
	// Version of the program, shown by `kubectl addon version`.
	Version string
}

// serves reports whether the webhook server is enabled.
func (o Options) serves() bool { return o.Address != "" && o.Address != "0" }

// Controllers returns the controllers of the webhook server; none if it is disabled.
func Controllers(mgr manager.Manager, options Options) []controller.Runner {
	if !options.serves() {
		mgr.GetLogger().Info("this process serves no webhooks: unless another process does, " +
			"the add-on API is available in v1alpha1 only, and writes are stored without validation")
		return nil
	}
	return []controller.Runner{
		&certificates{client: mgr.GetClient(), live: mgr.GetAPIReader(), namespace: options.Namespace, version: options.Version, terms: certificateTerms{
			hosts:     options.Hosts,
			authority: cmp.Or(options.AuthorityValidity, DefaultAuthorityValidity),
			serving:   cmp.Or(options.CertificateValidity, DefaultCertificateValidity),
		}},
		&caBundles{client: mgr.GetClient(), namespace: options.Namespace},
		&server{
			client: mgr.GetClient(), address: options.Address, callers: options.Callers,
			namespaces: options.Namespaces, reserved: options.Reserved,
		},
	}
}

// Cache limits the cache for the kinds of the webhook server: to its Secret and its ConfigMap, and to Tandem's own objects that call the
// webhooks. Of other ConfigMaps, it has those with parameters of add-ons, except in the webhook server's own namespace.
func Cache(namespace string) map[client.Object]cache.ByObject {
	named := cache.Config{FieldSelector: fields.OneTermEqualSelector("metadata.name", certificatesName)}
	configurations := cache.Config{LabelSelector: labels.SelectorFromSet(labels.Set{kudo.LabelConfiguration: "true"})}
	ours := labels.SelectorFromSet(labels.Set{manifests.LabelPartOf: manifests.PartOf})
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}:                                          {Namespaces: map[string]cache.Config{namespace: named}},
		&corev1.ConfigMap{}:                                       {Namespaces: map[string]cache.Config{namespace: named, cache.AllNamespaces: configurations}},
		&apiextensionsv1.CustomResourceDefinition{}:               {Label: ours, Transform: conversionOnly},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Label: ours},
	}
}
