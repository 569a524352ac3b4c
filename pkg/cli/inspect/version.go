package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// VersionOptions holds the arguments and flags of the command.
type VersionOptions struct {
	*hubclient.Factory
	where      hubclient.Selection
	clientOnly bool
	output     *terminal.Output
}

// NewCmdVersion returns the command. If runF is set, it replaces runVersion.
func NewCmdVersion(f *hubclient.Factory, runF func(context.Context, *VersionOptions) error) *cobra.Command {
	o := &VersionOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runVersion
	}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the plugin, addon-manager and the agents",
		Long: "Show the versions of the plugin, of addon-manager on the hub, and of the agents with the number of managed clusters that run\n" +
			"each. If the versions differ, the output states what to upgrade.\n\n" +
			"The command contacts only the hub. With --client, it contacts no cluster.",
		Example: "  kubectl addon version\n" +
			"  kubectl addon version --client\n" +
			"  kubectl addon version --selector region=eu -o wide",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.where.Check(cmd); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, "the agents are on")
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "Only show the version of the plugin, without contacting the hub.")
	o.output.AddFlag(cmd)
	return cmd
}

func runVersion(ctx context.Context, o *VersionOptions) error {
	found := Versions{Client: o.Version}
	var problem error
	if !o.clientOnly {
		problem = found.Gather(ctx, o.Factory, o.where)
	}
	// Known versions are printed even after an error, because they belong in a bug report.
	if err := o.output.Print(o.Out, terminal.Shown{Text: found.Text(o.output.Format == terminal.FormatWide), Data: found}); err != nil {
		return err
	}
	return hubclient.Advise(problem, o.ManagerNamespace())
}

// Versions is the output of `version`. Unknown versions are empty.
type Versions struct {
	Client string `json:"client"`
	// Hub is the version of addon-manager.
	Hub    string         `json:"hub,omitempty"`
	Agents []agentVersion `json:"agents,omitempty"`
	// Skew lists versions that do not match.
	Skew []string `json:"skew,omitempty"`
}

// agentVersion lists the clusters whose agents run a version. The version is empty for clusters without an agent, or with an agent that
// does not report one.
type agentVersion struct {
	Version  string   `json:"version,omitempty"`
	Clusters []string `json:"clusters"`
}

// Gather reads the versions known to the hub.
func (v *Versions) Gather(ctx context.Context, f *hubclient.Factory, where hubclient.Selection) error {
	c, err := f.Hub()
	if err != nil {
		return err
	}
	var ofManager, ofAgents error // a user who may not read one may be able to read the other
	v.Hub, ofManager = managerVersion(ctx, c, f.ManagerNamespace())
	v.Agents, ofAgents = agentVersions(ctx, c, where)
	v.Skew = v.skew()
	return errors.Join(ofManager, ofAgents)
}

// managerVersion returns the version in the ConfigMap of addon-manager's webhooks, or an empty string.
func managerVersion(ctx context.Context, c client.Reader, namespace string) (string, error) {
	trust := &metav1.PartialObjectMetadata{}
	trust.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: addonv1alpha1.ManagerConfigMap}, trust)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the version of addon-manager: %w", err)
	}
	return trust.Labels[addonv1alpha1.LabelVersion], nil
}

// agentVersions returns the versions in the agents' leases, sorted, with clusters without a version last.
func agentVersions(ctx context.Context, c client.Reader, where hubclient.Selection) ([]agentVersion, error) {
	var clusters []string
	said := map[string]string{}
	if where.IsAll() {
		there, err := read.Clusters(ctx, c, "", labels.Everything())
		if err != nil {
			return nil, err
		}
		for _, cluster := range there.Names {
			said[cluster] = ""
		}
	} else {
		var err error
		if clusters, err = where.Clusters(ctx, c); err != nil {
			return nil, err
		}
		for _, cluster := range clusters {
			said[cluster] = ""
		}
	}
	for _, namespace := range read.NamespacesOf(clusters) {
		err := eachLease(ctx, c, namespace, func(lease *coordinationv1.Lease) {
			if _, asked := said[lease.Namespace]; asked || clusters == nil {
				said[lease.Namespace] = lease.Labels[addonv1alpha1.LabelVersion]
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return groupByVersion(said), nil
}

// eachLease visits the leases of agents in a namespace, or in all.
func eachLease(ctx context.Context, c client.Reader, namespace string, visit func(*coordinationv1.Lease)) error {
	for next, first := "", true; first || next != ""; first = false {
		page := &coordinationv1.LeaseList{}
		err := c.List(ctx, page, client.InNamespace(namespace), client.MatchingFields{"metadata.name": addonv1alpha1.AgentLease},
			client.Limit(read.PageSize), client.Continue(next))
		switch {
		case apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll:
			return fmt.Errorf("reading the versions of the agents: %w; select clusters with --cluster", err)
		case err != nil:
			return fmt.Errorf("reading the versions of the agents: %w", err)
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		next = page.Continue
	}
	return nil
}

// groupByVersion returns the clusters grouped by version.
func groupByVersion(said map[string]string) []agentVersion {
	by := map[string][]string{}
	for _, cluster := range slices.Sorted(maps.Keys(said)) {
		by[said[cluster]] = append(by[said[cluster]], cluster)
	}
	var found []agentVersion
	for _, version := range slices.Sorted(maps.Keys(by)) {
		found = append(found, agentVersion{Version: version, Clusters: by[version]})
	}
	if len(found) > 0 && found[0].Version == "" {
		found = append(found[1:], found[0])
	}
	return found
}

// skew lists versions that differ from addon-manager's. addon-manager is upgraded before the agents.
func (v *Versions) skew() []string {
	if v.Hub == "" {
		return nil
	}
	var texts []string
	if client := addonv1alpha1.VersionLabel(v.Client); client != v.Hub {
		texts = append(texts, fmt.Sprintf("the plugin is %s and addon-manager is %s", v.Client, v.Hub))
	}
	for _, agents := range v.Agents {
		if agents.Version != "" && agents.Version != v.Hub {
			texts = append(texts, fmt.Sprintf("addon-agent is %s on %s and addon-manager is %s",
				agents.Version, terminal.OnClusters(agents.Clusters), v.Hub))
		}
	}
	return texts
}

// Text returns the versions as a table; wide lists all clusters.
func (v *Versions) Text(wide bool) string {
	const unknown = "unknown"
	rows := [][]string{{"kubectl-addon", v.Client, ""}}
	if v.Hub != "" || v.Agents != nil {
		rows = append(rows, []string{"addon-manager", cmp.Or(v.Hub, unknown), ""})
	}
	for _, agents := range v.Agents {
		rows = append(rows, []string{"addon-agent", cmp.Or(agents.Version, unknown), terminal.ClustersText(agents.Clusters, wide)})
	}
	text := terminal.Table([]string{"PROGRAM", "VERSION", "CLUSTERS"}, rows)
	if len(v.Skew) > 0 {
		text += "\nThe versions differ: " + strings.Join(v.Skew, "; ") + ".\n" +
			"Upgrade addon-manager first, then the agents; the plugin may have any version between theirs.\n"
	}
	return text
}
