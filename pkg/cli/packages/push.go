package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// PushOptions holds the arguments and flags of the command.
type PushOptions struct {
	*hubclient.Factory
	name string
	loader
}

// NewCmdPush returns the command. If runF is set, it replaces runPush.
func NewCmdPush(f *hubclient.Factory, runF func(context.Context, *PushOptions) error) *cobra.Command {
	o := &PushOptions{Factory: f}
	if runF == nil {
		runF = runPush
	}
	cmd := &cobra.Command{
		Use:   "push DIR",
		Short: "Store a package and its dependencies on the hub",
		Long: "Verify the package in DIR, in a tarball or at a URL, and store it on the hub as Operator and OperatorVersion, in the namespace\n" +
			kudo.DefaultPackagesNamespace + " or the one given with -n.\n\n" +
			"The packages that its KudoOperator tasks refer to are stored first. A task refers to a package by the path of a folder or\n" +
			"tarball, relative to the package, by URL, or by name. Names are looked up in --repository, or without it on the hub.\n\n" +
			"Nothing is stored unless all packages are valid. An OperatorVersion is immutable: a changed package needs a new\n" +
			"operatorVersion.",
		Example: "  kubectl addon package push ./kafka\n" +
			"  kubectl addon package push https://repository.example.com/kafka-1.0.0.tgz -n cluster1",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.addFlag(cmd)
	return cmd
}

func runPush(ctx context.Context, o *PushOptions) error {
	namespace := cmp.Or(*o.Flags.Namespace, kudo.DefaultPackagesNamespace)
	o.versions = hubclient.VersionsOnce(ctx, o.Factory, namespace)
	b, err := verifiedBundle(ctx, &o.loader, o.ErrOut, o.name)
	if err != nil {
		return err
	}
	c, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(push(ctx, c, o.Out, b, namespace), namespace)
}

// push stores a package and its dependencies, dependencies first, and what is too large for each OperatorVersion after it. It stores nothing if one
// of the versions exists on the hub with different content.
func push(ctx context.Context, c client.Client, out io.Writer, b *bundle, namespace string) error {
	members := b.distinct()
	exists, err := findExisting(ctx, c, members, namespace)
	if err != nil {
		return err
	}
	describing, err := highestVersions(ctx, c, members, namespace)
	if err != nil {
		return err
	}
	if err := checkServesContent(c, members); err != nil {
		return err
	}
	for _, m := range members {
		operator, version := m.objects(namespace)
		if describing[version.Name] {
			err = store(ctx, c, out, "operator", &kudo.Operator{}, operator)
		}
		switch {
		case err != nil:
		case exists[version.Name]:
			err = report(out, "operatorversion", version.Name, "unchanged")
		default:
			stored, _ := pack.Divide(version)
			err = store(ctx, c, out, "operatorversion", &kudo.OperatorVersion{}, stored)
		}
		if err == nil {
			err = storeContent(ctx, c, out, version, m.charts, exists[version.Name])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// distinct returns the members with each OperatorVersion once, because two locations may hold the same package.
func (b *bundle) distinct() []*member {
	met := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(b.members), func(m *member) bool {
		name := versionName(m.pkg)
		again := met[name]
		met[name] = true
		return again
	})
}

// findExisting reports for each member whether its OperatorVersion exists on the hub. It returns an error if one exists with different
// content.
func findExisting(ctx context.Context, c client.Client, members []*member, namespace string) (map[string]bool, error) {
	exists := map[string]bool{}
	var conflicts []error
	for _, m := range members {
		_, version := m.objects(namespace)
		stored := &kudo.OperatorVersion{}
		err := c.Get(ctx, client.ObjectKeyFromObject(version), stored)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
		}
		if exists[version.Name] = err == nil; !exists[version.Name] {
			continue
		}
		if changed := pack.ChangedFields(stored.NamedSpec(), &version.Spec); len(changed) > 0 {
			conflicts = append(conflicts, fmt.Errorf("OperatorVersion %q already exists in namespace %q with different content (%s) "+
				"and is immutable: raise operatorVersion in %s", version.Name, version.Namespace, strings.Join(changed, ", "), m.file("operator.yaml")))
		}
	}
	return exists, errors.Join(conflicts...)
}

// highestVersions returns the OperatorVersions with the packages that provide the Operator: the highest existing version of each operator,
// because all its versions share one Operator. If the user may not list the versions on the hub, it is the highest of the members.
func highestVersions(ctx context.Context, c client.Client, members []*member, namespace string) (map[string]bool, error) {
	versions, err := read.StoredVersions(ctx, c, namespace)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, m := range members {
		_, version := m.objects(namespace)
		if !slices.ContainsFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == version.Name }) {
			versions = append(versions, *version)
		}
	}
	highest := map[string]bool{}
	for _, version := range versions {
		var task kudo.Task
		task.Spec.Package = version.OperatorName()
		if chosen, err := tree.Choose(task, versions); err == nil {
			highest[chosen.Name] = true
		}
	}
	return highest, nil
}

// store applies one object and reports the result; current is an empty object of the same type.
func store(ctx context.Context, c client.Client, out io.Writer, kind string, current, want client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(want), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %q: %w", kind, want.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("converting %s %q: %w", kind, want.GetName(), err)
	}
	delete(content, "status")
	applied, err := apply.Object(ctx, c, &unstructured.Unstructured{Object: content}, hubclient.FieldManager)
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", kind, want.GetName(), err)
	}
	did := "configured"
	switch current.GetResourceVersion() {
	case "":
		did = "created"
	case applied.GetResourceVersion():
		did = "unchanged"
	}
	return report(out, kind, want.GetName(), did)
}
