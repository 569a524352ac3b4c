// Package packages implements the commands for operator packages, and reads packages from folders, tarballs, repositories and the hub. Only
// the command push writes to the hub.
package packages

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Loaded is a valid package with the packages that it depends on, read from a location, or wrapped around a chart.
type Loaded struct {
	bundle *bundle
	// signatures are those of the packages that were pulled from registries.
	signatures []signature.Signature
}

// Load reads a package at a location, and prints its problems. Packages that it refers to by name are looked up on the hub.
func Load(ctx context.Context, f *hubclient.Factory, place string) (*Loaded, error) {
	finder := Finder{Factory: f}
	l := &loader{versions: hubclient.VersionsOnce(ctx, f, finder.Namespace())}
	b, err := verifiedBundle(ctx, l, f.ErrOut, place)
	if err != nil {
		return nil, err
	}
	signatures, err := l.signatures(ctx)
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
	archive, _, err := argument.read(ctx, &chartFetcher{})
	if err != nil {
		return nil, nil, nil, err
	}
	described, err := chart.Describe(archive)
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

// wrap loads the package around a chart.
func (c Chart) wrap(ctx context.Context, f *hubclient.Factory, archive []byte, described wrap.Chart, given []wrap.Given) (*Loaded, error) {
	packed := described.Name + ".tgz"
	files, err := wrap.GivenFiles(c.Name, packed, described, given)
	if err != nil {
		return nil, err
	}
	described.Version = digestVersion(described.Version, files, archive)
	if files, err = wrap.GivenFiles(c.Name, packed, described, given); err != nil {
		return nil, err
	}
	files[packed] = string(archive)
	folder, err := os.MkdirTemp("", "kubectl-addon-")
	if err != nil {
		return nil, fmt.Errorf("wrapping chart %s: %w", text.Word(c.Place), err)
	}
	defer os.RemoveAll(folder)
	if _, err := writePackage(folder, files); err != nil {
		return nil, err
	}
	l := &loader{}
	l.begin()
	b, err := l.loadFrom(ctx, source{name: c.Place, folder: folder})
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(f.ErrOut, b.problemsText()); err != nil {
		return nil, err
	}
	return &Loaded{bundle: b}, b.checkValid(c.Place)
}

// digestVersion returns a version of a chart with a digest of files, as a pre-release: metadata after a plus cannot be in the name of an object.
func digestVersion(version string, files map[string]string, archive []byte) string {
	const digits = 10
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(sum, "%q %q\n", name, files[name])
	}
	sum.Write(archive)
	version, _, _ = strings.Cut(version, "+")
	separator := "-"
	if strings.Contains(version, "-") {
		separator = "."
	}
	return version + separator + "s" + fmt.Sprintf("%x", sum.Sum(nil))[:digits]
}

// check returns the values that violate a schema of the chart, and an error if the chart does not render with the values.
func (c Chart) check(ctx context.Context, archive []byte) ([]ValueProblem, error) {
	values, err := yaml.Marshal(c.Values)
	if err != nil {
		return nil, fmt.Errorf("encoding the values of chart %s: %w", text.Word(c.Place), err)
	}
	found, err := chart.Violations(archive, values)
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
	_, version := l.bundle.root().objects(namespace)
	return version
}

// Versions returns the names of the OperatorVersions of the package and of those that it depends on.
func (l *Loaded) Versions(namespace string) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, m := range l.bundle.distinct() {
		_, version := m.objects(namespace)
		keys = append(keys, client.ObjectKeyFromObject(version))
	}
	return keys
}

// Objects returns the objects that store the package on a hub, in the order in which they are written.
func (l *Loaded) Objects(namespace string) []client.Object {
	var all []client.Object
	for _, m := range l.bundle.distinct() {
		operator, version := m.objects(namespace)
		stored, files := pack.Divide(version)
		all = append(all, operator, stored)
		for _, file := range stored.Spec.Content {
			data, isChart := m.charts[file.File]
			if !isChart {
				data = files[file.File]
			}
			for _, part := range corecontent.Split(data) {
				content := corecontent.New(stored, part)
				content.OwnerReferences = nil // a hub adds it: the OperatorVersion has no identity yet
				all = append(all, content)
			}
		}
	}
	return all
}

// Missing returns the OperatorVersions of the package that a hub does not have, and an error if it has another one of the same name.
func (l *Loaded) Missing(ctx context.Context, c client.Client, namespace string) ([]client.ObjectKey, error) {
	members := l.bundle.distinct()
	exists, err := findExisting(ctx, c, members, namespace)
	if err != nil {
		return nil, err
	}
	if err := checkServesContent(c, members); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(l.Versions(namespace), func(key client.ObjectKey) bool { return exists[key.Name] }), nil
}

// Push stores the package on a hub, as the command does.
func (l *Loaded) Push(ctx context.Context, c client.Client, out io.Writer, namespace string) error {
	return push(ctx, c, out, l.bundle, namespace, signatures{found: l.signatures})
}

// Reader reads packages at locations for commands of other packages. It needs no hub.
type Reader struct{ loader }

// AddFlags adds the flags that select the repository of names, and those of registries.
func (r *Reader) AddFlags(cmd *cobra.Command) { r.addFlag(cmd) }

// Client returns the client of registries.
func (r *Reader) Client() (*oci.Client, error) { return r.registries.Client() }

// Read reads a valid package at a location, and prints its problems.
func (r *Reader) Read(ctx context.Context, out io.Writer, place string) (*Loaded, error) {
	b, err := verifiedBundle(ctx, &r.loader, out, place)
	return &Loaded{bundle: b}, err
}

// Pulled returns what was pulled from a reference to a registry.
func (r *Reader) Pulled(place string) *oci.Pulled { return r.pulled[place] }

// Sign signs a statement with the content of the OperatorVersions of the package, with the private key in a file.
func (l *Loaded) Sign(keyFile string, statement signature.Statement) (signature.Signature, error) {
	return l.bundle.sign(keyFile, statement)
}

// Contents returns a line for each OperatorVersion of the package and each chart that was fetched for it, with their digests.
func (l *Loaded) Contents() ([]string, error) {
	digests, err := l.bundle.contentDigests()
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
func (l *Loaded) Charts() []*registry.Chart {
	var charts []*registry.Chart
	for _, m := range l.bundle.distinct() {
		for _, index := range slices.Sorted(maps.Keys(m.fetched)) {
			found := m.fetched[index]
			if !slices.ContainsFunc(charts, func(c *registry.Chart) bool { return c.Digest == found.Digest && c.Repository == found.Repository }) {
				charts = append(charts, found)
			}
		}
	}
	return charts
}

// References returns the references to registries from which the package and its children were pulled.
func (r *Reader) References() []string { return slices.Sorted(maps.Keys(r.pulled)) }
