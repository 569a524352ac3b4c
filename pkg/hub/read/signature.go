package read

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/signature/keyless"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Signatures verifies the signatures of OperatorVersions with the keys and identities in a ConfigMap. It remembers the results, because thousands of Instances may run
// the same OperatorVersion. It is safe for concurrent use.
type Signatures struct {
	reader   client.Reader // of the ConfigMap
	keys     types.NamespacedName
	trusted  *lru.Cache // what the last version of the ConfigMap trusts
	verified *lru.Cache
}

// NewSignatures returns a verifier with the keys and identities in the ConfigMap of that name.
func NewSignatures(reader client.Reader, keys types.NamespacedName) *Signatures {
	return &Signatures{reader: reader, keys: keys, trusted: lru.New(1), verified: lru.New(verificationLimit)}
}

// verifiedSignature identifies a verification. The spec of an OperatorVersion is immutable; its annotation and the ConfigMap are not.
type verifiedSignature struct {
	uid        types.UID
	annotation [sha256.Size]byte // its digest: it may be large
	keys       string
}

// signatureVerdict is the result of a verification.
type signatureVerdict struct {
	problem string // empty if there is a signature
	keyless bool   // whether a signature without a key does not count because no identity is trusted
}

// signers is what the ConfigMap trusts, with an identity of its version, and what is wrong with it.
type signers struct {
	signature.Trust
	id, problem string
}

// Unsigned returns the OperatorVersions that lack a signature, of an Instance and of its child operators.
func (s *Signatures) Unsigned(ctx context.Context, state install.Instance) ([]install.UnsignedVersion, error) {
	if state.Version == nil {
		return nil, nil
	}
	trusted, err := s.readSigners(ctx)
	if err != nil {
		return nil, err
	}
	versions := []*kudo.OperatorVersion{state.Version}
	if state.Tree != nil {
		for _, child := range state.Tree.Descendants(state.Instance.Name) {
			versions = append(versions, child.Version)
		}
	}
	var unsigned []install.UnsignedVersion
	met := map[types.UID]bool{}
	for _, version := range versions {
		if met[version.UID] {
			continue
		}
		met[version.UID] = true
		if verdict := s.verdictOf(version, trusted); verdict.problem != "" {
			unsigned = append(unsigned, install.UnsignedVersion{
				Name: client.ObjectKeyFromObject(version), Reason: verdict.problem, IsKeyless: verdict.keyless,
				Keys: s.keys, HasKeys: !trusted.IsEmpty(), KeysProblem: trusted.problem,
			})
		}
	}
	return unsigned, nil
}

// verdictOf verifies the signatures of an OperatorVersion.
func (s *Signatures) verdictOf(version *kudo.OperatorVersion, trusted signers) signatureVerdict {
	of := verifiedSignature{uid: version.UID, annotation: sha256.Sum256([]byte(version.Annotations[kudo.AnnotationSignatures])), keys: trusted.id}
	if known, is := s.verified.Get(of); is {
		return known.(signatureVerdict)
	}
	verdict := signatureVerdict{}
	if err := signature.VerifyVersion(version, trusted.Trust); err != nil {
		verdict = signatureVerdict{err.Error(), errors.Is(err, signature.ErrKeyless)}
	}
	s.verified.Add(of, verdict)
	return verdict
}

// readSigners returns what the ConfigMap trusts. Entries that are invalid count as absent, so that a mistake in one does not keep packages with other
// keys from running.
func (s *Signatures) readSigners(ctx context.Context) (signers, error) {
	config := &corev1.ConfigMap{}
	if err := s.reader.Get(ctx, s.keys, config); client.IgnoreNotFound(err) != nil {
		return signers{}, fmt.Errorf("reading ConfigMap %s: %w", s.keys, err)
	} else if err != nil {
		return signers{problem: "it does not exist"}, nil
	}
	id := string(config.UID) + "/" + config.ResourceVersion
	if known, is := s.trusted.Get(id); is {
		return known.(signers), nil
	}
	trust, problems := keyless.ParseEntries(config.Data)
	found := signers{Trust: trust, id: id, problem: strings.Join(text.Limit(problems, maxKeyProblems, "more entries"), "; ")}
	s.trusted.Add(id, found)
	return found, nil
}

// maxKeyProblems is the number of wrong entries of the ConfigMap that a message names.
const maxKeyProblems = 3

// ViewSignatures returns what the hub reads of the annotations of an OperatorVersion.
func ViewSignatures(version *kudo.OperatorVersion) string {
	return version.Annotations[kudo.AnnotationSignatures]
}
