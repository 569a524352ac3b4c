package read

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Signatures verifies the signatures of OperatorVersions with the keys in a ConfigMap. It remembers the results, because thousands of Instances may run
// the same OperatorVersion. It is safe for concurrent use.
type Signatures struct {
	reader   client.Reader // of the ConfigMap
	keys     types.NamespacedName
	verified *lru.Cache
}

// NewSignatures returns a verifier with the keys in the ConfigMap of that name.
func NewSignatures(reader client.Reader, keys types.NamespacedName) *Signatures {
	return &Signatures{reader: reader, keys: keys, verified: lru.New(verificationLimit)}
}

// verifiedSignature identifies a verification. The spec of an OperatorVersion is immutable; its annotation and the ConfigMap are not.
type verifiedSignature struct {
	uid        types.UID
	annotation [sha256.Size]byte // its digest: it may be large
	keys       string
}

// Unsigned returns the OperatorVersions that lack a signature, of an Instance and of its child operators.
func (s *Signatures) Unsigned(ctx context.Context, state install.Instance) ([]install.UnsignedVersion, error) {
	if state.Version == nil {
		return nil, nil
	}
	keys, id, problem, err := s.readKeys(ctx)
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
		if why := s.problemOf(version, keys, id); why != "" {
			unsigned = append(unsigned, install.UnsignedVersion{
				Name: client.ObjectKeyFromObject(version), Reason: why, Keys: s.keys, HasKeys: len(keys) > 0, KeysProblem: problem,
			})
		}
	}
	return unsigned, nil
}

// problemOf returns why an OperatorVersion has no signature by one of the keys; empty if it has one.
func (s *Signatures) problemOf(version *kudo.OperatorVersion, keys []signature.Key, id string) string {
	of := verifiedSignature{uid: version.UID, annotation: sha256.Sum256([]byte(version.Annotations[kudo.AnnotationSignatures])), keys: id}
	if known, is := s.verified.Get(of); is {
		return known.(string)
	}
	why := ""
	if err := signature.VerifyVersion(version, keys); err != nil {
		why = err.Error()
	}
	s.verified.Add(of, why)
	return why
}

// readKeys returns the keys, an identity of the object that holds them, and what is wrong with it. Entries that are no keys count as absent, so that a
// mistake in one does not keep packages with other keys from running.
func (s *Signatures) readKeys(ctx context.Context) (keys []signature.Key, id, problem string, err error) {
	config := &corev1.ConfigMap{}
	if err := s.reader.Get(ctx, s.keys, config); client.IgnoreNotFound(err) != nil {
		return nil, "", "", fmt.Errorf("reading ConfigMap %s: %w", s.keys, err)
	} else if err != nil {
		return nil, "", "it does not exist", nil
	}
	var problems []string
	for name, data := range config.Data {
		found, err := signature.ParseKeys(name, []byte(data))
		if err != nil {
			problems = append(problems, err.Error())
		}
		keys = append(keys, found...)
	}
	if len(problems) > 0 {
		slices.Sort(problems)
		problem = strings.Join(text.Limit(problems, maxKeyProblems, "more entries"), "; ")
	}
	return keys, string(config.UID) + "/" + config.ResourceVersion, problem, nil
}

// maxKeyProblems is the number of wrong entries of the ConfigMap that a message names.
const maxKeyProblems = 3

// ViewSignatures returns what the hub reads of the annotations of an OperatorVersion.
func ViewSignatures(version *kudo.OperatorVersion) string {
	return version.Annotations[kudo.AnnotationSignatures]
}
