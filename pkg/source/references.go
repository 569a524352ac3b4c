package source

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/signature/keyless"
	"github.com/tandem-addons/tandem/pkg/core/sourcing"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// secrets are what the Secret of a source contains.
type secrets struct {
	credentials oci.Credentials
	authorities []byte
}

// readSecret returns the content of the Secret that a source names. It is read each time, and never stored. Only the host of the source gets credentials.
func readSecret(ctx context.Context, live client.Reader, source *kudo.PackageSource, hosts sourcing.Hosts) (secrets, error) {
	if source.Spec.PullSecret == nil {
		return secrets{credentials: oci.NoCredentials()}, nil
	}
	name := source.Spec.PullSecret.Name
	secret := &corev1.Secret{}
	if err := live.Get(ctx, types.NamespacedName{Namespace: source.Namespace, Name: name}, secret); err != nil {
		return secrets{}, referenceFailure("Secret", name, "spec.pullSecret", err)
	}
	found, err := credentialsIn(secret)
	if err != nil {
		return secrets{}, sourcing.Failed(kudo.ReasonReferenceNotFound, fmt.Errorf("reading Secret %q of spec.pullSecret: %w", name, err))
	}
	return secrets{credentials: found.Only(hosts.IsOwn), authorities: secret.Data[corev1.ServiceAccountRootCAKey]}, nil
}

// referenceFailure returns the error of an object that a source names and that cannot be read.
func referenceFailure(kind, name, field string, err error) error {
	err = fmt.Errorf("reading %s %q of %s: %w", kind, name, field, err)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return sourcing.Failed(kudo.ReasonReferenceNotFound, err)
	}
	return sourcing.Failed(kudo.ReasonStoreFailed, err)
}

// credentialsIn returns the credentials in a Secret.
func credentialsIn(secret *corev1.Secret) (oci.Credentials, error) {
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		found, err := oci.DockerCredentials(secret.Data[corev1.DockerConfigJsonKey])
		if err != nil {
			return found, fmt.Errorf("key %s: %w", corev1.DockerConfigJsonKey, err)
		}
		return found, nil
	case corev1.SecretTypeBasicAuth:
		var hosts []string
		for host := range strings.SplitSeq(secret.Annotations[kudo.AnnotationHosts], ",") {
			if host = strings.TrimSpace(host); host != "" {
				hosts = append(hosts, sourcing.ServersOf(host)...)
			}
		}
		if len(hosts) == 0 {
			return oci.Credentials{}, fmt.Errorf("annotation %s is missing: it lists the hosts that get the password", kudo.AnnotationHosts)
		}
		return oci.PasswordCredentials(hosts, string(secret.Data[corev1.BasicAuthUsernameKey]), string(secret.Data[corev1.BasicAuthPasswordKey])), nil
	case corev1.SecretTypeOpaque:
		if len(secret.Data) == 1 && len(secret.Data[corev1.ServiceAccountRootCAKey]) > 0 { // authorities without credentials
			return oci.NoCredentials(), nil
		}
	}
	return oci.Credentials{}, fmt.Errorf("its type is %s, not %s or %s", text.Quote(string(secret.Type)), corev1.SecretTypeDockerConfigJson, corev1.SecretTypeBasicAuth)
}

// signers are those of whom one must have signed a package.
type signers struct {
	signature.Trust
	each []signer
	// problems are what is wrong with entries, beside those that are valid.
	problems []string
}

// signer is one of them: a public key, or all identities. The ID of identities changes with them and with the trust root.
type signer struct {
	id string
	signature.Trust
}

// readSigners returns who may have signed the package; none if it need not be signed.
func readSigners(ctx context.Context, live client.Reader, source *kudo.PackageSource) (signers, error) {
	if source.Spec.Verify == nil {
		return signers{}, nil
	}
	name := source.Spec.Verify.Keys.Name
	config := &corev1.ConfigMap{}
	if err := live.Get(ctx, types.NamespacedName{Namespace: source.Namespace, Name: name}, config); err != nil {
		return signers{}, referenceFailure("ConfigMap", name, "spec.verify.keys", err)
	}
	trust, problems := keyless.ParseEntries(config.Data)
	if trust.IsEmpty() { // a mistake in one entry does not invalidate the others
		return signers{}, sourcing.Failed(kudo.ReasonReferenceNotFound, fmt.Errorf("reading ConfigMap %q of spec.verify.keys: %s", name,
			strings.Join(append(problems, "it contains no public key and no identity"), "; ")))
	}
	found := signers{Trust: trust, problems: problems}
	for _, key := range trust.Keys {
		found.each = append(found.each, signer{id: key.ID(), Trust: signature.Trust{Keys: []signature.Key{key}}})
	}
	if trust.Identities != nil {
		digest := content.DigestOf([]byte(config.Data[keyless.RootEntry] + "\n" + config.Data[keyless.IdentitiesEntry]))
		found.each = append(found.each, signer{id: keyless.IdentitiesEntry + " " + digest, Trust: signature.Trust{Identities: trust.Identities}})
	}
	return found, nil
}
