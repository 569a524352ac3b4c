package hubclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tandem-addons/tandem/pkg/console/read"
)

// lister returns the list request for a page of objects of a kind, in one namespace or in all.
type lister func(namespace, page string) *rest.Request

// Lists returns a lister of the kind's objects.
func (h Hub) Lists(gvk schema.GroupVersionKind) (lister, error) {
	mapping, err := h.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("finding %ss on the hub: %w", gvk.Kind, err)
	}
	httpClient, err := rest.HTTPClientFor(h.Config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	c, err := apiutil.RESTClientForGVK(gvk, false, false, h.Config, serializer.NewCodecFactory(h.Scheme()), httpClient)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return func(namespace, page string) *rest.Request {
		request := c.Get().NamespaceIfScoped(namespace, namespace != metav1.NamespaceAll).Resource(mapping.Resource.Resource).
			Param("limit", strconv.Itoa(read.PageSize))
		if page == "" {
			return request
		}
		return request.Param("continue", page)
	}, nil
}

// Each visits objects as they arrive, decoded into T. Decoding complete objects would take most of the time and memory of a command.
func Each[T any](ctx context.Context, list lister, namespace string, visit func(*T)) error {
	for next, first := "", true; first || next != ""; first = false {
		var err error
		if next, err = readPage(ctx, list(namespace, next), visit); err != nil {
			return err
		}
	}
	return nil
}

// readPage visits the items of a list as they arrive, and returns the continue token.
func readPage[T any](ctx context.Context, request *rest.Request, visit func(*T)) (string, error) {
	stream, err := request.Stream(ctx)
	if err != nil {
		return "", err
	}
	next, err := decodePage(stream, visit)
	return next, errors.Join(err, stream.Close())
}

// decodePage decodes a list of objects, with its fields in any order.
func decodePage[T any](list io.Reader, visit func(*T)) (string, error) {
	var metadata metav1.ListMeta
	decoder := json.NewDecoder(list)
	if _, err := decoder.Token(); err != nil {
		return "", fmt.Errorf("decoding a list: %w", err)
	}
	for decoder.More() {
		field, err := decoder.Token()
		switch {
		case err != nil:
		case field == "items":
			err = decodeItems(decoder, visit)
		case field == "metadata":
			err = decoder.Decode(&metadata)
		default:
			err = decoder.Decode(new(json.RawMessage))
		}
		if err != nil {
			return "", fmt.Errorf("decoding a list: %w", err)
		}
	}
	if _, err := decoder.Token(); err != nil { // the data ends early
		return "", fmt.Errorf("decoding a list: %w", err)
	}
	return metadata.Continue, nil
}

func decodeItems[T any](decoder *json.Decoder, visit func(*T)) error {
	if begin, err := decoder.Token(); err != nil || begin == nil { // null is an empty list
		return err
	}
	for decoder.More() {
		var item T
		if err := decoder.Decode(&item); err != nil {
			return err
		}
		visit(&item)
	}
	_, err := decoder.Token()
	return err
}
