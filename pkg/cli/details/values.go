package details

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ValuesOptions holds the arguments and flags of the command.
type ValuesOptions struct {
	*hubclient.Factory
	cluster, name string
	output        *terminal.Output
}

// NewCmdValues returns the command. If runF is set, it replaces runValues.
func NewCmdValues(f *hubclient.Factory, runF func(context.Context, *ValuesOptions) error) *cobra.Command {
	o := &ValuesOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runValues
	}
	cmd := &cobra.Command{
		Use:   "values NAME --cluster CLUSTER",
		Short: "Show the parameters of an Instance or add-on, and what sets them",
		Long: "Show the effective value of each parameter of an Instance or add-on on a managed cluster, and its source: the default of the\n" +
			"package, an AddOnDeploymentConfig or a ConfigMap of the add-on, the Instance, or the parent of a child. Of sensitive\n" +
			"parameters, show the reference to the Secret. A value that its source has changed, and that the Instance does not have yet,\n" +
			"is marked as pending: 'kubectl addon why' shows what the add-on waits for. The command contacts only the hub.",
		Example: "  kubectl addon values kafka --cluster cluster1\n" +
			"  kubectl addon values kafka --cluster cluster1 -o yaml",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "the Instance or add-on is for")
	o.output.AddFlag(cmd)
	return cmd
}

func runValues(ctx context.Context, o *ValuesOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(showValues(ctx, h, o), o.cluster)
}

// showValues prints the parameters. If the user may not read the configs of the add-on, it prints them without these sources.
func showValues(ctx context.Context, c client.Reader, o *ValuesOptions) error {
	instance, err := read.ReadInstance(ctx, c, client.ObjectKey{Namespace: o.cluster, Name: o.name})
	if err != nil {
		return err
	}
	view := read.View(ctx, c, instance)
	if view.Unreadable != nil {
		return fmt.Errorf("reading the OperatorVersion of Instance %q, which defines its parameters: %w", o.name, view.Unreadable)
	}
	settings, err := settingsOf(ctx, c, instance)
	if apierrors.IsForbidden(err) {
		err = terminal.Warn(o.ErrOut, fmt.Sprintf("the sources of parameters are incomplete: %v", err))
	}
	if err != nil {
		return err
	}
	found := progress.ValuesOf(view.Version, instance, settings)
	return o.output.Print(o.Out, terminal.Shown{Text: valuesText(found, o.output.Format == terminal.FormatWide), Data: found})
}

// settingsOf reads what the configs of the add-on set that owns an Instance; nil if no add-on does.
func settingsOf(ctx context.Context, c client.Reader, instance *kudo.Instance) (map[string]install.Setting, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	err := c.Get(ctx, client.ObjectKeyFromObject(instance), addOn)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && !install.OwnedBy(instance, addOn) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading add-on %q of cluster %q: %w", instance.Name, instance.Namespace, err)
	}
	return change.Settings(ctx, c, addOn)
}

// valuesText returns the parameters as a table.
func valuesText(found progress.Values, wide bool) string {
	if len(found.Parameters) == 0 {
		return fmt.Sprintf("OperatorVersion %s has no parameters.\n", text.Word(found.OperatorVersion))
	}
	rows := make([][]string, 0, len(found.Parameters))
	for _, value := range found.Parameters {
		shown := "-"
		if value.Source != progress.SourceNone {
			shown = terminal.Cell(value.Value, wide)
		}
		rows = append(rows, []string{text.Word(value.Name), shown, sourceText(value)})
	}
	shown := terminal.Table([]string{"NAME", "VALUE", "SOURCE"}, rows)
	if slices.ContainsFunc(found.Parameters, func(v progress.Value) bool { return v.Pending }) {
		shown += fmt.Sprintf("\nPending: the source has another value, which the Instance does not have yet; see '%s'.\n",
			text.Command("kubectl addon why %s --cluster %s", found.Instance, found.Cluster))
	}
	return shown
}

// sourceText returns what sets a parameter.
func sourceText(value progress.Value) string {
	source := string(value.Source)
	if value.Source == progress.SourceDefault || value.Source == progress.SourceNone {
		source = strings.ToLower(source)
	}
	if value.Object != "" {
		source += " " + text.Word(value.Object)
	}
	if value.Pending {
		source += " (pending)"
	}
	return source
}
