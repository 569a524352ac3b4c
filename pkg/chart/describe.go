package chart

import (
	"fmt"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/tandem-addons/tandem/pkg/core/wrap"
)

// Describe returns what a package around a chart needs to know of it. A chart that cannot be loaded, or that no package can deploy, is an error.
func Describe(archive []byte) (wrap.Chart, error) {
	loaded, err := Load(archive)
	if err != nil {
		return wrap.Chart{}, err
	}
	if err := loaded.Validate(); err != nil {
		return wrap.Chart{}, fmt.Errorf("chart %q: %w", loaded.Name(), err)
	}
	of := loaded.Metadata
	if of.Type == "library" {
		return wrap.Chart{}, fmt.Errorf("chart %q is a library, which deploys nothing: choose a chart that uses it", of.Name)
	}
	described := wrap.Chart{
		Name: of.Name, Version: of.Version, AppVersion: of.AppVersion, Description: of.Description, Home: of.Home, Schema: loaded.Schema,
		Values: valuesFileOf(loaded),
	}
	for _, maintainer := range of.Maintainers {
		described.Maintainers = append(described.Maintainers, wrap.Maintainer{Name: maintainer.Name, Email: maintainer.Email})
	}
	for _, dependency := range of.Dependencies {
		described.Subcharts = append(described.Subcharts, dependency.Name)
		if dependency.Alias != "" {
			described.Subcharts = append(described.Subcharts, dependency.Alias)
		}
	}
	return described, nil
}

// valuesFileOf returns values.yaml of a chart with its comments; nil if it has none.
func valuesFileOf(loaded *helm.Chart) []byte {
	for _, file := range loaded.Raw {
		if file.Name == helmutil.ValuesfileName {
			return file.Data
		}
	}
	return nil
}
