package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/helmpath"
	"oras.land/oras-go/v2/registry/remote/auth"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Chart is a chart that was fetched.
type Chart struct {
	// Archive is the archive (.tgz), as the repository or registry serves it, and Digest its SHA-256 as sha256:HEX.
	Archive []byte
	Digest  string
	// Name and Version are those in Chart.yaml.
	Name, Version string
	// Repository is the URL of the repository, or of the path above the chart in the registry, as it can be written into a package: no mirror, and no
	// name that only this user's Helm knows. It is empty for an archive at a URL, which is in From.
	Repository string
	// From is the URL from which the archive was read.
	From string
	// manifest is the digest of the manifest in a registry; empty in a repository.
	manifest string
}

// Client fetches charts. It reads the user's files once. One with password reads none: password returns the user name and the password for the host of a
// repository.
type Client struct {
	repositories []repository
	credentials  auth.CredentialFunc
	mirrors      []catalog.Mirror
	indexes      map[string]catalog.Index
	transport    http.RoundTripper
	// registries is the transport for registries; transport if nil.
	registries http.RoundTripper
	password   func(context.Context, string) (username, password string, err error)
}

// repository is an entry of Helm's repositories.yaml. Helm's own package for it would add a runtime of WebAssembly to the program, for plugins.
type repository struct {
	Name                  string `json:"name"`
	URL                   string `json:"url"`
	Username              string `json:"username"`
	Password              string `json:"password"`
	CertFile              string `json:"certFile"`
	KeyFile               string `json:"keyFile"`
	CAFile                string `json:"caFile"`
	InsecureSkipTLSVerify bool   `json:"insecure_skip_tls_verify"`
	PassCredentialsAll    bool   `json:"pass_credentials_all"`
}

func repositoriesFile() string {
	if file := os.Getenv("HELM_REPOSITORY_CONFIG"); file != "" {
		return file
	}
	return helmpath.ConfigPath("repositories.yaml")
}

// maxFileBytes limits repositories.yaml.
const maxFileBytes = 4 << 20

// readRepositories returns the repositories in repositories.yaml; none if it does not exist.
func readRepositories(name string) ([]repository, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the repositories of Helm: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes))
	if err != nil {
		return nil, fmt.Errorf("reading the repositories of Helm: %w", err)
	}
	var parsed struct {
		Repositories []repository `json:"repositories"`
	}
	if err := yaml.Unmarshal(data, &parsed); err != nil {
		return nil, fmt.Errorf("%s, the repositories of Helm, is invalid: %w", name, err)
	}
	return parsed.Repositories, nil
}

// repositoryNamed returns the repository that the user's Helm knows by a name.
func (c *Client) repositoryNamed(name string) (repository, error) {
	at := slices.IndexFunc(c.repositories, func(r repository) bool { return r.Name == name })
	if at >= 0 {
		return c.repositories[at], catalog.CheckRepository(withoutUser(c.repositories[at].URL))
	}
	var names []string
	for _, r := range c.repositories {
		names = append(names, r.Name)
	}
	return repository{}, fmt.Errorf("there is no such folder or archive, and Helm has no repository %s%s: add it with 'helm repo add', or use its URL",
		text.Quote(name), text.DidYouMean(name, names))
}

// repositoryAt returns the repository at a URL, with the user's credentials for it if there are any.
func (c *Client) repositoryAt(place string) repository {
	at := slices.IndexFunc(c.repositories, func(r repository) bool {
		return isBelow(place, withoutUser(r.URL))
	})
	if at < 0 {
		return repository{URL: place}
	}
	found := c.repositories[at]
	found.URL = place
	return found
}

// mirrorOf returns the mirror of a repository, with the credentials for the mirror.
func (c *Client) mirrorOf(named repository) repository {
	if mirror := catalog.MirrorOf(c.mirrors, named.URL); mirror != named.URL {
		return c.repositoryAt(mirror)
	}
	return named
}

// isBelow reports whether a URL names a repository, or a file in it.
func isBelow(place, repository string) bool {
	repository = strings.TrimSuffix(repository, "/")
	return place == repository || strings.HasPrefix(place, repository+"/")
}

// withoutUser returns a URL without credentials.
func withoutUser(place string) string {
	parsed, err := url.Parse(place)
	if err != nil {
		return place
	}
	parsed.User = nil
	return parsed.String()
}

// portable returns the URL of a repository as a package names it.
func portable(place string) string { return strings.TrimSuffix(withoutUser(place), "/") }

// logIn adds the user name and the password for a repository to a request, and returns the repository with them.
func (c *Client) logIn(request *http.Request, of repository) (repository, error) {
	if of.Username == "" && c.password != nil {
		var err error
		if of.Username, of.Password, err = c.password(request.Context(), request.URL.Host); err != nil {
			return of, err
		}
	}
	if of.Username != "" {
		request.SetBasicAuth(of.Username, of.Password)
	}
	return of, nil
}

// advisedError is an error of a server with the advice to users of Helm.
type advisedError struct {
	error
	text string
}

func (e *advisedError) Error() string { return e.text }

func (e *advisedError) Unwrap() error { return e.error }

// DigestError is the error of an archive with another digest than expected.
type DigestError struct{ text string }

func (e *DigestError) Error() string { return e.text }
