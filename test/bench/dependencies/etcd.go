package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// etcd is the store of the API server. Large fleets are copied in it, which is much faster than creating each add-on and its status.
type etcd struct{ url string }

// stored is an object as the API server stores it. The fields are base64 in JSON, as etcd expects.
type stored struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// addOnsKey is the key of the add-ons of a cluster: a prefix of the keys of all of them.
func addOnsKey(namespace string) []byte {
	return fmt.Appendf(nil, "/registry/addon.open-cluster-management.io/managedclusteraddons/%s/", namespace)
}

// addOnsOf returns the stored add-ons of a cluster.
func (e *etcd) addOnsOf(ctx context.Context, namespace string) ([]stored, error) {
	prefix := addOnsKey(namespace)
	end := bytes.Clone(prefix)
	end[len(end)-1]++
	var found struct{ Kvs []stored }
	if err := e.do(ctx, "range", map[string]any{"key": prefix, "range_end": end}, &found); err != nil {
		return nil, err
	}
	return found.Kvs, nil
}

// put stores objects in one transaction.
func (e *etcd) put(ctx context.Context, objects []stored) error {
	operations := make([]any, 0, len(objects))
	for _, object := range objects {
		operations = append(operations, map[string]any{"requestPut": object})
	}
	return e.do(ctx, "txn", map[string]any{"success": operations}, nil)
}

// do sends a request to etcd's JSON API, and decodes the response into answer if that is not nil.
func (e *etcd) do(ctx context.Context, method string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a request to etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/v3/kv/"+method, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("preparing a request to etcd: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("sending a request to etcd: %w", err)
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("reading a response of etcd: %w", err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("etcd responded %s to %s: %s", response.Status, method, bytes.TrimSpace(text))
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("decoding a response of etcd: %w", err)
	}
	return nil
}

// copyAddOns returns the add-ons of a cluster as those of another one, each with a uid of its own.
func copyAddOns(addOns []stored, from, to string) ([]stored, error) {
	copies := make([]stored, 0, len(addOns))
	for _, addOn := range addOns {
		var known struct {
			Metadata struct{ Namespace, UID string }
		}
		if err := json.Unmarshal(addOn.Value, &known); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", addOn.Key, err)
		}
		if known.Metadata.Namespace != from || known.Metadata.UID == "" {
			return nil, fmt.Errorf("%s is in namespace %q with uid %q", addOn.Key, known.Metadata.Namespace, known.Metadata.UID)
		}
		value := strings.NewReplacer(from, to, known.Metadata.UID, string(uuid.NewUUID())).Replace(string(addOn.Value))
		copies = append(copies, stored{Key: bytes.Replace(addOn.Key, []byte(from), []byte(to), 1), Value: []byte(value)})
	}
	return copies, nil
}
