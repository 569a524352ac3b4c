package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/audit"
)

// bareLoop replays addon-manager's patches from the audit log in the order of their responses: the same bytes to the same URLs, as the same
// user, with the same limits and concurrency. It reads and decides nothing.
type bareLoop struct {
	client      *rest.RESTClient
	concurrency int
}

// newBareLoop returns a bare loop with an open connection, which addon-manager has too when a change arrives.
func newBareLoop(ctx context.Context, identity *rest.Config, limits limits) (*bareLoop, error) {
	config := rest.CopyConfig(identity)
	config.QPS, config.Burst = limits.Rate()
	config.UserAgent = "bare-loop"
	config.APIPath, config.GroupVersion = "/apis", &addonv1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(nil).WithoutConversion()
	c, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting the bare loop: %w", err)
	}
	if _, err := c.Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return nil, fmt.Errorf("connecting the bare loop: %w", err)
	}
	return &bareLoop{client: c, concurrency: limits.Concurrency}, nil
}

// run sends the patches.
func (b *bareLoop) run(ctx context.Context, sent []audit.Entry) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(b.concurrency)
	for i := range sent {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return send(ctx, b.client, &sent[i])
		})
	}
	return group.Wait()
}

func send(ctx context.Context, c *rest.RESTClient, e *audit.Entry) error {
	kind, err := patchType(e)
	if err != nil {
		return fmt.Errorf("sending again %s: %w", e, err)
	}
	if err := c.Patch(kind).RequestURI(e.RequestURI).Body([]byte(e.RequestObject)).Do(ctx).Error(); err != nil {
		return fmt.Errorf("sending again %s: %w", e, err)
	}
	return nil
}

// patchType infers the type of a patch, which the audit log does not record.
func patchType(e *audit.Entry) (types.PatchType, error) {
	address, err := url.Parse(e.RequestURI)
	switch {
	case err != nil:
		return "", err
	case e.Verb != "patch" || len(e.RequestObject) == 0:
		return "", errors.New("it is no patch")
	case bytes.HasPrefix(e.RequestObject, []byte("[")):
		return types.JSONPatchType, nil
	case address.Query().Has("force"): // the API server accepts it for no other type
		return types.ApplyPatchType, nil
	}
	return types.MergePatchType, nil
}
