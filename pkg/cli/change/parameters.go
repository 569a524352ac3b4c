package change

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// givenParameters holds the parameters given on the command line, for all clusters and for single clusters.
type givenParameters struct {
	texts, files []string
	// unset lists the parameters to reset to their defaults.
	unset []string
	// reset is set to reset all others.
	reset     bool
	all       map[string]string
	byCluster map[string]map[string]string
}

func (g *givenParameters) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&g.texts, "parameter", "p", nil,
		"Parameter to set, as NAME=VALUE, or as NAME=secret:SECRET/KEY if it is sensitive. CLUSTER/NAME=VALUE sets it for one of the\n"+
			"clusters. Can be repeated.")
	cmd.Flags().StringArrayVarP(&g.files, "parameter-file", "P", nil,
		"YAML file with parameters, as NAME: VALUE. Can be repeated. Values of -p take precedence.")
}

// parse parses the flags.
func (g *givenParameters) parse(cmd *cobra.Command) error {
	values, err := parseParameters(cmd, g.texts)
	if err != nil {
		return err
	}
	g.all, g.byCluster = map[string]string{}, map[string]map[string]string{}
	for _, file := range g.files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading --parameter-file: %w", err)
		}
		found, err := parameter.File(string(text))
		if err != nil {
			return fmt.Errorf("reading --parameter-file %s: %w", file, err)
		}
		maps.Copy(g.all, found)
	}
	for name, value := range values {
		cluster, parameter, one := strings.Cut(name, "/")
		switch {
		case !one:
			g.all[name] = value
		case cluster == "" || parameter == "":
			return terminal.Usagef(cmd, "invalid argument %q for \"--parameter\" flag: must be NAME=VALUE or CLUSTER/NAME=VALUE", name)
		default:
			g.byCluster[cluster] = change.Merge(g.byCluster[cluster], map[string]string{parameter: value})
		}
	}
	for _, name := range g.unset {
		if _, set := g.all[name]; set {
			return terminal.Usagef(cmd, "parameter %s cannot be both set and unset", name)
		}
	}
	return nil
}

// of returns the parameters of a cluster.
func (g *givenParameters) of(cluster string) map[string]string {
	return change.Merge(g.all, g.byCluster[cluster])
}

// none reports whether no parameter changes.
func (g *givenParameters) none() bool {
	return len(g.all) == 0 && len(g.byCluster) == 0 && len(g.unset) == 0 && !g.reset
}

// elsewhere returns an error for parameters of a cluster that is not selected.
func (g *givenParameters) elsewhere(clusters []string) error {
	for _, cluster := range slices.Sorted(maps.Keys(g.byCluster)) {
		if !slices.Contains(clusters, cluster) {
			return fmt.Errorf("parameters are given for cluster %s, which is not selected%s",
				cluster, text.DidYouMean(cluster, clusters))
		}
	}
	return nil
}
