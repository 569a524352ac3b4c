package content

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// maxVerified is the number of OperatorContents whose verification is remembered. Others are read again.
const maxVerified = 4096

// Metadata returns an OperatorContent for reading metadata only, as caches hold it.
func Metadata() *metav1.PartialObjectMetadata {
	part := &metav1.PartialObjectMetadata{}
	part.SetGroupVersionKind(kudo.GroupVersion.WithKind("OperatorContent"))
	return part
}

// Verifier verifies OperatorContents. It reads each once, and remembers the result, but no data. It reads one at a time, which bounds its memory.
// It is safe for concurrent use.
type Verifier struct {
	metadata, live client.Reader
	verified       *lru.Cache
	turn           sync.Mutex
}

// verification identifies a stored OperatorContent and what it should be. The API server never gives two objects the same uid and resource
// version.
type verification struct {
	uid                     types.UID
	resourceVersion, digest string
}

// NewVerifier returns a Verifier that reads metadata from a cache, and data live.
func NewVerifier(metadata, live client.Reader) *Verifier {
	return &Verifier{metadata: metadata, live: live, verified: lru.New(maxVerified)}
}

// Verify returns the metadata of the OperatorContent that stores a part of an OperatorVersion. It returns a *content.Error if it is missing or
// altered; with the metadata, if there is one.
func (v *Verifier) Verify(
	ctx context.Context, version *kudo.OperatorVersion, file kudo.ContentFile, part int,
) (*metav1.PartialObjectMetadata, error) {
	found, key := Metadata(), types.NamespacedName{Namespace: version.Namespace, Name: content.Name(version.Name, file.Parts[part])}
	err := v.metadata.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, &content.Error{Namespace: version.Namespace, File: file, Part: part}
	}
	if err != nil {
		return nil, fmt.Errorf("reading OperatorContent %q: %w", key.Name, err)
	}
	of := verification{uid: found.UID, resourceVersion: found.ResourceVersion, digest: file.Parts[part]}
	v.turn.Lock()
	defer v.turn.Unlock()
	if problem, known := v.verified.Get(of); known {
		return found, problemOf(problem, version.Namespace, file, part)
	}
	_, err = Part(ctx, v.live, client.ObjectKeyFromObject(version), file, part)
	var problem *content.Error
	if err != nil && !errors.As(err, &problem) {
		return nil, err
	}
	if problem == nil || problem.Found != "" || problem.Cause != nil { // one that is missing is on its way out of the cache
		v.verified.Add(of, problem)
	}
	return found, problemOf(problem, version.Namespace, file, part)
}

// problemOf returns a remembered problem, which may be that of an equal part of another file, as an error about this one.
func problemOf(remembered any, namespace string, file kudo.ContentFile, part int) error {
	problem, _ := remembered.(*content.Error)
	if problem == nil {
		return nil
	}
	return &content.Error{Namespace: namespace, File: file, Part: part, Found: problem.Found, Cause: problem.Cause}
}

// Problems returns the parts of an OperatorVersion that are missing or altered.
func (v *Verifier) Problems(ctx context.Context, version *kudo.OperatorVersion) ([]*content.Error, error) {
	var problems []*content.Error
	for _, file := range version.Spec.Content {
		for part := range file.Parts {
			_, err := v.Verify(ctx, version, file, part)
			var problem *content.Error
			switch {
			case errors.As(err, &problem):
				problems = append(problems, problem)
			case err != nil:
				return nil, err
			}
		}
	}
	return problems, nil
}
