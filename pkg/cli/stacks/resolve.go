package stacks

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/stack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// stackFile is a stack file that was read.
type stackFile struct {
	// name is its name in messages, and folder that of its paths.
	name, folder string
	stack        *stack.Stack
}

// maxFileBytes limits a stack file.
const maxFileBytes = 1 << 20

// readFile reads and decodes the stack file.
func (f *applyFlags) readFile() (stackFile, error) {
	found := stackFile{name: f.file, folder: filepath.Dir(f.file)}
	in := f.In
	if f.file == "-" {
		found.name, found.folder = "standard input", "."
	} else {
		file, err := os.Open(f.file)
		if err != nil {
			return found, fmt.Errorf("reading the stack file: %w", err)
		}
		defer file.Close()
		in = file
	}
	content, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	switch {
	case err != nil:
		return found, fmt.Errorf("reading the stack file: %w", err)
	case len(content) > maxFileBytes:
		return found, fmt.Errorf("stack file %s has more than %d bytes: divide it", found.name, maxFileBytes)
	}
	var problems []stack.Problem
	found.stack, problems = stack.Parse(string(content))
	return found, stack.ErrorOf(found.name, problems)
}

// needsHub reports whether the objects of the stack depend on the hub: on a package, or on an add-on that is not in the file.
func (f stackFile) needsHub() bool {
	for _, e := range f.stack.AddOns {
		if e.Package.Value != "" && !packages.IsPlace(e.Package.Value) {
			return true
		}
		for _, name := range dependency.CandidatesOf(e.Needs()) {
			if !slices.ContainsFunc(f.stack.AddOns, func(other stack.Entry) bool { return other.Name.Value == name }) {
				return true
			}
		}
	}
	return false
}

// resolver reads what a stack refers to, and checks it.
type resolver struct {
	*applyFlags
	stackFile
	// hub is nil if nothing depends on it.
	hub      *hubclient.Hub
	versions []kudo.OperatorVersion
	found    resolved
	problems []stack.Problem
}

// resolved is a stack that is valid.
type resolved struct {
	objects stack.Objects
	// packages are those to push, and versions are the OperatorVersions that the stack runs.
	packages []*packages.Loaded
	versions []client.ObjectKey
	// existing are the definitions on the hub.
	existing stack.Definitions
}

// resolve returns the stack, or all of its problems.
func (r *resolver) resolve(ctx context.Context) (*resolved, error) {
	if err := r.readHub(ctx); err != nil {
		return nil, err
	}
	var addOns []stack.Resolved
	for _, e := range r.stack.AddOns {
		addOn, err := r.addOn(ctx, e)
		if err != nil {
			return nil, err
		}
		addOns = append(addOns, addOn)
	}
	r.found.objects = stack.ObjectsOf(r.stack.Name, r.namespace(), addOns)
	refused, warnings := stack.DependencyProblems(addOns, r.found.objects.Definitions, r.found.existing)
	r.problems = append(r.problems, refused...)
	if err := stack.ErrorOf(r.name, r.problems); err != nil {
		return nil, err
	}
	for _, warning := range warnings {
		if _, err := fmt.Fprintf(r.ErrOut, "Warning: %s:%d:%d: %s\n", r.name, warning.Line, warning.Column, warning.Message); err != nil {
			return nil, err
		}
	}
	return &r.found, nil
}

// readHub reads what the stack is checked against.
func (r *resolver) readHub(ctx context.Context) error {
	if r.hub == nil {
		return nil
	}
	var err error
	if r.found.existing, err = definitions(ctx, *r.hub); err != nil {
		return err
	}
	if r.versions, err = read.StoredVersions(ctx, *r.hub, r.namespace()); err != nil {
		return err
	}
	if r.printed {
		return nil
	}
	return r.checkPlaces(ctx)
}

// checkPlaces checks the clusters and placements of all add-ons.
func (r *resolver) checkPlaces(ctx context.Context) error {
	clusters, err := read.NamesIn(ctx, *r.hub, "", read.ManagedClusterKind)
	known := err == nil
	_, err = r.hub.RESTMapper().RESTMapping(schema.GroupKind{Group: "cluster.open-cluster-management.io", Kind: "Placement"})
	met := map[stack.Text]bool{} // those of the stack count once
	for _, e := range r.stack.AddOns {
		for _, cluster := range e.Clusters {
			if known && !slices.Contains(clusters, cluster.Value) && !met[cluster] {
				met[cluster] = true
				r.add(cluster.Place, "managed cluster %s does not exist%s", text.Quote(cluster.Value), text.DidYouMean(cluster.Value, clusters))
			}
		}
		if len(e.Placements) > 0 && meta.IsNoMatchError(err) {
			r.add(e.Name.Place, "the hub does not serve Placements because it is not an OCM hub: use clusters")
		}
	}
	return nil
}

func (r *resolver) add(place stack.Place, format string, args ...any) {
	r.problems = append(r.problems, stack.Problem{Place: place, Message: fmt.Sprintf(format, args...)})
}

// addOn resolves the package or the chart of an add-on, and checks its parameters. It returns an error that is no problem of the file.
func (r *resolver) addOn(ctx context.Context, e stack.Entry) (stack.Resolved, error) {
	found := stack.Resolved{Entry: e}
	var version *kudo.OperatorVersion
	var isValid bool
	switch {
	case e.Chart.Value != "":
		version, isValid = r.chart(ctx, &found)
	case packages.IsPlace(e.Package.Value):
		version, isValid = r.pkg(ctx, &found)
	default:
		version, isValid = r.stored(&found)
	}
	if ctx.Err() != nil {
		return found, ctx.Err()
	}
	if !isValid {
		return found, nil
	}
	found.Version = client.ObjectKeyFromObject(version)
	r.problems = append(r.problems, stack.CheckParameters(e, version.NamedSpec(), found.Parameters)...)
	return found, nil
}

// chart wraps a package around a chart.
func (r *resolver) chart(ctx context.Context, of *stack.Resolved) (*kudo.OperatorVersion, bool) {
	loaded, given, problems, err := packages.LoadChart(ctx, r.Factory, packages.Chart{
		Name: of.Name.Value, Namespace: of.Namespace, Place: r.place(of.Chart.Value), Version: of.ChartVersion.Value, Values: of.Values,
	})
	for _, p := range problems {
		r.add(stack.Place{Line: p.Node.Line, Column: p.Node.Column}, "%s", p.Message)
	}
	if err != nil {
		r.add(of.Chart.Place, "%v", err)
	}
	if err != nil || len(problems) > 0 {
		return nil, false
	}
	for _, g := range given {
		of.Parameters = append(of.Parameters, stack.Parameter{
			Name: g.Parameter, Value: g.Text, Place: stack.Place{Line: g.Node.Line, Column: g.Node.Column},
		})
	}
	return r.push(loaded), true
}

// pkg reads a package at a location.
func (r *resolver) pkg(ctx context.Context, of *stack.Resolved) (*kudo.OperatorVersion, bool) {
	loaded, err := packages.Load(ctx, r.Factory, r.place(of.Package.Value))
	if err != nil {
		r.add(of.Package.Place, "%v", err)
		return nil, false
	}
	return r.push(loaded), r.parameters(of)
}

// stored finds a package on the hub.
func (r *resolver) stored(of *stack.Resolved) (*kudo.OperatorVersion, bool) {
	version, err := stack.FindVersion(of.Package.Value, r.versions)
	if err != nil {
		r.add(of.Package.Place, "%v; a folder begins with ./", err)
		return nil, false
	}
	r.found.versions = append(r.found.versions, client.ObjectKeyFromObject(&version))
	return &version, r.parameters(of)
}

// parameters reads the parameters of a package.
func (r *resolver) parameters(of *stack.Resolved) bool {
	given, problems := stack.ParametersOf(of.Entry)
	of.Parameters = given
	r.problems = append(r.problems, problems...)
	return len(problems) == 0
}

// push adds a package to those of the stack, and returns its OperatorVersion.
func (r *resolver) push(loaded *packages.Loaded) *kudo.OperatorVersion {
	r.found.packages = append(r.found.packages, loaded)
	r.found.versions = append(r.found.versions, loaded.Versions(r.namespace())...)
	return loaded.Version(r.namespace())
}

// place returns the place of a package or chart from that in the file, which is relative to the file. An address, and what is not on disk, stays as it is.
func (r *resolver) place(name string) string {
	if address, err := url.Parse(name); filepath.IsAbs(name) || err == nil && address.Scheme != "" {
		return name
	}
	joined := filepath.Join(r.folder, filepath.FromSlash(name))
	if _, err := os.Stat(joined); err == nil || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tgz") {
		return joined
	}
	return name
}

// annotate declares the dependencies of all add-ons in annotations.
func (r *resolved) annotate() error {
	for i, definition := range r.objects.Definitions {
		var err error
		if r.objects.Definitions[i], err = stack.Annotated(definition); err != nil {
			return err
		}
	}
	return nil
}
