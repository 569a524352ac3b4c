package mirror

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
)

// The versions begin the signatures. Another form of the signed content has another version.
const (
	// versionOfContent is the version of signatures that cover the content. An OperatorVersion that is deleted and created again with the same
	// content is the same: it runs only if an Instance refers to it.
	versionOfContent = "v1."
	// versionOfObject is the version of signatures that also cover the uid, which the API server chooses: an Instance that is created again
	// from a copy, such as that of a removed mirror, is not signed.
	versionOfObject = "v2."
)

// maxVerified is the maximum number of OperatorVersions whose verification is remembered.
const maxVerified = 10000

// Signer signs mirrors, and recognizes those that it has signed. Names, annotations and labels of an object prove nothing: anyone
// who may write objects in a namespace may write these. It is safe for concurrent use.
type Signer struct {
	key []byte
	// since is when the key was created. An older mirror without a signature may be that of an agent that did not sign.
	since metav1.Time
	// verified are OperatorVersions with their signatures, and whether these are valid: their content is large, and never changes.
	verified *lru.Cache
	// creating holds the names of the Instances that are being created. They are signed once they have a uid.
	creating sync.Map
}

// NewSigner returns a Signer with a secret key that was created at that time.
func NewSigner(key []byte, since metav1.Time) *Signer {
	return &Signer{key: key, since: since, verified: lru.New(maxVerified)}
}

// signed is the content of a mirror that a signature covers: everything that the engine and the reporter depend on, except for the status.
type signed struct {
	Kind        string            `json:"kind"`
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	UID         types.UID         `json:"uid,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        any               `json:"spec"`
}

const instanceKind = "Instance"

// contentOf returns what a signature covers of an Instance or OperatorVersion; false for other kinds.
func contentOf(o client.Object) (signed, bool) {
	content := signed{Namespace: o.GetNamespace(), Name: o.GetName(), Annotations: map[string]string{}}
	for _, name := range mirror.SignedAnnotations {
		if value, exists := o.GetAnnotations()[name]; exists {
			content.Annotations[name] = value
		}
	}
	switch mirrored := o.(type) {
	case *kudo.Instance:
		content.Kind, content.Spec = instanceKind, &mirrored.Spec
	case *kudo.OperatorVersion:
		content.Kind, content.Spec = "OperatorVersion", &mirrored.Spec
	default:
		return signed{}, false
	}
	return content, true
}

// signatureOf returns the signature that an object would have.
func (s *Signer) signatureOf(o client.Object) (string, error) {
	content, ok := contentOf(o)
	switch {
	case !ok:
		return "", fmt.Errorf("%T is not mirrored", o)
	case content.Kind != instanceKind:
		return s.encode(versionOfContent, content)
	case o.GetUID() == "":
		return "", fmt.Errorf("%s %q has no uid yet", content.Kind, content.Name)
	}
	content.UID = o.GetUID()
	return s.encode(versionOfObject, content)
}

// encode returns the signature of a content.
func (s *Signer) encode(version string, content signed) (string, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("encoding %s %q: %w", content.Kind, content.Name, err)
	}
	mac := hmac.New(sha256.New, s.key)
	mac.Write(encoded)
	return version + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Sign sets the signature of a mirror.
func (s *Signer) Sign(o client.Object) error {
	signature, err := s.signatureOf(o)
	if err != nil {
		return err
	}
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[kudo.AnnotationSignature] = signature
	o.SetAnnotations(annotations)
	return nil
}

// verification identifies a stored OperatorVersion. The API server never gives two of them the same uid and resource version.
type verification struct {
	uid             types.UID
	resourceVersion string
	namespace, name string
}

// IsSigned reports whether the agent has signed exactly this object: its name, spec and annotations and, of an Instance, its uid.
func (s *Signer) IsSigned(o client.Object) bool {
	signature, exists := o.GetAnnotations()[kudo.AnnotationSignature]
	if !exists {
		return false
	}
	if _, large := o.(*kudo.OperatorVersion); !large || o.GetResourceVersion() == "" {
		return s.matches(o, signature)
	}
	of := verification{uid: o.GetUID(), resourceVersion: o.GetResourceVersion(), namespace: o.GetNamespace(), name: o.GetName()}
	if valid, known := s.verified.Get(of); known {
		return valid.(bool)
	}
	valid := s.matches(o, signature)
	s.verified.Add(of, valid)
	return valid
}

func (s *Signer) matches(o client.Object, signature string) bool {
	want, err := s.signatureOf(o)
	return err == nil && hmac.Equal([]byte(want), []byte(signature))
}

// ProofOf returns what the signature and the age of an object prove.
func (s *Signer) ProofOf(o client.Object) mirror.Proof {
	signed := s.IsSigned(o)
	return mirror.Proof{Signed: signed, Older: s.isOlder(o), Former: !signed && s.hasFormerSignature(o)}
}

// Predates reports whether a mirror may have been signed by an agent of another release, or not at all: its signature does not cover the uid,
// or it is older than the key, which may have been lost. It is ignored until the hub confirms it.
func (s *Signer) Predates(o client.Object) bool { return s.ProofOf(o).Predates() }

// isOlder reports whether a mirror is older than the key. The API server sets both times.
func (s *Signer) isOlder(o client.Object) bool {
	created := o.GetCreationTimestamp()
	return kudo.IsMirror(o) && !created.IsZero() && created.Before(&s.since)
}

// hasFormerSignature reports whether an agent that did not sign uids has signed this Instance.
func (s *Signer) hasFormerSignature(o client.Object) bool {
	content, ok := contentOf(o)
	signature, exists := o.GetAnnotations()[kudo.AnnotationSignature]
	if !ok || !exists || content.Kind != instanceKind {
		return false
	}
	want, err := s.encode(versionOfContent, content)
	return err == nil && hmac.Equal([]byte(want), []byte(signature))
}

// creates notes that an Instance is being created, until done is called.
func (s *Signer) creates(name types.NamespacedName) (done func()) {
	s.creating.Store(name, nil)
	return func() { s.creating.Delete(name) }
}

// IsCreating reports whether an Instance of that name is being created: it is signed in a moment.
func (s *Signer) IsCreating(name types.NamespacedName) bool {
	_, is := s.creating.Load(name)
	return is
}
