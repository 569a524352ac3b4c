// Package catalog decides which version of a Helm chart is meant: it parses references to charts in repositories and registries, and chooses among the
// versions that an index or a registry lists. It touches no network.
package catalog

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// Reference names a chart in a repository or in a registry.
type Reference struct {
	// Repository is the URL of a repository, of the path above the chart in a registry (oci://), or the name of one of the user's repositories. It is
	// empty if Archive is set.
	Repository string
	// Chart is the name of the chart; empty if Archive is set.
	Chart string
	// Archive is the URL of an archive.
	Archive string
	// Version is a version or a constraint; empty for the highest release.
	Version string
	// Digest is the digest that the archive must have, or the manifest in a registry; empty for any.
	Digest string
	// Manifest is the digest of the manifest in a registry; empty for that of the version.
	Manifest string
}

// String returns the reference as users write it.
func (r Reference) String() string {
	if r.Archive != "" {
		return r.Archive
	}
	return strings.TrimSuffix(r.Repository, "/") + "/" + r.Chart
}

// IsRegistry reports whether a repository is in a registry.
func IsRegistry(repository string) bool { return strings.HasPrefix(repository, registryScheme) }

const registryScheme = "oci://"

// ParseReference parses a chart and the URL of its repository, which may be empty: oci://HOST/PATH/NAME, https://HOST/PATH/NAME, the URL of an archive,
// or REPOSITORY/NAME.
func ParseReference(chart, repository string) (Reference, error) {
	var ref Reference
	var err error
	switch {
	case repository != "":
		ref = Reference{Repository: repository, Chart: chart}
	case IsRegistry(chart):
		ref, err = parseRegistry(chart)
	case isArchive(chart):
		ref = Reference{Archive: chart}
	default:
		above, name := path.Split(strings.TrimSuffix(chart, "/"))
		ref = Reference{Repository: strings.TrimSuffix(above, "/"), Chart: name}
	}
	if err == nil {
		err = ref.check()
	}
	if err != nil {
		return Reference{}, fmt.Errorf("chart %s: %w", text.Quote(withoutPassword(chart)), err)
	}
	return ref, nil
}

// parseRegistry parses oci://HOST/PATH/NAME, with a version after a colon, a digest after an at sign, or both.
func parseRegistry(chart string) (Reference, error) {
	place, digest, _ := strings.Cut(chart, "@")
	above, name := path.Split(place)
	name, version, _ := strings.Cut(name, ":")
	if above = strings.TrimSuffix(above, "/"); above == strings.TrimSuffix(registryScheme, "/") || above == strings.TrimSuffix(registryScheme, "//") {
		return Reference{}, errors.New("the name of the chart is missing: use oci://HOST/PATH/NAME")
	}
	return Reference{Repository: above, Chart: name, Version: VersionOfTag(version), Manifest: digest}, nil
}

func isArchive(chart string) bool {
	return isHTTP(chart) && (strings.HasSuffix(chart, ".tgz") || strings.HasSuffix(chart, ".tar.gz"))
}

func isHTTP(place string) bool {
	return strings.HasPrefix(place, "https://") || strings.HasPrefix(place, "http://")
}

// chartName is what a chart can be called, as in Helm's best practices; Helm itself accepts more.
var chartName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,249}$`)

// repositoryName is the name of a repository of the user.
var repositoryName = regexp.MustCompile(`^[^/:\s]+$`)

func (r Reference) check() error {
	switch {
	case r.Archive != "":
		return CheckRepository(r.Archive)
	case !chartName.MatchString(r.Chart):
		return fmt.Errorf("%s is not the name of a chart", text.Quote(r.Chart))
	case r.Manifest != "" && !IsDigest(r.Manifest):
		return fmt.Errorf("digest %s is not sha256: and 64 hexadecimal digits", text.Quote(r.Manifest))
	case strings.Contains(r.Repository, "://"):
		return CheckRepository(r.Repository)
	case !repositoryName.MatchString(r.Repository):
		return errors.New("it is neither a folder nor an archive: name a chart elsewhere as oci://HOST/PATH/NAME, REPOSITORY/NAME or " +
			"https://HOST/PATH/NAME")
	}
	return nil
}

// CheckRepository returns an error for a URL that is not that of a repository or of a path in a registry, or that contains a password.
func CheckRepository(repository string) error {
	parsed, err := url.Parse(repository)
	switch {
	case err != nil || parsed.Host == "" || !isHTTP(repository) && !IsRegistry(repository):
		return fmt.Errorf("%s is no URL of a repository (https://) or registry (oci://)", text.Quote(withoutPassword(repository)))
	case parsed.User != nil:
		return errors.New("the URL contains credentials: store them with 'helm repo add' or 'helm registry login'")
	}
	return nil
}

// withoutPassword returns a place without the password in a URL.
func withoutPassword(place string) string {
	if parsed, err := url.Parse(place); err == nil && parsed.User != nil {
		return parsed.Redacted()
	}
	return place
}

// digest is a SHA-256.
var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a text is a digest, sha256:HEX.
func IsDigest(s string) bool { return digest.MatchString(s) }

// TagOf returns the tag of a version in a registry, which has no plus signs.
func TagOf(version string) string { return strings.ReplaceAll(version, "+", "_") }

// VersionOfTag returns the version of a tag in a registry.
func VersionOfTag(tag string) string { return strings.ReplaceAll(tag, "_", "+") }

// Mirror replaces the beginning of the URL of a repository or registry.
type Mirror struct{ From, To string }

// ParseMirrors parses mirrors, FROM=TO, separated by spaces or commas.
func ParseMirrors(mirrors string) ([]Mirror, error) {
	var parsed []Mirror
	for _, one := range strings.FieldsFunc(mirrors, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' }) {
		from, to, _ := strings.Cut(one, "=")
		for _, place := range []string{from, to} {
			if err := CheckRepository(place); err != nil {
				return nil, fmt.Errorf("mirror %s must be FROM=TO, two URLs: %w", text.Quote(withoutPassword(one)), err)
			}
		}
		parsed = append(parsed, Mirror{From: strings.TrimSuffix(from, "/"), To: strings.TrimSuffix(to, "/")})
	}
	return parsed, nil
}

// MirrorOf returns the URL from which one is read: that of the mirror with the longest beginning.
func MirrorOf(mirrors []Mirror, place string) string {
	var chosen Mirror
	for _, m := range mirrors {
		if (place == m.From || strings.HasPrefix(place, m.From+"/")) && len(m.From) > len(chosen.From) {
			chosen = m
		}
	}
	if chosen.From == "" {
		return place
	}
	return chosen.To + strings.TrimPrefix(place, chosen.From)
}
