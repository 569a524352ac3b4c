package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v4/pkg/helmpath"
	helmregistry "helm.sh/helm/v4/pkg/registry"
	orascontent "oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	maxManifestBytes = 1 << 20
	maxTagPages      = 200
	maxTags          = 100_000
)

// newCredentials returns the credentials of Helm's registry/config.json, or else those of docker, as Helm uses them.
func newCredentials() (auth.CredentialFunc, error) {
	file := os.Getenv("HELM_REGISTRY_CONFIG")
	if file == "" {
		file = helmpath.ConfigPath(helmregistry.CredentialsFileBasename)
	}
	options := credentials.StoreOptions{DetectDefaultNativeStore: true}
	own, err := credentials.NewStore(file, options)
	if err != nil {
		return nil, fmt.Errorf("reading %s, the credentials of Helm: %w", file, err)
	}
	docker, err := credentials.NewStoreFromDocker(options)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials of docker: %w", err)
	}
	return credentials.Credential(credentials.NewStoreWithFallbacks(own, docker)), nil
}

// pull returns the archive of a chart below a place in a registry.
func (c *Client) pull(ctx context.Context, above string, ref catalog.Reference) (*Chart, error) {
	place := strings.TrimSuffix(above, "/") + "/" + ref.Chart
	at, err := c.open(strings.TrimPrefix(place, "oci://"))
	if err != nil {
		return nil, err
	}
	tag, err := tagOf(ctx, at, ref)
	if err != nil {
		return nil, err
	}
	described, manifest, err := readManifest(ctx, at, tag)
	if err != nil {
		return nil, explainRefusal(ctx, at, ref, err)
	}
	layer, err := layerOf(manifest)
	if err != nil {
		return nil, err
	}
	blob, err := at.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, explainRefusal(ctx, at, ref, err)
	}
	defer blob.Close()
	archive, err := orascontent.ReadAll(blob, layer) // checks digest and size
	if err != nil {
		return nil, fmt.Errorf("reading the archive: %w", err)
	}
	digest := described.Digest.String()
	return &Chart{Archive: archive, Repository: portable(ref.Repository), From: withoutUser(place) + "@" + digest, manifest: digest}, nil
}

// open returns a repository in a registry. One on this machine may use plain http, as for docker.
func (c *Client) open(place string) (*remote.Repository, error) {
	at, err := remote.NewRepository(place)
	if err != nil {
		return nil, fmt.Errorf("oci://%s is no place in a registry: %w", text.Escape(place), err)
	}
	transport := c.registries
	if transport == nil {
		transport = c.transport
	}
	at.Client = &auth.Client{
		Client: &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: oci.CheckRedirect}, Credential: c.credentials, Cache: auth.NewCache(),
	}
	at.PlainHTTP, at.TagListMaxPages = oci.IsLoopback(at.Reference.Host()), maxTagPages
	return at, nil
}

// tagOf returns the tag or digest of a version: the highest that satisfies a constraint.
func tagOf(ctx context.Context, at *remote.Repository, ref catalog.Reference) (string, error) {
	switch {
	case ref.Manifest != "":
		return ref.Manifest, nil
	case catalog.IsExact(ref.Version):
		return catalog.TagOf(ref.Version), nil
	}
	versions, err := versionsOf(ctx, at)
	if err != nil {
		return "", explainRefusal(ctx, at, ref, err)
	}
	chosen, err := catalog.Choose(ref.Chart, ref.Version, versions)
	return catalog.TagOf(chosen), err
}

// errManyTags ends the listing of tags.
var errManyTags = fmt.Errorf("the registry lists more than %d tags: name an exact version", maxTags)

// versionsOf returns the versions of a chart in a registry.
func versionsOf(ctx context.Context, at *remote.Repository) ([]string, error) {
	var versions []string
	err := at.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, catalog.VersionOfTag(tag))
		}
		if len(versions) > maxTags {
			return errManyTags
		}
		return nil
	})
	return versions, err
}

// readManifest returns the descriptor and the manifest of a tag.
func readManifest(ctx context.Context, at *remote.Repository, tag string) (imagespec.Descriptor, imagespec.Manifest, error) {
	var manifest imagespec.Manifest
	described, body, err := at.Manifests().FetchReference(ctx, tag)
	if err != nil {
		return described, manifest, err
	}
	defer body.Close()
	if described.Size > maxManifestBytes {
		return described, manifest, fmt.Errorf("its manifest has %d bytes, more than the limit of %d", described.Size, maxManifestBytes)
	}
	data, err := orascontent.ReadAll(io.LimitReader(body, maxManifestBytes), described)
	if err != nil {
		return described, manifest, fmt.Errorf("reading the manifest: %w", err)
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return described, manifest, fmt.Errorf("its manifest is invalid: %w", err)
	}
	return described, manifest, nil
}

// layerOf returns the layer of a manifest that holds the archive of a chart.
func layerOf(manifest imagespec.Manifest) (imagespec.Descriptor, error) {
	for _, layer := range manifest.Layers {
		if layer.MediaType != helmregistry.ChartLayerMediaType && layer.MediaType != helmregistry.LegacyChartLayerMediaType {
			continue
		}
		if layer.Size < 0 || layer.Size > chart.MaxArchiveBytes {
			return layer, fmt.Errorf("its archive has %d bytes, more than the limit of %d", layer.Size, chart.MaxArchiveBytes)
		}
		return layer, nil
	}
	return imagespec.Descriptor{}, errors.New("the registry has something else at this place: its manifest lists no archive of a chart")
}

// explainRefusal returns the error of a request to a registry with its way out.
func explainRefusal(ctx context.Context, at *remote.Repository, ref catalog.Reference, err error) error {
	host := at.Reference.Registry
	var refused *errcode.ErrorResponse
	if errors.Is(err, auth.ErrBasicCredentialNotFound) {
		return refusedAccess(host, http.StatusUnauthorized)
	}
	if !errors.As(err, &refused) {
		if errors.Is(err, errdef.ErrNotFound) {
			return newAbsenceError(ctx, at, ref)
		}
		return explain(host, err)
	}
	switch refused.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return refusedAccess(host, refused.StatusCode)
	case http.StatusNotFound:
		return newAbsenceError(ctx, at, ref)
	}
	return fmt.Errorf("%s returned %d: %s", host, refused.StatusCode, text.Escape(text.Truncate(refused.Error(), maxMessage)))
}

func refusedAccess(host string, status int) error {
	return &advisedError{&oci.AccessError{Host: host, Status: status}, fmt.Sprintf(
		"%s refused access (%d %s): log in with 'helm registry login %s' or 'docker login %s'; some registries also refuse charts that do not exist",
		host, status, http.StatusText(status), host, host)}
}

// maxMessage limits messages of servers.
const maxMessage = 500

// newAbsenceError returns the error for a chart or a version that a registry does not have.
func newAbsenceError(ctx context.Context, at *remote.Repository, ref catalog.Reference) error {
	versions, err := versionsOf(ctx, at)
	if err != nil || len(versions) == 0 {
		host := at.Reference.Registry
		return &advisedError{&oci.AbsenceError{Host: host}, fmt.Sprintf("%s has no chart at this place, or does not show it without 'helm registry login %s'", host, host)}
	}
	if _, err := catalog.Choose(ref.Chart, ref.Version, versions); err != nil {
		return err
	}
	return fmt.Errorf("%s does not have what was asked for", at.Reference.Registry)
}
