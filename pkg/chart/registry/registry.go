// Package registry fetches charts from Helm repositories and OCI registries, with the credentials of the user's Helm and docker. Only the command line
// and package-controller import it: hub and agent never fetch a chart. It touches no cluster.
package registry

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MirrorsVariable is the environment variable with mirrors of the repositories and registries of charts and packages: FROM=TO, separated by spaces.
const MirrorsVariable = "TANDEM_CHART_MIRRORS"

// fetchTimeout limits the time to fetch a chart, with the index of its repository.
const fetchTimeout = 5 * time.Minute

// Mirrors returns the mirrors that the user has set.
func Mirrors() ([]catalog.Mirror, error) {
	mirrors, err := catalog.ParseMirrors(os.Getenv(MirrorsVariable))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", MirrorsVariable, err)
	}
	return mirrors, nil
}

// New returns a client with the repositories and credentials of the user's Helm, and docker's credentials. As for Helm, HELM_REPOSITORY_CONFIG,
// HELM_REGISTRY_CONFIG, HELM_CONFIG_HOME, DOCKER_CONFIG and the variables of proxies select them. A file that does not exist has none.
func New() (*Client, error) {
	repositories, err := readRepositories(repositoriesFile())
	if err != nil {
		return nil, err
	}
	credentials, err := newCredentials()
	if err != nil {
		return nil, err
	}
	mirrors, err := Mirrors()
	if err != nil {
		return nil, err
	}
	return &Client{
		repositories: repositories, credentials: credentials, mirrors: mirrors, indexes: map[string]catalog.Index{}, transport: oci.NewTransport(),
	}, nil
}

// NewWith returns a client that sends requests to repositories with a transport, those to registries with another one, and with credentials. It reads no files and
// variables of a user.
func NewWith(transport, registries http.RoundTripper, credentials oci.Credentials) *Client {
	return &Client{
		credentials: credentials.Find(), password: credentials.Password, indexes: map[string]catalog.Index{}, transport: transport, registries: registries,
	}
}

// Fetch returns a chart. Errors name it, and the way out.
func (c *Client) Fetch(ctx context.Context, ref catalog.Reference) (*Chart, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	fetched, err := c.find(ctx, ref)
	if err == nil {
		err = fetched.complete(ctx, ref)
	}
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", text.Quote(ref.String()), err)
	}
	return fetched, nil
}

// find returns the archive of a chart, and where it was found.
func (c *Client) find(ctx context.Context, ref catalog.Reference) (*Chart, error) {
	if ref.Archive != "" {
		from := catalog.MirrorOf(c.mirrors, ref.Archive)
		archive, err := c.get(ctx, c.repositoryAt(from), from, chart.MaxArchiveBytes)
		return &Chart{Archive: archive, From: from}, err
	}
	of := c.repositoryAt(ref.Repository)
	if !strings.Contains(ref.Repository, "://") {
		named, err := c.repositoryNamed(ref.Repository)
		if err != nil {
			return nil, err
		}
		of, ref.Repository = named, named.URL
	}
	if of = c.mirrorOf(of); catalog.IsRegistry(of.URL) {
		return c.pull(ctx, of.URL, ref)
	}
	return c.findInRepository(ctx, of, ref)
}

// complete checks an archive, and adds its name, version and digest.
func (c *Chart) complete(ctx context.Context, ref catalog.Reference) error {
	c.Digest = content.DigestOf(c.Archive)
	if ref.Digest != "" && ref.Digest != c.Digest && ref.Digest != c.manifest {
		return &DigestError{fmt.Sprintf("its archive has digest %s, expected %s: compare both with what its publisher says; it was read from %s",
			c.Digest, ref.Digest, c.From)}
	}
	found, err := chart.Check(ctx, c.Archive)
	if err != nil {
		return err
	}
	c.Name, c.Version = found.Name, found.Version
	switch {
	case ref.Archive == "" && c.Name != ref.Chart:
		return fmt.Errorf("%s contains chart %s", c.From, text.Quote(c.Name))
	case catalog.IsExact(ref.Version) && !catalog.IsSame(c.Version, ref.Version):
		return fmt.Errorf("%s contains version %s, not %s", c.From, text.Quote(c.Version), text.Quote(ref.Version))
	}
	return nil
}
