package packages

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// packageView is what there is to know of a package, wherever it is.
type packageView struct {
	// place is where it was found: a folder, a tarball, a URL, or a namespace on the hub.
	place    string
	operator kudo.OperatorSpec
	version  kudo.OperatorVersion
	// tree of the Instances that it makes; fault says why nobody knows it.
	tree  packageNode
	fault error
}

// Finder finds the packages that users name.
type Finder struct {
	Flags *genericclioptions.ConfigFlags
	// repository is where names are looked for; on the hub if empty.
	repository string
	// onHub says that names that packages on disk bring along are looked for on the hub as well, as they are when they are pushed.
	onHub bool
}

// Namespace of packages on the hub.
func (f *Finder) Namespace() string { return cmp.Or(*f.Flags.Namespace, kudo.DefaultPackagesNamespace) }

// naming is what help says of the names that find takes.
const naming = "A package is named by the path of its folder or tarball, which has a / in it (./kafka), by its URL, or, on the hub or in\n" +
	"--repository, by its OperatorVersion or its operator, which means the highest version."

// find is the package of that name: one at a place, else one of the repository or the hub, also where a folder is called so.
func (f *Finder) find(ctx context.Context, name string) (packageView, error) {
	if IsPlace(name) {
		return f.view(ctx, name, (*loader).loadBundle)
	}
	view, err := f.findNamed(ctx, name)
	if _, onDisk := os.Stat(name); err != nil && onDisk == nil {
		return view, fmt.Errorf("%w; for what is here, write ./%s", err, name)
	}
	return view, err
}

// findNamed is the package of that name in the repository, or on the hub.
func (f *Finder) findNamed(ctx context.Context, name string) (packageView, error) {
	if f.repository != "" {
		return f.view(ctx, name, (*loader).loadNamed)
	}
	c, err := hubclient.HubClient(f.Flags)
	if err != nil {
		return packageView{}, err
	}
	view, err := storedPackage(ctx, c, f.Namespace(), name)
	return view, hubclient.Advise(err, f.Namespace())
}

// IsPlace says whether a name that a user gives is that of a place.
func IsPlace(name string) bool { return isURL(name) || IsPath(name) }

// view is the package that a loader loads.
func (f *Finder) view(ctx context.Context, name string, load func(*loader, context.Context, string) (*bundle, error)) (packageView, error) {
	l := &loader{repository: f.repository}
	if f.onHub {
		l.versions = hubclient.VersionsOnce(ctx, f.Flags, f.Namespace())
	}
	b, err := load(l, ctx, name)
	if err != nil {
		return packageView{}, err
	}
	return b.view(name)
}

// view is the package, unless something is wrong with it.
func (b *bundle) view(name string) (packageView, error) {
	if invalid := b.validity(name); invalid != nil {
		return packageView{}, fmt.Errorf("%w: see 'kubectl addon package verify %s'", invalid, terminal.Word(name))
	}
	operator, version := b.root().objects("")
	return packageView{place: b.root().name, operator: operator.Spec, version: *version, tree: b.instances()}, nil
}

// storedPackage is a package on the hub.
func storedPackage(ctx context.Context, c client.Client, namespace, name string) (packageView, error) {
	versions, err := hubclient.StoredVersions(ctx, c, namespace)
	if err != nil {
		return packageView{}, err
	}
	version, err := Named(name, versions)
	if err != nil {
		return packageView{}, fmt.Errorf("in namespace %q of the hub: %w", namespace, err)
	}
	view := packageView{place: fmt.Sprintf("namespace %s of the hub", namespace), version: version}
	var operator kudo.Operator
	key := client.ObjectKey{Namespace: namespace, Name: version.Spec.Operator.Name}
	if err := c.Get(ctx, key, &operator); client.IgnoreNotFound(err) != nil {
		return view, fmt.Errorf("reading Operator %q: %w", key.Name, err)
	}
	view.operator = operator.Spec
	root, err := tree.Resolve(&version, versions)
	if err != nil {
		view.tree, view.fault = packageNode{Instance: key.Name, OperatorVersion: version.Name}, err
		return view, nil
	}
	view.tree = storedNode(key.Name, root)
	return view, nil
}

// storedNode is an Instance of that name, with what is below it.
func storedNode(instance string, n *tree.Node) packageNode {
	node := packageNode{Instance: instance, OperatorVersion: n.Version.Name}
	for _, child := range n.Children {
		below := storedNode(tree.ChildName(instance, child.Task), child.Node)
		below.Task, below.EnablingParameter = child.Task.Name, child.Task.Spec.EnablingParameter
		node.Children = append(node.Children, below)
	}
	return node
}
