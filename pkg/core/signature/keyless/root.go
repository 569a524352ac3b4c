package keyless

import (
	"fmt"

	"github.com/sigstore/sigstore-go/pkg/root"
)

// Root is a trust root: the certificate authorities, logs and timestamp authorities of Sigstore, or of a private instance of it.
type Root struct{ trusted *root.TrustedRoot }

// MaxRootBytes limits a trust root; that of Sigstore has less than 10 KiB.
const MaxRootBytes = 256 << 10

// ParseRoot parses a trust root, Sigstore's trusted_root.json.
func ParseRoot(name string, data []byte) (r *Root, err error) {
	if len(data) > MaxRootBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, MaxRootBytes)
	}
	trusted, err := root.NewTrustedRootFromJSON(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is no trust root of Sigstore (trusted_root.json): %s", name, cause(err))
	case len(trusted.FulcioCertificateAuthorities()) == 0:
		return nil, fmt.Errorf("%s contains no certificate authority", name)
	case len(trusted.RekorLogs()) == 0:
		return nil, fmt.Errorf("%s contains no transparency log", name)
	}
	return &Root{trusted}, nil
}
