package render

import (
	"maps"
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
)

// Guarded returns the definitions and values of parameters, and beside them those of the facts of the cluster if a values file uses any: in what a
// chart renders, both must stay values. WithValues takes such values.
func (c Context) Guarded(file string, values map[string]string) ([]kudo.Parameter, map[string]string) {
	if !facts.Use(c.Version.Templates[file]) {
		return c.Version.Parameters, values
	}
	defs, all := slices.Clone(c.Version.Parameters), maps.Clone(values)
	for _, variable := range facts.Known(c.Cluster, c.KubernetesVersion) {
		defs = append(defs, facts.Definition(variable))
		all[variable] = facts.Text(variable, c.Cluster, c.KubernetesVersion)
	}
	return defs, all
}

// WithValues returns the context with values of parameters, including sensitive ones, and of facts of the cluster.
func (c Context) WithValues(values map[string]string) (Context, error) {
	c.Parameters, c.Sensitive = maps.Clone(values), nil
	for _, variable := range facts.Known(c.Cluster, c.KubernetesVersion) {
		value, given := values[variable]
		if !given {
			continue
		}
		delete(c.Parameters, variable)
		var err error
		if c.Cluster, c.KubernetesVersion, err = facts.With(variable, value, c.Cluster, c.KubernetesVersion); err != nil {
			return c, err
		}
	}
	return c, nil
}
