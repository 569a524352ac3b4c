package change

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/parameter"
)

// givenParameters holds the parameters given on the command line, for all clusters and for single clusters.
type givenParameters struct {
	texts, files []string
	// unset lists the parameters to reset to their defaults.
	unset     []string
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
			g.byCluster[cluster] = merged(g.byCluster[cluster], map[string]string{parameter: value})
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
	return merged(g.all, g.byCluster[cluster])
}

// none reports whether no parameter changes.
func (g *givenParameters) none() bool {
	return len(g.all) == 0 && len(g.byCluster) == 0 && len(g.unset) == 0
}

// elsewhere returns an error for parameters of a cluster that is not selected.
func (g *givenParameters) elsewhere(clusters []string) error {
	for _, cluster := range slices.Sorted(maps.Keys(g.byCluster)) {
		if !slices.Contains(clusters, cluster) {
			return fmt.Errorf("parameters are given for cluster %s, which is not selected%s",
				cluster, terminal.DidYouMean(cluster, clusters))
		}
	}
	return nil
}

// changed returns the parameters with the values of the cluster set and the unset ones removed.
func (g *givenParameters) changed(existing map[string]string, cluster string) map[string]string {
	next := maps.Clone(merged(existing, g.of(cluster)))
	maps.DeleteFunc(next, func(name, _ string) bool { return slices.Contains(g.unset, name) })
	return next
}

// textsOf returns all parameters in a spec as they are given on the command line.
func textsOf(spec kudo.InstanceSpec) map[string]string {
	if len(spec.ParametersFrom) == 0 {
		return spec.Parameters
	}
	texts := make(map[string]string, len(spec.Parameters)+len(spec.ParametersFrom))
	maps.Copy(texts, spec.Parameters)
	for _, from := range spec.ParametersFrom {
		texts[from.Name] = parameter.ReferenceText(from.SecretKeyRef)
	}
	return texts
}

// setParameters sets parameters in a spec as given on the command line: those that the version defines as sensitive by reference. It returns
// an error for a sensitive one that is not a reference. Without a version, which admission requires later, references stay references.
func setParameters(spec *kudo.InstanceSpec, texts map[string]string, version *kudo.OperatorVersion) error {
	definitions := make([]kudo.Parameter, 0, len(spec.ParametersFrom))
	for _, from := range spec.ParametersFrom {
		definitions = append(definitions, kudo.Parameter{Name: from.Name, Sensitive: new(true)})
	}
	if version != nil {
		definitions = version.Spec.Parameters
	}
	plain, references, problems := parameter.References(definitions, texts)
	if len(problems) > 0 {
		return &parameter.InvalidError{Problems: problems}
	}
	spec.Parameters, spec.ParametersFrom = plain, references
	return nil
}

// setsTo reports whether a spec sets a parameter to a text as given on the command line.
func setsTo(spec kudo.InstanceSpec, name, value string) bool {
	if at := slices.IndexFunc(spec.ParametersFrom, func(f kudo.ParameterFrom) bool { return f.Name == name }); at >= 0 {
		return parameter.ReferenceText(spec.ParametersFrom[at].SecretKeyRef) == value
	}
	return spec.Parameters[name] == value
}
