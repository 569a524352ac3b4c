package packages

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

// RightsOptions holds the arguments and flags of the command.
type RightsOptions struct {
	*hubclient.Factory
	name string
	loader
	output *terminal.Output
}

// NewCmdRights returns the command. If runF is set, it replaces runRights.
func NewCmdRights(f *hubclient.Factory, runF func(context.Context, *RightsOptions) error) *cobra.Command {
	o := &RightsOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runRights
	}
	cmd := &cobra.Command{
		Use:   "rights DIR",
		Short: "Print the permissions that a package needs",
		Long: "Print the permissions that the plans of the package in DIR, in a tarball or at a URL need on a managed cluster, as\n" +
			"permissions to paste into operator.yaml. They include all plans, and both values of the parameters of Toggle tasks.\n\n" +
			"Templates and charts are rendered with the default parameters. Comments name what is not known before the package runs, such as kinds\n" +
			"that depend on parameters, and permissions that agents refuse without --allow-escalation. Child packages have permissions of\n" +
			"their own. No cluster is needed.",
		Example: "  kubectl addon package rights ./kafka\n" +
			"  kubectl addon package rights https://repository.example.com/kafka.tgz -o json",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.loader.addFlag(cmd)
	return cmd
}

func runRights(ctx context.Context, o *RightsOptions) error {
	b, err := verifiedBundle(ctx, &o.loader, o.ErrOut, o.name)
	if err != nil {
		return err
	}
	needed := rightsOf(b)
	text, err := needed.text()
	if err != nil {
		return err
	}
	return o.output.Print(o.Out, terminal.Shown{Text: text, Data: needed})
}

// rightsData are the permissions that a package needs.
type rightsData struct {
	OperatorVersion string            `json:"operatorVersion"`
	Permissions     *kudo.Permissions `json:"permissions"`
	// Unknown lists what the permissions do not include.
	Unknown []string `json:"unknown,omitempty"`
	// Powers lists the permissions that agents refuse unless a flag allows them.
	Powers rights.Powers `json:"powers,omitempty"`
	// ReservedNamespaces lists the namespaces to which agents apply nothing unless a flag allows them.
	ReservedNamespaces []string `json:"reservedNamespaces,omitempty"`
}

// rightsOf returns the permissions that the package itself needs. Its children have their own, or those of their parent.
func rightsOf(b *bundle.Bundle) rightsData {
	root := b.Root()
	data := rightsData{OperatorVersion: bundle.VersionName(root.Pkg)}
	data.Permissions, data.Unknown = root.Pkg.Rights()
	data.Powers, data.ReservedNamespaces = rights.PowersOf(data.Permissions), rights.WrittenReserved(data.Permissions)
	for _, child := range b.RootFirst()[1:] {
		if child.Pkg.Version.Permissions == nil {
			data.Unknown = append(data.Unknown, fmt.Sprintf("child package %s declares no permissions and has those of its parent: declare them there",
				child.Pkg.Name))
		}
	}
	for _, name := range b.NotLookedFor() {
		data.Unknown = append(data.Unknown, fmt.Sprintf("child package %s is not known here: if it declares no permissions, it has those of its parent", name))
	}
	return data
}

// text returns the permissions as a part of operator.yaml, with comments.
func (d rightsData) text() (string, error) {
	permissions, err := yaml.Marshal(map[string]any{"permissions": d.Permissions})
	if err != nil {
		return "", fmt.Errorf("printing permissions: %w", err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "# The permissions that the plans of %s need.\n", d.OperatorVersion)
	for i, note := range d.Unknown {
		if i == 0 {
			text.WriteString("# Not known before the package runs:\n")
		}
		fmt.Fprintf(&text, "# - %s\n", strings.ReplaceAll(note, "\n", " "))
	}
	for i, power := range d.Powers {
		if i == 0 {
			fmt.Fprintf(&text, "# Agents refuse these permissions unless they run with %s:\n", d.Powers.Flag())
		}
		fmt.Fprintf(&text, "# - %s\n", power.What)
	}
	if reserved := strings.Join(d.ReservedNamespaces, ","); reserved != "" {
		fmt.Fprintf(&text, "# Agents apply nothing to reserved namespaces unless they run with --allow-namespaces=%s\n", reserved)
	}
	text.Write(permissions)
	return text.String(), nil
}
