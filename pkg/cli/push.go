package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/apply"
)

// pushManager is the field manager of what is pushed.
const pushManager = "kubectl-addon"

func pushCommand(streams genericiooptions.IOStreams, flags *genericclioptions.ConfigFlags) *cobra.Command {
	l := &loader{}
	cmd := &cobra.Command{
		Use:   "push DIR",
		Short: "Store a package on the hub, with all that it brings along",
		Long: "Push verifies the package in DIR, or in a tarball or at its URL, and stores it on the hub as Operator and OperatorVersion,\n" +
			"in the namespace " + kudo.DefaultPackagesNamespace + " unless -n names another one. The packages that its KudoOperator tasks name are stored " +
			"before it:\nfolders and tarballs by their path from the package, URLs, and names, which are looked for in --repository, else\n" +
			"among what is on the hub. Nothing is stored unless all of it is right. An OperatorVersion is immutable: a package that\n" +
			"was changed needs another operatorVersion.",
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			namespace := cmp.Or(*flags.Namespace, kudo.DefaultPackagesNamespace)
			l.versions = func(ctx context.Context) ([]kudo.OperatorVersion, error) {
				c, err := hubClient(flags)
				if err != nil {
					return nil, err
				}
				versions, err := storedVersions(ctx, c, namespace)
				return versions, explain(err, namespace)
			}
			b, err := verifiedBundle(cmd.Context(), l, streams.ErrOut, args[0])
			if err != nil {
				return err
			}
			c, err := hubClient(flags)
			if err != nil {
				return err
			}
			return explain(push(cmd.Context(), c, streams.Out, b, namespace), namespace)
		},
	}
	l.addFlag(cmd)
	return cmd
}

// storedVersions are the OperatorVersions in a namespace.
func storedVersions(ctx context.Context, c client.Client, namespace string) ([]kudo.OperatorVersion, error) {
	var stored kudo.OperatorVersionList
	if err := c.List(ctx, &stored, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing OperatorVersions in namespace %q: %w", namespace, err)
	}
	return stored.Items, nil
}

// push stores a package after all that it brings along, or nothing when one of the versions stands there with another content.
func push(ctx context.Context, c client.Client, out io.Writer, b *bundle, namespace string) error {
	exists := map[string]bool{}
	var conflicts []error
	for _, m := range b.members {
		_, version := m.objects(namespace)
		stored := &kudo.OperatorVersion{}
		err := c.Get(ctx, client.ObjectKeyFromObject(version), stored)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
		}
		if exists[version.Name] = err == nil; !exists[version.Name] {
			continue
		}
		if changed := changedFields(&stored.Spec, &version.Spec); len(changed) > 0 {
			conflicts = append(conflicts, fmt.Errorf("OperatorVersion %q exists in namespace %q with another content (%s), and versions are immutable: "+
				"raise operatorVersion in %s", version.Name, version.Namespace, strings.Join(changed, ", "), m.file("operator.yaml")))
		}
	}
	if len(conflicts) > 0 {
		return errors.Join(conflicts...)
	}
	for _, m := range b.members {
		if err := m.push(ctx, c, out, namespace, exists); err != nil {
			return err
		}
	}
	return nil
}

// push stores one package, and says which OperatorVersions exist then. Two places may hold the same package.
func (m *member) push(ctx context.Context, c client.Client, out io.Writer, namespace string, exists map[string]bool) error {
	operator, version := m.objects(namespace)
	if err := store(ctx, c, out, "operator", &kudo.Operator{}, operator); err != nil {
		return err
	}
	if exists[version.Name] {
		return report(out, "operatorversion", version.Name, "unchanged")
	}
	exists[version.Name] = true
	return store(ctx, c, out, "operatorversion", &kudo.OperatorVersion{}, version)
}

// changedFields names the fields of the specification in which two versions differ; templates each by itself.
func changedFields(stored, wanted *kudo.OperatorVersionSpec) []string {
	var changed []string
	for name, pair := range map[string][2]any{
		"operator":         {stored.Operator.Name, wanted.Operator.Name},
		"version":          {stored.Version, wanted.Version},
		"appVersion":       {stored.AppVersion, wanted.AppVersion},
		"tasks":            {stored.Tasks, wanted.Tasks},
		"parameters":       {stored.Parameters, wanted.Parameters},
		"plans":            {stored.Plans, wanted.Plans},
		"connectionString": {stored.ConnectionString, wanted.ConnectionString},
		"upgradableFrom":   {stored.UpgradableFrom, wanted.UpgradableFrom},
	} {
		if !equality.Semantic.DeepEqual(pair[0], pair[1]) {
			changed = append(changed, name)
		}
	}
	for name := range stored.Templates {
		if text, ok := wanted.Templates[name]; !ok || text != stored.Templates[name] {
			changed = append(changed, "template "+name)
		}
	}
	for name := range wanted.Templates {
		if _, ok := stored.Templates[name]; !ok {
			changed = append(changed, "template "+name)
		}
	}
	slices.Sort(changed)
	return changed
}

// store applies one object and reports what that did; current is an empty object of its type.
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
	applied, err := apply.Object(ctx, c, &unstructured.Unstructured{Object: content}, pushManager)
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

// report prints what was done as kubectl does.
func report(out io.Writer, kind, name, did string) error {
	_, err := fmt.Fprintf(out, "%s %s\n", objectName(kudo.GroupVersion.Group, kind, name), did)
	return err
}

// explain adds the way out to the errors that a hub which is not prepared gives.
func explain(err error, namespace string) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("%w: is the cluster a hub with Tandem's CRDs?", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: does KUBECONFIG (or --kubeconfig) name the hub, and does it run?", err)
	case isMissingNamespace(err):
		return fmt.Errorf("%w: create it with 'kubectl create namespace %s', or name another one with -n", err, namespace)
	default:
		return err
	}
}

// isMissingNamespace says whether a write failed because its namespace does not exist.
func isMissingNamespace(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces"
}
