// Package record reads the records in which Helm stores the chart and the values of each revision of a release: Secrets, or ConfigMaps. It is pure and
// touches no cluster. Anyone who may write Secrets in its namespace can write a record, so that sizes, names and types in it are checked.
package record

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// maxStoredBytes limits what an object stores; those of Kubernetes are smaller.
	maxStoredBytes = 4 << 20
	// maxBytes limits a record without compression.
	maxBytes = 64 << 20
)

// Record is a revision of a release.
type Record struct {
	Revision
	Namespace string
	Chart     Chart
	// Values are those that users have set, over those of the chart. Numbers are json.Number.
	Values map[string]any
	// Manifest is what the chart has rendered, without hooks.
	Manifest string
	Hooks    []Hook
}

// Hook is a hook of a release.
type Hook struct {
	Path     string `json:"path"`
	Manifest string `json:"manifest"`
}

// stored is a record as Helm encodes it.
type stored struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Version   int    `json:"version"`
	Chart     *struct {
		Metadata json.RawMessage `json:"metadata"`
		Lock     struct {
			Dependencies []struct{} `json:"dependencies"`
		} `json:"lock"`
		Templates []file          `json:"templates"`
		Files     []file          `json:"files"`
		Values    json.RawMessage `json:"values"`
		Schema    []byte          `json:"schema"`
	} `json:"chart"`
	Config   json.RawMessage `json:"config"`
	Manifest string          `json:"manifest"`
	Hooks    []Hook          `json:"hooks"`
}

// Decode decodes the key release of an object that records a revision in a namespace. The record has to be of this revision.
func Decode(data []byte, of Revision, namespace string) (*Record, error) {
	r, err := decode(data)
	if err == nil && (r.Release != of.Release || r.Number != of.Number || r.Namespace != namespace) {
		err = fmt.Errorf("it is of revision %d of release %s in namespace %s", r.Number, text.Quote(r.Release), text.Quote(r.Namespace))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s in namespace %s is not a record of revision %d of release %s, as Helm writes it: %w",
			of.Kind, of.Object, text.Quote(namespace), of.Number, text.Quote(of.Release), err)
	}
	r.Revision = of
	return r, nil
}

func decode(data []byte) (*Record, error) {
	content, err := unpack(data)
	if err != nil {
		return nil, err
	}
	var s stored
	if err := json.Unmarshal(content, &s); err != nil {
		return nil, fmt.Errorf("its JSON is invalid: %w", shorten(err))
	}
	if s.Chart == nil {
		return nil, errors.New("it contains no chart")
	}
	r := &Record{Revision: Revision{Release: s.Name, Number: s.Version}, Namespace: s.Namespace, Manifest: s.Manifest, Hooks: s.Hooks}
	if r.Values, err = mapOf(s.Config); err != nil {
		return nil, fmt.Errorf("its values are %w", err)
	}
	r.Chart = Chart{
		locked: len(s.Chart.Lock.Dependencies) > 0, metadata: s.Chart.Metadata, values: s.Chart.Values, schema: s.Chart.Schema,
		templates: s.Chart.Templates, files: s.Chart.Files,
	}
	return r, r.Chart.check()
}

// unpack returns the JSON of a record: base64, and compressed except by the first versions of Helm 3.
func unpack(data []byte) ([]byte, error) {
	if len(data) > maxStoredBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(data), maxStoredBytes)
	}
	content := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(content, data)
	if err != nil {
		return nil, errors.New("its key release is not base64")
	}
	content = content[:n]
	if !bytes.HasPrefix(content, []byte{0x1f, 0x8b, 0x08}) {
		return content, nil
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	content, err = io.ReadAll(io.LimitReader(unzipped, maxBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	case len(content) > maxBytes:
		return nil, fmt.Errorf("it has more than %d MiB without compression", maxBytes>>20)
	}
	return content, nil
}

// Missing returns what a chart has that its record does not contain, as a part of a sentence; empty if the chart can be restored.
func (r *Record) Missing() string {
	if len(r.Chart.Dependencies) > 0 {
		return "dependencies, which Helm does not store in its records: " + text.ListOrNone(r.Chart.Dependencies)
	}
	if source := r.subchartSource(); source != "" {
		return "subcharts in its folder charts, which Helm does not store in its records: " + text.Quote(source) + " is from one"
	}
	return ""
}

// subchartSource returns the template of a subchart that has rendered an object; empty if there is none.
func (r *Record) subchartSource() string {
	from := r.Chart.Name + "/charts/"
	for line := range strings.Lines(r.Manifest) {
		if source, is := strings.CutPrefix(strings.TrimSpace(line), "# Source: "); is && strings.HasPrefix(source, from) {
			return source
		}
	}
	for _, hook := range r.Hooks {
		if strings.HasPrefix(hook.Path, from) {
			return hook.Path
		}
	}
	return ""
}

// Disables reports whether the chart has dependencies none of which the release uses: a chart that is restored never has them.
func (r *Record) Disables() bool { return r.Chart.locked && r.Missing() == "" }
