package packages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ListOptions holds the arguments and flags of the command.
type ListOptions struct {
	*hubclient.Factory
	finder *Finder
	output *terminal.Output
}

// NewCmdList returns the command. If runF is set, it replaces runList.
func NewCmdList(f *hubclient.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	o := &ListOptions{Factory: f, finder: &Finder{Factory: f}, output: terminal.NewOutput(terminal.FormatName)}
	if runF == nil {
		runF = runList
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the packages on the hub or in a repository",
		Long: "List the OperatorVersions on the hub, or in one namespace with -n, and the number of Instances that refer to each of them. The\n" +
			"highest version of an operator comes first. With --repository, list the packages in a repository; no cluster is needed.",
		Example: "  kubectl addon package list\n" +
			"  kubectl addon package list --repository https://repository.example.com",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.finder.addFlag(cmd)
	return cmd
}

func runList(ctx context.Context, o *ListOptions) error {
	data, err := o.finder.list(ctx)
	if err != nil {
		return err
	}
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(), Data: data, Names: data.names()})
}

// listData is the output of `package list`.
type listData struct {
	Packages []listedPackage `json:"packages"`
	// Repository is the repository of the packages; empty for the hub.
	Repository string `json:"repository,omitempty"`
}

// listedPackage is an OperatorVersion, or a package in a repository.
type listedPackage struct {
	OperatorVersion string `json:"operatorVersion"`
	Namespace       string `json:"namespace,omitempty"`
	Operator        string `json:"operator"`
	Version         string `json:"version"`
	AppVersion      string `json:"appVersion,omitempty"`
	// Instances is the number of Instances that request it; nil if the user may not read Instances.
	Instances *int `json:"instances,omitempty"`
	// URLs are the addresses of the tarball in a repository; Digest is its SHA-256.
	URLs   []string `json:"urls,omitempty"`
	Digest string   `json:"digest,omitempty"`
}

func (f *Finder) list(ctx context.Context) (listData, error) {
	if f.repository != "" {
		packages, err := listPackages(ctx, f.repository)
		return listData{Packages: packages, Repository: bundle.ShownURL(f.repository)}, err
	}
	h, err := f.Hub()
	if err != nil {
		return listData{}, err
	}
	packages, err := storedPackages(ctx, h, *f.Flags.Namespace)
	return listData{Packages: packages}, hubclient.Advise(err, *f.Flags.Namespace)
}

// listPackages returns the packages of the repository.
func listPackages(ctx context.Context, repository string) ([]listedPackage, error) {
	l := &bundle.Loader{Repository: repository}
	l.Begin()
	if err := l.ReadCatalog(ctx); err != nil {
		return nil, err
	}
	versions := l.Catalog.Versions()
	sortByVersion(versions)
	packages := []listedPackage{}
	for _, v := range versions {
		p, entry := listedOf(v), l.Catalog.Entry(v.OperatorName(), v.Name)
		p.Digest = entry.Digest
		p.URLs = entry.Addresses()
		packages = append(packages, p)
	}
	return packages, nil
}

// storedPackages returns the packages in a namespace of the hub, or in all.
func storedPackages(ctx context.Context, h hubclient.Hub, namespace string) ([]listedPackage, error) {
	var (
		versions []kudo.OperatorVersion
		users    map[client.ObjectKey]int
	)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		versions, err = versionNames(ctx, h, namespace)
		return err
	})
	group.Go(func() (err error) {
		users, err = countUsers(ctx, h)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	sortByVersion(versions)
	packages := []listedPackage{}
	for _, v := range versions {
		p := listedOf(v)
		if users != nil {
			p.Instances = new(users[client.ObjectKeyFromObject(&v)])
		}
		packages = append(packages, p)
	}
	return packages, nil
}

// versionNames returns the OperatorVersions in a namespace of the hub, or in all, with only their names and versions set.
func versionNames(ctx context.Context, h hubclient.Hub, namespace string) ([]kudo.OperatorVersion, error) {
	list, err := h.Lists(kudo.GroupVersion.WithKind("OperatorVersion"))
	if err != nil {
		return nil, err
	}
	var versions []kudo.OperatorVersion
	err = hubclient.Each(ctx, list, namespace, func(found *struct {
		Metadata struct{ Namespace, Name string }
		Spec     struct {
			Operator            struct{ Name string }
			Version, AppVersion string
		}
	}) {
		var v kudo.OperatorVersion
		v.Namespace, v.Name = found.Metadata.Namespace, found.Metadata.Name
		v.Spec.Operator.Name, v.Spec.Version, v.Spec.AppVersion = found.Spec.Operator.Name, found.Spec.Version, found.Spec.AppVersion
		versions = append(versions, v)
	})
	switch {
	case apierrors.IsForbidden(err) && namespace == "":
		return nil, fmt.Errorf("listing OperatorVersions in all namespaces: %w: select a namespace with -n, such as %s",
			err, kudo.DefaultPackagesNamespace)
	case err != nil:
		return nil, fmt.Errorf("listing OperatorVersions in namespace %q: %w", namespace, err)
	}
	return versions, nil
}

func listedOf(v kudo.OperatorVersion) listedPackage {
	return listedPackage{
		OperatorVersion: v.Name, Namespace: v.Namespace,
		Operator: v.OperatorName(), Version: v.Spec.Version, AppVersion: v.Spec.AppVersion,
	}
}

// sortByVersion sorts versions by namespace and operator, highest version first.
func sortByVersion(versions []kudo.OperatorVersion) {
	slices.SortFunc(versions, func(a, b kudo.OperatorVersion) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.OperatorName(), b.OperatorName()), tree.Compare(&b, &a))
	})
}

// countUsers returns the number of Instances on all clusters by requested OperatorVersion, or nil if the user may not read them.
func countUsers(ctx context.Context, h hubclient.Hub) (map[client.ObjectKey]int, error) {
	list, err := h.Lists(kudo.GroupVersion.WithKind("Instance"))
	if err != nil {
		return nil, err
	}
	users := map[client.ObjectKey]int{}
	err = hubclient.Each(ctx, list, metav1.NamespaceAll, func(found *struct {
		Metadata struct{ Namespace string }
		Spec     struct {
			OperatorVersion struct{ Namespace, Name string }
		}
	}) {
		asked := found.Spec.OperatorVersion
		users[client.ObjectKey{Namespace: cmp.Or(asked.Namespace, found.Metadata.Namespace), Name: asked.Name}]++
	})
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the Instances of all clusters: %w", err)
	}
	return users, nil
}

// text returns a table.
func (d listData) text() string {
	switch {
	case len(d.Packages) == 0 && d.Repository != "":
		return fmt.Sprintf("No packages found in repository %s.\n", d.Repository)
	case len(d.Packages) == 0:
		return "No packages found: push one with 'kubectl addon package push DIR'.\n"
	case d.Repository != "":
		var rows [][]string
		for _, p := range d.Packages {
			rows = append(rows, []string{p.OperatorVersion, p.Operator, p.Version, cmp.Or(p.AppVersion, "-")})
		}
		return terminal.Table([]string{"NAME", "OPERATOR", "VERSION", "APP-VERSION"}, rows)
	}
	var rows [][]string
	for _, p := range d.Packages {
		users := "?"
		if p.Instances != nil {
			users = strconv.Itoa(*p.Instances)
		}
		rows = append(rows, []string{p.Namespace, p.OperatorVersion, p.Operator, p.Version, cmp.Or(p.AppVersion, "-"), users})
	}
	return terminal.Table([]string{"NAMESPACE", "NAME", "OPERATOR", "VERSION", "APP-VERSION", "INSTANCES"}, rows)
}

func (d listData) names() []string {
	names := make([]string, len(d.Packages))
	for i, p := range d.Packages {
		names[i] = text.ObjectName(kudo.GroupVersion.Group, "OperatorVersion", p.OperatorVersion)
	}
	return names
}
