package cli

import (
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
	return &cobra.Command{
		Use:   "push DIR",
		Short: "Store a package on the hub",
		Long: "Push verifies the package in DIR and stores it on the hub as Operator and OperatorVersion, in the namespace " +
			kudo.DefaultPackagesNamespace + "\nunless -n names another one. An OperatorVersion is immutable: a package that was changed needs " +
			"another operatorVersion.",
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := verifiedPackage(streams.ErrOut, args[0])
			if err != nil {
				return err
			}
			namespace := *flags.Namespace
			if namespace == "" {
				namespace = kudo.DefaultPackagesNamespace
			}
			c, err := hubClient(flags)
			if err != nil {
				return err
			}
			operator, version := p.Objects(namespace)
			return explain(push(cmd.Context(), c, streams.Out, operator, version), namespace)
		},
	}
}

// push stores both objects, or neither when the version stands there with another content.
func push(ctx context.Context, c client.Client, out io.Writer, operator *kudo.Operator, version *kudo.OperatorVersion) error {
	stored := &kudo.OperatorVersion{}
	err := c.Get(ctx, client.ObjectKeyFromObject(version), stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
	}
	exists := err == nil
	if exists {
		if changed := changedFields(&stored.Spec, &version.Spec); len(changed) > 0 {
			return fmt.Errorf("OperatorVersion %q exists in namespace %q with another content (%s), and versions are immutable: "+
				"raise operatorVersion in operator.yaml", version.Name, version.Namespace, strings.Join(changed, ", "))
		}
	}
	if err := store(ctx, c, out, "operator", &kudo.Operator{}, operator); err != nil {
		return err
	}
	if exists {
		return report(out, "operatorversion", version.Name, "unchanged")
	}
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
	_, err := fmt.Fprintf(out, "%s.%s/%s %s\n", kind, kudo.GroupVersion.Group, name, did)
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
