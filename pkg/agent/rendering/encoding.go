package rendering

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/tandem-addons/tandem/pkg/core/release"
)

const (
	// MaxBytes limits a rendering, in JSON.
	MaxBytes = 64 << 20
	// partBytes limits what one Secret holds: base64 and labels add to it, and an API server takes requests of 1.5 MiB.
	partBytes = 900 << 10
	// maxParts are enough for MaxBytes that cannot be compressed.
	maxParts = MaxBytes/partBytes + 2
)

// The fields of the Secrets. The index has all of them, and the last part; the others have only their part.
const (
	fieldDigest = "digest"
	fieldParts  = "parts"
	fieldPart   = "rendering.json.gz"
)

// encode returns the JSON of a rendering, which is always the same, and its digest.
func encode(r release.Rendering) (encoded []byte, digest string, err error) {
	encoded, err = json.Marshal(r)
	switch {
	case err != nil:
		return nil, "", err
	case len(encoded) > MaxBytes:
		return nil, "", fmt.Errorf("the chart rendered %d bytes, more than the limit of %d", len(encoded), MaxBytes)
	}
	return encoded, digestOf(encoded), nil
}

func digestOf(encoded []byte) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(encoded))
}

func decode(encoded []byte) (release.Rendering, error) {
	var r release.Rendering
	err := json.Unmarshal(encoded, &r)
	return r, err
}

// split compresses a rendering, and returns the fields of the Secrets that hold it: the index first.
func split(encoded []byte, digest string) ([]map[string][]byte, error) {
	var compressed bytes.Buffer
	to := gzip.NewWriter(&compressed)
	if _, err := to.Write(encoded); err != nil {
		return nil, err
	}
	if err := to.Close(); err != nil {
		return nil, err
	}
	secrets := []map[string][]byte{nil}
	rest := compressed.Bytes()
	for ; len(rest) > partBytes; rest = rest[partBytes:] {
		secrets = append(secrets, map[string][]byte{fieldPart: rest[:partBytes]})
	}
	secrets[0] = map[string][]byte{fieldDigest: []byte(digest), fieldParts: []byte(strconv.Itoa(len(secrets))), fieldPart: rest}
	return secrets, nil
}

// partsIn returns how many Secrets hold the rendering of an index.
func partsIn(index map[string][]byte, digest string) (int, error) {
	parts, err := strconv.Atoi(string(index[fieldParts]))
	switch {
	case string(index[fieldDigest]) != digest:
		return 0, fmt.Errorf("it has digest %q instead of %q", index[fieldDigest], digest)
	case err != nil || parts < 1 || parts > maxParts:
		return 0, fmt.Errorf("it has %q parts", index[fieldParts])
	}
	return parts, nil
}

// join returns the JSON of a rendering from the fields of all its Secrets, if it has the digest.
func join(secrets []map[string][]byte, digest string) ([]byte, error) {
	var readers []io.Reader
	for _, secret := range append(secrets[1:len(secrets):len(secrets)], secrets[0]) {
		readers = append(readers, bytes.NewReader(secret[fieldPart]))
	}
	from, err := gzip.NewReader(io.MultiReader(readers...))
	if err != nil {
		return nil, err
	}
	encoded, err := io.ReadAll(io.LimitReader(from, MaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(encoded) > MaxBytes:
		return nil, errors.New("it is larger than any that is kept")
	case digestOf(encoded) != digest:
		return nil, fmt.Errorf("it has digest %q instead of %q", digestOf(encoded), digest)
	}
	return encoded, nil
}
