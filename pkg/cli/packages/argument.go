package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/text"
)

// chartArgument is a chart as users name it.
type chartArgument struct {
	place string
	// reference has the repository, version and digest of the flags.
	reference catalog.Reference
}

func (a *chartArgument) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.reference.Repository, "repo", "", "URL of the repository or registry (oci://) of the chart, if CHART is only its name.")
	cmd.Flags().StringVar(&a.reference.Version, "version", "", "Version of the chart, or a constraint such as ~1.2. Defaults to the highest release.")
	cmd.Flags().StringVar(&a.reference.Digest, "digest", "",
		"SHA-256 that the archive of the chart, or its manifest in a registry, must have: sha256:HEX.")
}

// isLocal reports whether a chart is on disk.
func (a *chartArgument) isLocal() bool {
	_, err := os.Stat(a.place)
	return a.reference.Repository == "" && err == nil
}

// read returns the archive of a chart: in a folder or a file, or else in a repository or a registry, with where it is from.
func (a *chartArgument) read(ctx context.Context, f *bundle.ChartFetcher) (archive []byte, from *registry.Chart, err error) {
	if info, err := os.Stat(a.place); a.reference.Repository == "" && err == nil {
		if a.reference.Version != "" || a.reference.Digest != "" {
			return nil, nil, errLocal
		}
		archive, err := f.Read(ctx, a.place, info)
		return archive, nil, err
	}
	if a.reference.Repository != "" {
		if err := catalog.CheckRepository(a.reference.Repository); err != nil {
			return nil, nil, fmt.Errorf("--repo: %w", err)
		}
	}
	ref, err := catalog.ParseReference(a.place, a.reference.Repository)
	if err != nil {
		return nil, nil, err
	}
	if err := a.refine(&ref); err != nil {
		return nil, nil, err
	}
	if from, err = f.Fetch(ctx, ref); err != nil {
		return nil, nil, err
	}
	return from.Archive, from, nil
}

// refine adds the version and the digest of the flags to a reference.
func (a *chartArgument) refine(ref *catalog.Reference) error {
	if a.reference.Version != "" && ref.Version != "" && ref.Version != a.reference.Version {
		return fmt.Errorf("chart %s has a version, and --version says %s: give one of them", text.Quote(a.place), text.Quote(a.reference.Version))
	}
	if a.reference.Digest != "" && !catalog.IsDigest(a.reference.Digest) {
		return fmt.Errorf("--digest %s is not sha256: and 64 hexadecimal digits", text.Quote(a.reference.Digest))
	}
	ref.Version, ref.Digest = cmp.Or(a.reference.Version, ref.Version), a.reference.Digest
	return nil
}

// errLocal is the error of a flag that a chart on disk does not have.
var errLocal = errors.New("--version, --repo and --digest are for charts in repositories and registries; the chart is a folder or an archive here")
