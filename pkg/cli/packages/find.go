package packages

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// packageView is a package from any location.
type packageView struct {
	// place is the location: a folder, a tarball, a URL, or a namespace on the hub.
	place    string
	operator kudo.OperatorSpec
	version  kudo.OperatorVersion
	// tree is the tree of the Instances that the package creates; problem states why it is unknown.
	tree    packageNode
	problem error
}

// Finder finds packages by the names that users give.
type Finder struct {
	*hubclient.Factory
	// repository is the repository in which names are looked up; the hub if empty.
	repository string
	// onHub looks up the child operators of packages on disk on the hub too, as push does.
	onHub bool
	flags registries.Flags
}

// Namespace returns the namespace of packages on the hub.
func (f *Finder) Namespace() string { return cmp.Or(*f.Flags.Namespace, kudo.DefaultPackagesNamespace) }

// naming is the description of package names in help texts.
const naming = "A package is given as the path of its folder or tarball, with a slash (./kafka), as a URL, as oci://HOST/PATH, or, on the hub or in\n" +
	"--repository, as the name of its OperatorVersion, or of its operator for the highest version."

// find returns the package of that name: at a location if the name is one, else from the repository or the hub, even if a folder has the
// same name.
func (f *Finder) find(ctx context.Context, name string) (packageView, error) {
	if IsPlace(name) {
		return f.view(ctx, name, (*loader).LoadBundle)
	}
	view, err := f.findNamed(ctx, name)
	if _, onDisk := os.Stat(name); err != nil && onDisk == nil {
		return view, fmt.Errorf("%w; for the local path, use ./%s", err, name)
	}
	return view, err
}

// findNamed returns the package of that name from the repository or the hub.
func (f *Finder) findNamed(ctx context.Context, name string) (packageView, error) {
	if f.repository != "" {
		return f.view(ctx, name, (*loader).LoadNamed)
	}
	c, err := f.Hub()
	if err != nil {
		return packageView{}, err
	}
	view, err := storedPackage(ctx, c, f.Namespace(), name)
	return view, hubclient.Advise(err, f.Namespace())
}

// findFilled returns the package of that name with the templates that its content stores on the hub.
func (f *Finder) findFilled(ctx context.Context, name string) (packageView, error) {
	view, err := f.find(ctx, name)
	if err != nil || len(view.version.Spec.Content) == 0 {
		return view, err
	}
	c, err := f.Hub()
	if err != nil {
		return view, err
	}
	filled, err := content.Fill(ctx, c, &view.version)
	if err != nil {
		return view, hubclient.Advise(err, f.Namespace())
	}
	view.version = *filled
	return view, nil
}

// IsPlace reports whether a name is a location: a URL, a reference to a registry, or a path.
func IsPlace(name string) bool { return bundle.IsURL(name) || bundle.IsPath(name) }

// view returns the package that a loader loads.
func (f *Finder) view(ctx context.Context, name string, load func(*loader, context.Context, string) (*bundle.Bundle, error)) (packageView, error) {
	l := &loader{flags: f.flags}
	l.Repository, l.Registry = f.repository, l.flags.Client
	if f.onHub {
		l.Versions = hubclient.VersionsOnce(ctx, f.Factory, f.Namespace())
	}
	b, err := load(l, ctx, name)
	if err != nil {
		return packageView{}, err
	}
	return viewOf(b, name)
}

// viewOf returns the package, or an error if it is not valid.
func viewOf(b *bundle.Bundle, name string) (packageView, error) {
	if invalid := b.CheckValid(name); invalid != nil {
		return packageView{}, fmt.Errorf("%w: run 'kubectl addon package verify %s'", invalid, text.Word(name))
	}
	operator, version := b.Root().Objects("")
	return packageView{place: b.Root().Name, operator: operator.Spec, version: *version, tree: instancesOf(b)}, nil
}

// storedPackage returns a package on the hub.
func storedPackage(ctx context.Context, c client.Client, namespace, name string) (packageView, error) {
	versions, err := read.StoredVersions(ctx, c, namespace)
	if err != nil {
		return packageView{}, err
	}
	version, err := tree.Find(name, versions)
	if err != nil {
		return packageView{}, fmt.Errorf("in namespace %q on the hub: %w", namespace, err)
	}
	version.Spec = *version.NamedSpec()
	view := packageView{place: fmt.Sprintf("namespace %s on the hub", namespace), version: version}
	var operator kudo.Operator
	key := client.ObjectKey{Namespace: namespace, Name: version.Spec.Operator.Name}
	if err := c.Get(ctx, key, &operator); client.IgnoreNotFound(err) != nil {
		return view, fmt.Errorf("reading Operator %q: %w", key.Name, err)
	}
	view.operator = operator.Spec
	root, err := tree.Resolve(&version, versions)
	if err != nil {
		view.tree, view.problem = packageNode{Instance: key.Name, OperatorVersion: version.Name}, err
		return view, nil
	}
	view.tree = storedNode(key.Name, root)
	return view, nil
}

// storedNode returns the node of an Instance and its descendants.
func storedNode(instance string, n *tree.Node) packageNode {
	node := packageNode{Instance: instance, OperatorVersion: n.Version.Name}
	for _, child := range n.Children {
		below := storedNode(tree.ChildName(instance, child.Task), child.Node)
		below.Task, below.EnablingParameter = child.Task.Name, child.Task.Spec.EnablingParameter
		node.Children = append(node.Children, below)
	}
	return node
}
