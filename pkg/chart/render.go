package chart

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/tandem-addons/tandem/pkg/core/release"
)

// Input is what a rendering depends on, besides the objects that its templates look up.
type Input struct {
	// Archive is the chart with its subcharts, as a .tgz file.
	Archive []byte
	// Values is the YAML of the values that override the chart's.
	Values       []byte
	Release      Release
	Capabilities Capabilities
	// AssumeDefinitions adds what the chart's definitions, in crds/, are going to serve to the capabilities.
	AssumeDefinitions bool
}

// Release is what templates read as .Release.
type Release struct {
	Name, Namespace string
	// Upgrade is false until the release was installed once.
	Upgrade  bool
	Revision int
}

// Capabilities is what templates read as .Capabilities.
type Capabilities struct {
	// KubeVersion is the version of the API server, such as v1.37.2.
	KubeVersion string
	// APIVersions are those that the API server serves, such as apps/v1 and apps/v1/Deployment.
	APIVersions []string
}

// Lookup answers Helm's function lookup: an object, a list if name is empty, or an empty map if there is none.
type Lookup func(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error)

// notes is the suffix of the names of templates that render no object.
const notes = "NOTES.txt"

// render renders a chart in this process: equal to `helm install` or `helm upgrade` with --dry-run=server, object for object.
func render(ctx context.Context, in Input, lookup Lookup) (*release.Rendering, error) {
	loaded, err := load(in.Archive)
	if err != nil {
		return nil, err
	}
	given, err := loader.LoadValues(bytes.NewReader(in.Values))
	if err != nil {
		return nil, fmt.Errorf("the values are invalid: %w", err)
	}
	capabilities, err := in.Capabilities.of(loaded)
	if err != nil {
		return nil, err
	}
	if err := helmutil.ProcessDependencies(loaded, given); err != nil {
		return nil, fmt.Errorf("processing the dependencies of chart %q: %w", loaded.Name(), err)
	}
	definitions, err := definitionsOf(loaded)
	if err != nil {
		return nil, err
	}
	if in.AssumeDefinitions {
		capabilities.APIVersions = append(capabilities.APIVersions, release.Rendering{Definitions: definitions}.Serves()...)
	}
	values, err := valuesOf(loaded, given, in.Release, capabilities)
	if err != nil {
		return nil, err
	}
	e := engine.Engine{CustomTemplateFuncs: map[string]any{"lookup": func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		return lookup(ctx, apiVersion, kind, namespace, name)
	}}}
	files, err := e.RenderWithContext(ctx, loaded, values)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, notes) {
			delete(files, name)
		}
	}
	return markInvalid(outputOf(definitions, files))
}

// valuesOf returns what templates read: the values of a chart with those that are given, which have to conform to its schemas.
func valuesOf(loaded *helm.Chart, given map[string]any, of Release, capabilities *common.Capabilities) (common.Values, error) {
	values, err := util.ToRenderValuesWithSchemaValidation(loaded, given, of.options(), capabilities, true)
	if err != nil {
		return nil, fmt.Errorf("merging the values of chart %q: %w", loaded.Name(), err)
	}
	merged, err := values.Table("Values")
	if err != nil {
		return nil, fmt.Errorf("merging the values of chart %q: %w", loaded.Name(), err)
	}
	if problems := violations(loaded, merged); len(problems) > 0 {
		return nil, fmt.Errorf("the values do not conform to the schema: %s", strings.Join(problems, "; "))
	}
	return values, nil
}

// DefaultCapabilities are those of Helm without a cluster: of the version of Kubernetes that it is built for.
func DefaultCapabilities() Capabilities {
	known := common.DefaultCapabilities
	return Capabilities{KubeVersion: known.KubeVersion.Version, APIVersions: slices.Clone(known.APIVersions)}
}

// VersionError reports that a chart does not support the version of Kubernetes.
type VersionError struct{ Chart, Required, Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("chart %q requires Kubernetes %s, and the cluster has %s", e.Chart, e.Required, e.Version)
}

// of returns the capabilities in Helm's form, or an error if the chart does not support the version of Kubernetes.
func (c Capabilities) of(loaded *helm.Chart) (*common.Capabilities, error) {
	version, err := common.ParseKubeVersion(c.KubeVersion)
	if err != nil {
		return nil, fmt.Errorf("the version of the API server is invalid: %w", err)
	}
	if required := loaded.Metadata.KubeVersion; required != "" && !helmutil.IsCompatibleRange(required, version.String()) {
		return nil, &VersionError{Chart: loaded.Name(), Required: required, Version: version.Version}
	}
	all := common.DefaultCapabilities.Copy()
	all.KubeVersion, all.APIVersions = *version, slices.Clone(c.APIVersions)
	return all, nil
}

func (r Release) options() common.ReleaseOptions {
	return common.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: r.Revision, IsInstall: !r.Upgrade, IsUpgrade: r.Upgrade}
}
