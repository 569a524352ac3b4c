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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// VersionOptions say whose versions are shown, and how.
type VersionOptions struct {
	*hubclient.Factory
	where      hubclient.Selection
	clientOnly bool
	output     *terminal.Output
}

// NewCmdVersion returns the command; runF, if given, replaces runVersion.
func NewCmdVersion(f *hubclient.Factory, runF func(context.Context, *VersionOptions) error) *cobra.Command {
	o := &VersionOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runVersion
	}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the plugin, of addon-manager and of the agents",
		Long: "Version shows the version of the plugin, that of addon-manager on the hub, and on how many managed clusters agents of which\n" +
			"version run. Where they differ it says what to upgrade. With --client it asks nobody. It reads the hub only.",
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
	cmd.Flags().BoolVar(&o.clientOnly, "client", false, "the plugin's version alone, without asking the hub")
	o.output.AddFlag(cmd)
	return cmd
}

func runVersion(ctx context.Context, o *VersionOptions) error {
	found := Versions{Client: o.Version}
	var fault error
	if !o.clientOnly {
		fault = found.Gather(ctx, o.Factory, o.where)
	}
	// What is known is shown in any case: whoever asks may be about to say so in a bug report.
	if err := o.output.Print(o.Out, terminal.Shown{Text: found.Text(o.output.Format == terminal.FormatWide), Data: found}); err != nil {
		return err
	}
	return hubclient.Advise(fault, o.ManagerNamespace())
}

// Versions are what `version` shows. What is not known is empty.
type Versions struct {
	Client string `json:"client"`
	// Hub is addon-manager's.
	Hub    string         `json:"hub,omitempty"`
	Agents []agentVersion `json:"agents,omitempty"`
	// Skew says what does not fit together.
	Skew []string `json:"skew,omitempty"`
}

// agentVersion is on which clusters agents of a version run. It is empty for clusters whose agent does not say it, or that have none.
type agentVersion struct {
	Version  string   `json:"version,omitempty"`
	Clusters []string `json:"clusters"`
}

// Gather reads what the hub knows.
func (v *Versions) Gather(ctx context.Context, f *hubclient.Factory, where hubclient.Selection) error {
	c, err := f.Hub()
	if err != nil {
		return err
	}
	var ofManager, ofAgents error // whoever may not read the one may well read the other
	v.Hub, ofManager = managerVersion(ctx, c, f.ManagerNamespace())
	v.Agents, ofAgents = agentVersions(ctx, c, where)
	v.Skew = v.skew()
	return errors.Join(ofManager, ofAgents)
}

// managerVersion is what addon-manager says on the ConfigMap of its webhooks; empty where there is none.
func managerVersion(ctx context.Context, c client.Reader, namespace string) (string, error) {
	trust := &metav1.PartialObjectMetadata{}
	trust.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: addonv1alpha1.ManagerConfigMap}, trust)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the version of addon-manager: %w", err)
	}
	return trust.Labels[addonv1alpha1.LabelVersion], nil
}

// agentVersions are the versions that agents say on their leases, sorted, the clusters without one last.
func agentVersions(ctx context.Context, c client.Reader, where hubclient.Selection) ([]agentVersion, error) {
	var clusters []string
	said := map[string]string{}
	if where.Everything() {
		there, err := hubclient.GatherClusters(ctx, c, "", labels.Everything())
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
	for _, namespace := range hubclient.NamespacesOf(clusters) {
		err := eachLease(ctx, c, namespace, func(lease *metav1.PartialObjectMetadata) {
			if _, asked := said[lease.Namespace]; asked || clusters == nil {
				said[lease.Namespace] = lease.Labels[addonv1alpha1.LabelVersion]
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return grouped(said), nil
}

// eachLease visits the leases of agents in a namespace, or in all.
func eachLease(ctx context.Context, c client.Reader, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	for next, first := "", true; first || next != ""; first = false {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"})
		err := c.List(ctx, page, client.InNamespace(namespace), client.MatchingFields{"metadata.name": addonv1alpha1.AgentLease},
			client.Limit(hubclient.PageSize), client.Continue(next))
		switch {
		case apierrors.IsForbidden(err) && namespace == metav1.NamespaceAll:
			return fmt.Errorf("reading the versions of the agents: %w: name clusters by --cluster", err)
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

// grouped are clusters by version.
func grouped(said map[string]string) []agentVersion {
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

// skew names what is of another version than addon-manager, which is upgraded before the agents are.
func (v *Versions) skew() []string {
	if v.Hub == "" {
		return nil
	}
	var texts []string
	if client := addonv1alpha1.VersionLabel(v.Client); client != v.Hub {
		texts = append(texts, fmt.Sprintf("the plugin is %s, and addon-manager %s", v.Client, v.Hub))
	}
	for _, agents := range v.Agents {
		if agents.Version != "" && agents.Version != v.Hub {
			texts = append(texts, fmt.Sprintf("addon-agent is %s on %s, and addon-manager %s", agents.Version, terminal.OnClusters(agents.Clusters), v.Hub))
		}
	}
	return texts
}

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
			"addon-manager is upgraded first, then the agents; the plugin may be of any version between theirs.\n"
	}
	return text
}
