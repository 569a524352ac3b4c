// Package artifact describes packages as OCI artifacts: references to registries, manifests, and the manifests of their signatures. It touches no network.
package artifact

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Scheme begins the references to packages in registries.
const Scheme = "oci://"

// Reference names a package in a registry.
type Reference struct {
	// Host is the registry, HOST or HOST:PORT.
	Host string
	// Repository is the path in the registry.
	Repository string
	// Tag is empty if the reference has none: then the digest is meant, or else the highest version.
	Tag string
	// Digest is the digest of the manifest, as sha256:HEX; empty for that of the tag.
	Digest string
}

// The grammar of the distribution specification.
var (
	validHost       = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$`)
	validRepository = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	validTag        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	validDigest     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// maxReferenceBytes limits the length of a reference.
const maxReferenceBytes = 1024

// IsReference reports whether a location is in a registry.
func IsReference(place string) bool { return strings.HasPrefix(place, Scheme) }

// IsDigest reports whether a text is a digest, sha256:HEX.
func IsDigest(digest string) bool { return validDigest.MatchString(digest) }

// Parse parses oci://HOST/PATH with :TAG, @DIGEST, or both.
func Parse(place string) (Reference, error) {
	ref, err := parse(place)
	if err != nil {
		return Reference{}, fmt.Errorf("%s: %w", text.Quote(text.Truncate(place, maxReferenceBytes)), err)
	}
	return ref, nil
}

func parse(place string) (Reference, error) {
	rest, is := strings.CutPrefix(place, Scheme)
	if !is || len(place) > maxReferenceBytes {
		return Reference{}, fmt.Errorf("must be oci://HOST/PATH, with :TAG or @DIGEST, of at most %d characters", maxReferenceBytes)
	}
	rest, digest, hasDigest := strings.Cut(rest, "@")
	host, repository, _ := strings.Cut(rest, "/")
	repository, tag, hasTag := strings.Cut(repository, ":")
	if strings.Contains(host, "@") || hasDigest && strings.Contains(digest, "/") {
		return Reference{}, errors.New("must not contain credentials: log in with 'docker login'")
	}
	ref := Reference{Host: host, Repository: repository, Tag: tag, Digest: digest}
	return ref, ref.check(hasTag, hasDigest)
}

// check returns an error if a part is invalid.
func (r Reference) check(hasTag, hasDigest bool) error {
	switch {
	case !validHost.MatchString(r.Host):
		return errors.New("the name of the registry is invalid: use oci://HOST/PATH")
	case !validRepository.MatchString(r.Repository):
		return errors.New("the path is invalid: it consists of lower-case letters, digits and separators, as in oci://HOST/packages/kafka")
	case hasTag && !validTag.MatchString(r.Tag):
		return errors.New("the tag is invalid: it has letters, digits, dots, dashes and underscores, at most 128")
	case hasDigest && !validDigest.MatchString(r.Digest):
		return errors.New("the digest is invalid: it must be sha256: and 64 digits")
	}
	return nil
}

// String returns the reference as users write it.
func (r Reference) String() string {
	place := r.Place()
	if r.Tag != "" {
		place += ":" + r.Tag
	}
	if r.Digest != "" {
		place += "@" + r.Digest
	}
	return place
}

// Place returns the reference without tag and digest.
func (r Reference) Place() string { return Scheme + r.Host + "/" + r.Repository }

// Target returns what a registry is asked for: the digest, or else the tag.
func (r Reference) Target() string {
	if r.Digest != "" {
		return r.Digest
	}
	return r.Tag
}

// Below returns the reference of a name below this one.
func (r Reference) Below(name string) Reference {
	return Reference{Host: r.Host, Repository: r.Repository + "/" + name}
}
