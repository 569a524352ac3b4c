// Package packages implements the commands for operator packages. Only the command push writes to the hub.
package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Loaded is a valid package with the packages that it depends on, read from a location, or wrapped around a chart.
type Loaded struct {
	bundle *bundle.Bundle
	// signatures are those of the packages that were pulled from registries.
	signatures []signature.Signature
}

// Load reads a package at a location, and prints its problems. Packages that it refers to by name are looked up on the hub.
func Load(ctx context.Context, f *hubclient.Factory, place string) (*Loaded, error) {
	finder := Finder{Factory: f}
	l := &loader{}
	l.Versions = hubclient.VersionsOnce(ctx, f, finder.Namespace())
	b, err := verifiedBundle(ctx, l, f.ErrOut, place)
	if err != nil {
		return nil, err
	}
	signatures, err := l.Signatures(ctx)
	return &Loaded{bundle: b, signatures: signatures}, err
}

// Chart is a chart with values that a user sets.
type Chart struct {
	// Name is the name of the package, and of its Instances; Namespace is where they are installed.
	Name, Namespace string
	// Place is the folder, the archive or the address of the chart, and Version its version in a repository; the highest release if empty.
	Place, Version string
	// Values are a map in the user's file; nil if there are none.
	Values *yaml.Node
}

// ValueProblem is what is wrong with a value of a chart.
type ValueProblem = wrap.Problem

// LoadChart wraps a package around a chart. Every value that is set becomes a parameter, and given holds its value. The version of the package is the
// chart's with a digest of its files: the same chart with the same values set is the same OperatorVersion. problems are those of the values.
func LoadChart(ctx context.Context, f *hubclient.Factory, c Chart) (loaded *Loaded, given []wrap.Given, problems []ValueProblem, err error) {
	argument := chartArgument{place: c.Place, reference: catalog.Reference{Version: c.Version}}
	archive, _, err := argument.read(ctx, &bundle.ChartFetcher{})
	if err != nil {
		return nil, nil, nil, err
	}
	described, err := chart.Describe(ctx, archive)
	if err != nil {
		return nil, nil, nil, err
	}
	if c.Values != nil {
		if given, problems = described.Given(c.Values); len(problems) == 0 {
			problems, err = c.check(ctx, archive)
		}
		if err != nil || len(problems) > 0 {
			return nil, nil, problems, err
		}
	}
	loaded, err = c.wrap(ctx, f, archive, described, given)
	return loaded, given, nil, err
}

// wrap loads the package around a chart, and prints its problems.
func (c Chart) wrap(ctx context.Context, f *hubclient.Factory, archive []byte, described wrap.Chart, given []wrap.Given) (*Loaded, error) {
	b, err := (&bundle.Loader{}).Wrap(ctx, c.Place, c.Name, archive, described, given)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(f.ErrOut, b.ProblemsText()); err != nil {
		return nil, err
	}
	return &Loaded{bundle: b}, b.CheckValid(c.Place)
}

// check returns the values that violate a schema of the chart, and an error if the chart does not render with the values.
func (c Chart) check(ctx context.Context, archive []byte) ([]ValueProblem, error) {
	values, err := yaml.Marshal(c.Values)
	if err != nil {
		return nil, fmt.Errorf("encoding the values of chart %s: %w", text.Word(c.Place), err)
	}
	found, err := chart.Violations(ctx, archive, values)
	if err != nil {
		return nil, err
	}
	var problems []ValueProblem
	for _, v := range found {
		problems = append(problems, ValueProblem{
			Node:    wrap.NodeAt(c.Values, v.Path),
			Message: fmt.Sprintf("value %s violates the schema of chart %s: %s", wrap.Path(v.Path), text.Word(c.Place), v.Message),
		})
	}
	if len(problems) > 0 {
		return problems, nil
	}
	return nil, c.try(ctx, archive, values)
}

// try renders a chart with values as at its installation, without a cluster. What depends on the cluster is no error.
func (c Chart) try(ctx context.Context, archive, values []byte) error {
	renderer, err := chart.NewRenderer()
	if err != nil {
		return err
	}
	looked := false
	_, err = renderer.Render(ctx, chart.Input{
		Archive: archive, Values: values, Release: chart.Release{Name: c.Name, Namespace: c.Namespace, Revision: 1}, Capabilities: chart.DefaultCapabilities(),
	}, func(context.Context, string, string, string, string) (map[string]any, error) {
		looked = true
		return map[string]any{}, nil
	})
	if err == nil || looked || errors.As(err, new(*chart.VersionError)) {
		return nil
	}
	return fmt.Errorf("chart %s does not render with these values: %w", text.Word(c.Place), err)
}

// Version returns the OperatorVersion of the package, with all its content.
func (l *Loaded) Version(namespace string) *kudo.OperatorVersion {
	_, version := l.bundle.Root().Objects(namespace)
	return version
}

// Versions returns the names of the OperatorVersions of the package and of those that it depends on.
func (l *Loaded) Versions(namespace string) []client.ObjectKey {
	return l.bundle.VersionKeys(namespace)
}

// Objects returns the objects that store the package on a hub, in the order in which they are written.
func (l *Loaded) Objects(namespace string) []client.Object { return l.bundle.StoredObjects(namespace) }

// Missing returns the OperatorVersions of the package that a hub does not have, and an error if it has another one of the same name.
func (l *Loaded) Missing(ctx context.Context, c client.Client, namespace string) ([]client.ObjectKey, error) {
	return newHub(c, namespace, io.Discard).Absent(ctx, l.bundle)
}

// Push stores the package on a hub, as the command does.
func (l *Loaded) Push(ctx context.Context, c client.Client, out io.Writer, namespace string) error {
	return newHub(c, namespace, out).Push(ctx, l.bundle, bundle.Signatures{Found: l.signatures})
}

// Reader reads packages at locations for commands of other packages. It needs no hub.
type Reader struct{ loader }

// AddFlags adds the flags that select the repository of names, and those of registries.
func (r *Reader) AddFlags(cmd *cobra.Command) { r.addFlag(cmd) }

// Client returns the client of registries.
func (r *Reader) Client() (*oci.Client, error) { return r.Registry() }

// Read reads a valid package at a location, and prints its problems.
func (r *Reader) Read(ctx context.Context, out io.Writer, place string) (*Loaded, error) {
	b, err := verifiedBundle(ctx, &r.loader, out, place)
	return &Loaded{bundle: b}, err
}

// Pulled returns the reference, with the digest, of the package that was pulled from a reference to a registry.
func (r *Reader) Pulled(place string) artifact.Reference { return r.loader.Pulled[place] }

// Digests returns the content digests of the OperatorVersions of the package, which a signature covers, by name.
func (l *Loaded) Digests() (map[string]string, error) { return l.bundle.ContentDigests() }

// Contents returns a line for each OperatorVersion of the package and each chart that was fetched for it, with their digests.
func (l *Loaded) Contents() ([]string, error) {
	digests, err := l.bundle.ContentDigests()
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(digests)) {
		lines = append(lines, fmt.Sprintf("OperatorVersion %s %s", name, digests[name]))
	}
	for _, c := range l.Charts() {
		lines = append(lines, fmt.Sprintf("chart %s %s %s", c.Name, c.Version, c.Digest))
	}
	return lines, err
}

// Charts returns the charts that were fetched for the package and its children, each once.
func (l *Loaded) Charts() []*registry.Chart { return l.bundle.FetchedArchives() }

// References returns the references to registries from which the package and its children were pulled.
func (r *Reader) References() []string { return slices.Sorted(maps.Keys(r.loader.Pulled)) }
