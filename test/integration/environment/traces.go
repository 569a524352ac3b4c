package environment

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Traces returns the keys of etcd whose values contain a text: as it is, in JSON, or in base64 at any place of a longer text.
func (e *Environment) Traces(ctx context.Context, text string) ([]string, error) {
	everything, err := json.Marshal(map[string][]byte{"key": {0}, "range_end": {0}})
	if err != nil {
		return nil, err
	}
	address := e.server.ControlPlane.Etcd.URL.JoinPath("v3/kv/range").String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(everything))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	var stored struct {
		KVs []struct{ Key, Value []byte } `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&stored); err != nil {
		return nil, fmt.Errorf("reading etcd: %w", err)
	}
	if len(stored.KVs) == 0 {
		return nil, fmt.Errorf("reading etcd: it is empty")
	}
	var keys []string
	for _, kv := range stored.KVs {
		if Quotes(kv.Value, text) {
			keys = append(keys, string(kv.Key))
		}
	}
	return keys, nil
}

// Quotes reports whether content contains a text: as it is, in JSON, or in base64 at any place of a longer text.
func Quotes(content []byte, text string) bool {
	quoted, _ := json.Marshal(text) // text always marshals
	forms := []string{text, strings.Trim(string(quoted), `"`)}
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + text))
		forms = append(forms, encoded[before+1:len(encoded)-2])
	}
	for _, form := range forms {
		if bytes.Contains(content, []byte(form)) {
			return true
		}
	}
	return false
}
