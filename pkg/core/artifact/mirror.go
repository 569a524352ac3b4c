package artifact

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/image"
	"github.com/tandem-addons/tandem/pkg/text"
)

// dockerHub is the registry of images without one, and its folder of images without a path.
const (
	dockerHub       = "docker.io"
	dockerHubFolder = "library/"
)

// ParseImage parses the name of a container image. Without a registry it is one of Docker Hub, and without tag and digest the tag is latest.
func ParseImage(name string) (Reference, error) {
	host, rest, hasHost := strings.Cut(name, "/")
	if !hasHost || !strings.ContainsAny(host, ".:") && host != "localhost" {
		host, rest = dockerHub, name
		if !hasHost {
			rest = dockerHubFolder + name
		}
	}
	ref, err := parse(Scheme + host + "/" + rest)
	if err != nil {
		return Reference{}, fmt.Errorf("image %s: %w", text.Quote(text.Truncate(name, maxReferenceBytes)), err)
	}
	if ref.Target() == "" {
		ref.Tag = "latest"
	}
	return ref, nil
}

// ImageCopy is an image that is copied to a mirror.
type ImageCopy struct{ From, To Reference }

// MirrorImages returns the copies of images below a place in a registry, and the image registries of an AddOnDeploymentConfig with which a managed cluster
// pulls them from there. Images keep the names of their registries in the path, so that two registries do not collide.
func MirrorImages(images []string, below Reference) ([]ImageCopy, []kudo.ImageRegistry, error) {
	var copies []ImageCopy
	var registries []kudo.ImageRegistry
	for _, name := range images {
		from, err := ParseImage(name)
		if err != nil {
			return nil, nil, err
		}
		to := below.Below(pathOf(from.Host) + "/" + from.Repository)
		to.Tag = from.Tag
		copies = append(copies, ImageCopy{From: from, To: to})
		registry := kudo.ImageRegistry{Source: from.Host, Mirror: strings.TrimPrefix(below.Below(pathOf(from.Host)).Place(), Scheme)}
		if named, _, _ := strings.Cut(name, "/"); named != from.Host { // a name without registry: its mirror replaces the name itself
			registry.Source = strings.TrimPrefix(from.Repository, dockerHubFolder)
			registry.Mirror += "/" + from.Repository
		}
		if !slices.Contains(registries, registry) {
			registries = append(registries, registry)
		}
	}
	slices.SortFunc(registries, func(a, b kudo.ImageRegistry) int { // of several that match, the last applies
		return cmp.Or(len(a.Source)-len(b.Source), strings.Compare(a.Source, b.Source))
	})
	for i, c := range copies {
		if err := checkMirrored(registries, images[i], c.To); err != nil {
			return nil, nil, err
		}
	}
	return copies, registries, nil
}

// checkMirrored returns an error if a managed cluster would pull an image from elsewhere than its copy.
func checkMirrored(registries []kudo.ImageRegistry, name string, to Reference) error {
	pulled, err := ParseImage(image.Mirrored(registries, name))
	if err == nil && pulled.Place() == to.Place() {
		return nil
	}
	return fmt.Errorf("image %s cannot be mirrored together with the others, whose names begin in the same way: copy it with another tool", text.Quote(name))
}

// pathOf returns the name of a registry as a part of a path, which has no colons, brackets or capital letters.
func pathOf(host string) string {
	return strings.Trim(strings.NewReplacer(":", "-", "[", "", "]", "").Replace(strings.ToLower(host)), "-.")
}

// PackageMirror returns the place of a package to which another one refers, below a place in a registry. It keeps the name of its registry and its path, so
// that two packages do not collide.
func PackageMirror(from, below Reference) Reference {
	return below.Below("packages/" + pathOf(from.Host) + "/" + from.Repository)
}

// ChartMirror returns the place of the charts of a repository below a place in a registry.
func ChartMirror(repository string, below Reference) Reference {
	_, rest, _ := strings.Cut(repository, "://")
	var parts []string
	for part := range strings.SplitSeq(rest, "/") {
		if part = pathOf(part); part != "" && validRepository.MatchString(part) {
			parts = append(parts, part)
		}
	}
	return below.Below(strings.Join(append([]string{"charts"}, parts...), "/"))
}

// The types of the artifact of a Helm chart (Helm's HIP-6).
const (
	chartConfigMediaType = "application/vnd.cncf.helm.config.v1+json"
	chartLayerMediaType  = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// NewChart returns the artifact of a Helm chart, which Helm can pull. The archive keeps its digest.
func NewChart(name, version string, archive []byte) (Artifact, error) {
	config := fmt.Sprintf(`{"apiVersion":"v2","name":%q,"version":%q}`, name, version)
	annotations := map[string]string{"org.opencontainers.image.title": name, "org.opencontainers.image.version": version}
	return assemble(Manifest{Annotations: annotations}, newBlob(chartConfigMediaType, []byte(config)), newBlob(chartLayerMediaType, archive))
}
