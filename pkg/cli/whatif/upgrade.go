package whatif

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// UpgradeOptions holds the arguments and flags of the command.
type UpgradeOptions struct {
	*hubclient.Factory
	where          hubclient.Selection
	addOn, version string
	output         *terminal.Output
}

// NewCmdUpgrade returns the command. If runF is set, it replaces runUpgrade.
func NewCmdUpgrade(f *hubclient.Factory, runF func(context.Context, *UpgradeOptions) error) *cobra.Command {
	o := &UpgradeOptions{Factory: f, output: terminal.NewOutput(terminal.FormatWide)}
	if runF == nil {
		runF = runUpgrade
	}
	const of = "the add-on would be upgraded on"
	cmd := &cobra.Command{
		Use:   "upgrade ADDON VERSION --cluster CLUSTER[,CLUSTER]",
		Short: "Show where a version of an add-on would start, where it would wait, and which add-ons it affects",
		Long: "Show what an upgrade of an add-on to VERSION would do on the selected clusters that have the add-on: where the version would start at\n" +
			"once, where it would wait and for what, where it would be refused, and where it already runs. The output also names dependencies\n" +
			"whose running version VERSION does not accept, and dependents whose constraints on the add-on would begin or cease to hold.\n" +
			"VERSION is the version of the package, or the name of the OperatorVersion. Select the clusters with --cluster, --selector,\n" +
			"--placement or --all-clusters. The command reads only the hub and writes nothing.\n\n" +
			"Clusters with the same effects form a group. The worst group comes first. 'kubectl addon upgrade --dry-run' shows the plans\n" +
			"and objects.",
		Example: "  kubectl addon what-if upgrade zookeeper 0.4.0 --all-clusters\n" +
			"  kubectl addon what-if upgrade zookeeper zookeeper-3.9.0-0.4.0 --selector region=eu -o json",
		Args: terminal.Exactly("ADDON", "VERSION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.where.Require(cmd, of); err != nil {
				return err
			}
			if err := refuseNamespace(cmd); err != nil {
				return err
			}
			if o.addOn, o.version = args[0], args[1]; o.version == "" {
				return terminal.Usagef(cmd, "VERSION must not be empty: use the version of the package, or the name of the OperatorVersion")
			}
			return runF(cmd.Context(), o)
		},
	}
	o.where.AddFlags(cmd, of)
	o.output.AddFlag(cmd)
	return cmd
}

func runUpgrade(ctx context.Context, o *UpgradeOptions) error {
	c, err := o.Hub()
	if err != nil {
		return err
	}
	data, err := gatherUpgrades(ctx, c, o)
	if err != nil {
		return hubclient.Advise(err, strings.Join(o.where.Names, ","))
	}
	return o.output.Print(o.Out, terminal.Shown{Text: upgradesText(data, o.output.Format == terminal.FormatWide), Data: data})
}

// gatherUpgrades reads the clusters. It returns an error if none of them has the add-on, or if the version exists for none of them.
func gatherUpgrades(ctx context.Context, c hubclient.Hub, o *UpgradeOptions) (whatif.Upgrades, error) {
	clusters, err := o.where.Clusters(ctx, c)
	if err != nil {
		return whatif.Upgrades{}, err
	}
	state, err := change.Gather(ctx, read.NewCachingReader(content.NewFillingReader(c)), clusters)
	if err != nil {
		return whatif.Upgrades{}, err
	}
	found, err := o.upgrades(ctx, state, clusters)
	if err != nil {
		return whatif.Upgrades{}, err
	}
	data := whatif.UpgradesOf(o.addOn, o.version, found)
	if len(o.where.Names) > 0 {
		data.Without = slices.DeleteFunc(clusters, func(cluster string) bool { return state.View(cluster).AddOns[o.addOn] != nil })
	}
	return data, nil
}

// upgrades returns the upgrades on the clusters that have the add-on.
func (o *UpgradeOptions) upgrades(ctx context.Context, state *change.State, clusters []string) ([]whatif.Upgrade, error) {
	definitions := state.View(clusters[0]).Definitions
	if err := change.CheckDefined(definitions, o.addOn); err != nil {
		return nil, err
	}
	if !definitions[o.addOn].PlanManaged {
		return nil, fmt.Errorf("add-on %q is not plan-based; change its version in the way that its provider documents", o.addOn)
	}
	var found []whatif.Upgrade
	var absent error
	isAbsentEverywhere := true
	for _, cluster := range clusters {
		upgrade, err := state.WhatIfUpgrade(ctx, client.ObjectKey{Namespace: cluster, Name: o.addOn}, change.Choice{Version: o.version})
		if errors.Is(err, change.ErrAbsent) {
			continue
		}
		if errors.As(err, new(*tree.AbsenceError)) {
			absent = err
		} else {
			isAbsentEverywhere = false
		}
		found = append(found, upgrade)
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("add-on %q is not enabled on any of the %d selected clusters, or is being removed; see 'kubectl addon get %s'",
			o.addOn, len(clusters), text.Word(o.addOn))
	case isAbsentEverywhere:
		return nil, absent
	}
	return found, nil
}
