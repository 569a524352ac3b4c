package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxIndexBytes limits index.yaml.
const maxIndexBytes = 32 << 20

// maxIndexes limits the indexes that are kept, since each may be large.
const maxIndexes = 8

// errPlain is the error of a plain http URL in an index that was read over https.
var errPlain = errors.New("the index was read over https, but the archive would be read over http, and the index has no digest of it")

// findInRepository returns the archive of a chart from a repository with an index; at is that repository, or a mirror.
func (c *Client) findInRepository(ctx context.Context, at repository, ref catalog.Reference) (*Chart, error) {
	index, err := c.index(ctx, at)
	if err != nil {
		return nil, err
	}
	entry, err := index.Find(ref.Chart, ref.Version)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", withoutUser(at.URL), err)
	}
	from, err := resolve(at.URL, entry.URLs[0])
	if err != nil {
		return nil, err
	}
	fetched := &Chart{Repository: portable(ref.Repository), From: withoutUser(from)}
	if catalog.IsRegistry(from) {
		listed, err := catalog.ParseReference(from, "")
		if err != nil {
			return nil, err
		}
		pulled, err := c.pull(ctx, catalog.MirrorOf(c.mirrors, listed.Repository), listed)
		if err != nil {
			return nil, err
		}
		fetched.Archive, fetched.manifest = pulled.Archive, pulled.manifest
		return fetched, nil
	}
	if strings.HasPrefix(at.URL, "https:") && strings.HasPrefix(from, "http:") && entry.Digest == "" {
		return nil, fmt.Errorf("%s: %w", withoutUser(from), errPlain)
	}
	fetched.Archive, err = c.get(ctx, at, from, chart.MaxArchiveBytes)
	if err != nil {
		return nil, err
	}
	return fetched, checkListed(entry, fetched)
}

// index returns the index of a repository. It is read once.
func (c *Client) index(ctx context.Context, at repository) (catalog.Index, error) {
	if known, is := c.indexes[at.URL]; is {
		return known, nil
	}
	place, err := resolve(at.URL, "index.yaml")
	if err != nil {
		return nil, err
	}
	data, err := c.get(ctx, at, place, maxIndexBytes)
	if err != nil {
		return nil, err
	}
	index, err := catalog.ParseIndex(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", withoutUser(at.URL), err)
	}
	if len(c.indexes) >= maxIndexes {
		clear(c.indexes)
	}
	c.indexes[at.URL] = index
	return index, nil
}

// checkListed returns an error if an archive is not the one that the index lists.
func checkListed(entry catalog.Entry, fetched *Chart) error {
	listed := entry.Digest
	if listed != "" && !strings.HasPrefix(listed, "sha256:") {
		listed = "sha256:" + listed
	}
	if found := content.DigestOf(fetched.Archive); listed != "" && !strings.EqualFold(listed, found) {
		return &DigestError{fmt.Sprintf("the archive at %s has digest %s, but the index of the repository lists %s", fetched.From, found, text.Escape(listed))}
	}
	return nil
}

// resolve returns the URL of a file of a repository. As for Helm, a query of the repository's URL remains.
func resolve(repository, file string) (string, error) {
	base, err := url.Parse(repository)
	if err != nil {
		return "", fmt.Errorf("the URL of the repository is invalid: %w", err)
	}
	at, err := url.Parse(file)
	if err != nil {
		return "", fmt.Errorf("the index lists an invalid URL: %w", err)
	}
	if at.IsAbs() {
		if at.Scheme != "http" && at.Scheme != "https" && at.Scheme != "oci" {
			return "", fmt.Errorf("the index lists %s, which is not at a URL (https:// or oci://)", text.Quote(file))
		}
		return file, nil
	}
	base.Path, base.RawPath = strings.TrimSuffix(base.Path, "/")+"/", ""
	resolved := base.ResolveReference(at)
	resolved.RawQuery = base.RawQuery
	return resolved.String(), nil
}

// get returns what is at a URL of a repository, or at one that the repository refers to, up to a limit. Only the repository itself gets its credentials,
// unless the user's Helm says otherwise.
func (c *Client) get(ctx context.Context, of repository, place string, limit int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, place, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("the URL is invalid: %w", err)
	}
	own := of.PassCredentialsAll || oci.IsSameOrigin(of.URL, place)
	if own {
		if of, err = c.logIn(request, of); err != nil {
			return nil, err
		}
	}
	transport, err := c.transportFor(of, own)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport, CheckRedirect: oci.CheckRedirect}).Do(request)
	if err != nil {
		return nil, explain(request.URL.Host, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(of, withoutUser(place), response)
	}
	return readBody(response.Body, withoutUser(place), limit)
}

func readBody(body io.Reader, place string, limit int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", place, err)
	case len(data) > limit:
		return nil, fmt.Errorf("%s has more than %d bytes, which is the limit", place, limit)
	}
	return data, nil
}

// refusal returns the error for a response that is not the file.
func refusal(of repository, place string, response *http.Response) error {
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		what := "store credentials for it with 'helm repo add NAME URL --username USER'"
		if of.Username != "" {
			what = fmt.Sprintf("renew the credentials of repository %s with 'helm repo add --force-update'", text.Quote(of.Name))
		}
		return &advisedError{&oci.AccessError{Host: response.Request.URL.Host, Status: response.StatusCode},
			fmt.Sprintf("%s: the server returned %s: %s", place, text.Escape(response.Status), what)}
	case http.StatusNotFound:
		return fmt.Errorf("%s: the server returned %s: give the URL of a repository, with an index.yaml, and the name of a chart after it",
			place, text.Escape(response.Status))
	}
	return fmt.Errorf("%s: the server returned %s", place, text.Escape(response.Status))
}
