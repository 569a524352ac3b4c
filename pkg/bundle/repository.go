package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// listing holds the entries of a KUDO repository and its includes, by operator. The first entry of a version takes precedence.
type listing map[string][]IndexEntry

// index holds the relevant fields of a KUDO repository's index.yaml.
type index struct {
	APIVersion string                  `yaml:"apiVersion"`
	Entries    map[string][]IndexEntry `yaml:"entries"`
	// Includes lists included repositories; relative URLs are resolved against the index.
	Includes []string `yaml:"includes"`
}

// IndexEntry is one version of a package in a repository.
type IndexEntry struct {
	OperatorVersion string `yaml:"operatorVersion"`
	AppVersion      string `yaml:"appVersion,omitempty"`
	// URLs lists equivalent addresses of the tarball; relative URLs are resolved against the repository.
	URLs []string `yaml:"urls"`
	// Digest is the SHA-256 of the tarball, in hexadecimal; if empty, it is not verified.
	Digest string `yaml:"digest,omitempty"`
	// Removed is set if the version is no longer available.
	Removed bool `yaml:"removed,omitempty"`

	// index is the URL of the index that contains the entry.
	index *url.URL
}

// ReadCatalog reads the repository once.
func (l *Loader) ReadCatalog(ctx context.Context) error {
	if l.Catalog != nil {
		return nil
	}
	found, err := l.readRepository(ctx)
	if err != nil {
		return fmt.Errorf("reading the repository: %w", err)
	}
	l.Catalog = found
	return nil
}

// repositoryURL returns the URL of a repository given as a URL or a folder.
func repositoryURL(name string) (*url.URL, error) {
	if IsURL(name) || strings.HasPrefix(name, "file://") {
		return url.Parse(name)
	}
	folder, err := filepath.Abs(name)
	return &url.URL{Scheme: "file", Path: filepath.ToSlash(folder)}, err
}

// repositoriesLimit is the number of repositories that one may include.
const repositoriesLimit = 50

// readRepository reads the repository and its includes, each once: a repository takes precedence over its includes, and earlier includes
// over later ones (KUDO's rule).
func (l *Loader) readRepository(ctx context.Context) (listing, error) {
	first, err := repositoryURL(l.Repository)
	if err != nil {
		return nil, err
	}
	found, read := listing{}, map[string]bool{}
	for left := []*url.URL{first.JoinPath("index.yaml")}; len(left) > 0; {
		at := left[0]
		left = left[1:]
		if read[at.String()] {
			continue
		}
		if len(read) > repositoriesLimit {
			return nil, fmt.Errorf("the index includes more than %d repositories", repositoriesLimit)
		}
		read[at.String()] = true
		included, err := l.readIndex(ctx, at, found)
		if err != nil {
			return nil, err
		}
		left = append(included, left...)
	}
	return found, nil
}

// readIndex adds the entries of the index at a URL to the catalog, and returns the URLs of its includes.
func (l *Loader) readIndex(ctx context.Context, at *url.URL, into listing) ([]*url.URL, error) {
	content, err := l.fetch(ctx, at.String())
	if err != nil {
		return nil, err
	}
	found, err := ParseIndex(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.Redacted(), err)
	}
	for operator, entries := range found.Entries {
		for _, entry := range entries {
			entry.index = at
			into[operator] = append(into[operator], entry)
		}
	}
	var included []*url.URL
	for _, address := range found.Includes {
		repository, err := follow(at, address, "")
		if err != nil {
			return nil, err
		}
		included = append(included, repository.JoinPath("index.yaml"))
	}
	return included, nil
}

// ParseIndex parses an index.yaml. Versions are read as text, so that 1.10 stays 1.10.
func ParseIndex(content []byte) (index, error) {
	var found index
	document, _, err := yaml.First(string(content), yaml.MaxIndex)
	switch {
	case err == nil:
		err = document.Decode(&found)
	case errors.Is(err, io.EOF):
		err = nil
	}
	var mistyped *yamlv3.TypeError
	if errors.As(err, &mistyped) {
		err = errors.New(strings.Join(mistyped.Errors, "; "))
	}
	if err == nil && found.APIVersion == "" {
		err = errors.New("apiVersion is missing")
	}
	if err != nil {
		return index{}, fmt.Errorf("not an index of KUDO packages: %s", text.JoinMessage(err.Error()))
	}
	return found, nil
}

// follow resolves an address in the index at from. It rejects local files in an index from the network, and plain http in an index read
// over https unless a digest is given.
func follow(from *url.URL, address, digest string) (*url.URL, error) {
	to, err := from.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", from.Redacted(), err)
	case from.Scheme == "file", to.Scheme == from.Scheme, to.Scheme == "https", to.Scheme == "oci", to.Scheme == "http" && digest != "":
		return to, nil
	default:
		return nil, fmt.Errorf("%s refers to %s: %w", from.Redacted(), to.Redacted(), errPlain)
	}
}

// choose returns the entry that a task refers to, by the rule for OperatorVersions.
func (c listing) choose(task kudo.Task) (IndexEntry, error) {
	operator := task.Spec.Package
	chosen, err := tree.Choose(task, c.versionsOf(operator))
	return c.Entry(operator, chosen.Name), err
}

// Entry returns the entry of a version.
func (c listing) Entry(operator, version string) IndexEntry {
	for _, entry := range c[operator] {
		if entry.versionName(operator) == version {
			return entry
		}
	}
	return IndexEntry{}
}

// Versions returns all available versions.
func (c listing) Versions() []kudo.OperatorVersion {
	var versions []kudo.OperatorVersion
	for operator := range c {
		versions = append(versions, c.versionsOf(operator)...)
	}
	return versions
}

// versionsOf returns the available versions of an operator.
func (c listing) versionsOf(operator string) []kudo.OperatorVersion {
	met := map[string]bool{}
	var versions []kudo.OperatorVersion
	for _, entry := range c[operator] {
		version := kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: entry.versionName(operator)}}
		version.Spec.Operator = corev1.ObjectReference{Name: operator}
		version.Spec.AppVersion, version.Spec.Version = entry.AppVersion, entry.OperatorVersion
		if !met[version.Name] && !entry.Removed {
			versions = append(versions, version)
		}
		met[version.Name] = true
	}
	return versions
}

func (e IndexEntry) versionName(operator string) string {
	return pack.VersionName(operator, e.AppVersion, e.OperatorVersion)
}

// Addresses returns the URLs of the tarball to which the index may refer.
func (e IndexEntry) Addresses() []string {
	var addresses []string
	for _, address := range e.URLs {
		if at, err := follow(e.index, address, e.Digest); err == nil {
			addresses = append(addresses, at.String())
		}
	}
	return addresses
}

// openEntry returns the package of an entry, from the first of its URLs that works.
func (l *Loader) openEntry(ctx context.Context, entry IndexEntry) (source, error) {
	var problems []error
	for _, address := range entry.URLs {
		at, err := follow(entry.index, address, entry.Digest)
		if err == nil {
			var found source
			if found, err = l.download(ctx, at.String(), entry.Digest); err == nil {
				found.secure = found.secure || entry.index.Scheme == "https"
				return found, nil
			}
		}
		problems = append(problems, err)
	}
	if len(problems) == 0 {
		return source{}, fmt.Errorf("repository %s has no URL for it", entry.index.Redacted())
	}
	return source{}, errors.Join(problems...)
}
