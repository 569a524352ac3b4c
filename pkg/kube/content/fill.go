package content

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// NewFillingReader returns a reader that adds the templates that are in its content to each OperatorVersion, if its user may read the content and it is
// complete. Otherwise these templates are missing: what depends on them is unknown.
func NewFillingReader(c client.Reader) client.Reader { return fillingReader{Reader: c} }

type fillingReader struct{ client.Reader }

// Get reads an object.
func (r fillingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, object, options...)
	version, ok := object.(*kudo.OperatorVersion)
	if err != nil || !ok {
		return err
	}
	if filled, err := Fill(ctx, r.Reader, version); err == nil {
		*version = *filled
	}
	return nil
}
