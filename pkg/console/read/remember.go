package read

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// NewCachingReader returns a reader that reads each OperatorVersion once: many Instances run the same one, it is immutable, and it may be
// large. The reader is not safe for concurrent use.
func NewCachingReader(c client.Reader) client.Reader {
	return cachingReader{Reader: c, versions: map[client.ObjectKey]*kudo.OperatorVersion{}}
}

type cachingReader struct {
	client.Reader
	versions map[client.ObjectKey]*kudo.OperatorVersion
}

// Get reads an object.
func (r cachingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	version, ok := object.(*kudo.OperatorVersion)
	if !ok {
		return r.Reader.Get(ctx, key, object, options...)
	}
	if known := r.versions[key]; known != nil {
		known.DeepCopyInto(version)
		return nil
	}
	err := r.Reader.Get(ctx, key, version, options...)
	if err == nil {
		r.versions[key] = version.DeepCopy()
	}
	return err
}
