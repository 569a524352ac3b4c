package progress

import (
	"slices"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// Values is the output of `values`: the effective parameters of an Instance.
type Values struct {
	Instance        string  `json:"instance"`
	Cluster         string  `json:"cluster"`
	OperatorVersion string  `json:"operatorVersion"`
	Parameters      []Value `json:"parameters"`
}

// Source is what sets a parameter.
type Source string

// The sources of parameters.
const (
	// SourceDefault is the default of the package.
	SourceDefault Source = "Default"
	// SourceInstance is the spec of the Instance.
	SourceInstance Source = "Instance"
	// SourceParent is the parent of a child Instance.
	SourceParent Source = "Parent"
	// SourceConfig and SourceConfigMap are configs of the add-on.
	SourceConfig    Source = "AddOnDeploymentConfig"
	SourceConfigMap Source = "ConfigMap"
	// SourceNone means that the parameter has neither a value nor a default.
	SourceNone Source = "None"
)

// Value is the effective value of a parameter.
type Value struct {
	Name string `json:"name"`
	// Value of a sensitive parameter is a reference, secret:NAME/KEY, and never the value itself.
	Value     string `json:"value"`
	Sensitive bool   `json:"sensitive,omitempty"`
	Source    Source `json:"source"`
	// Object is the object that sets the parameter, as NAMESPACE/NAME; empty for a default.
	Object string `json:"object,omitempty"`
	// Pending is set if that object has another value by now, which the Instance does not have yet.
	Pending bool `json:"pending,omitempty"`
}

// ValuesOf returns the effective parameters of an Instance, in the package's order. settings are those of the configs of its add-on; nil if it
// has none.
func ValuesOf(version *kudo.OperatorVersion, instance *kudo.Instance, settings map[string]install.Setting) Values {
	values := Values{Instance: instance.Name, Cluster: instance.Namespace, OperatorVersion: version.Name, Parameters: []Value{}}
	for i := range version.Spec.Parameters {
		p := &version.Spec.Parameters[i]
		values.Parameters = append(values.Parameters, valueOf(p, instance, settings))
	}
	return values
}

// valueOf returns the effective value of a parameter.
func valueOf(p *kudo.Parameter, instance *kudo.Instance, settings map[string]install.Setting) Value {
	stored, given := instance.Spec.Parameters[p.Name]
	value := Value{Name: p.Name, Sensitive: p.IsSensitive(), Value: parameter.InForce(p, instance.Spec.Parameters)}
	if value.Sensitive && value.Value != "" {
		value.Value = sensitive.Mask // admission refuses such values, but may not have been in place
	}
	at := slices.IndexFunc(instance.Spec.ParametersFrom, func(f kudo.ParameterFrom) bool { return f.Name == p.Name })
	if at >= 0 {
		stored, given = parameter.ReferenceText(instance.Spec.ParametersFrom[at].SecretKeyRef), true
		value.Value = stored
	}
	value.Source, value.Object = sourceOf(p, instance, given)
	setting, isSet := settings[p.Name]
	if isSet && given {
		value.Source, value.Object = sourceOfSetting(setting)
	}
	value.Pending = settings != nil && (isSet != given || isSet && setting.Value != stored)
	return value
}

// sourceOfSetting returns the source of a parameter that a config sets.
func sourceOfSetting(setting install.Setting) (Source, string) {
	if setting.Resource == addonv1alpha1.ResourceConfigMaps {
		return SourceConfigMap, setting.String()
	}
	return SourceConfig, setting.String()
}

// sourceOf returns the source of a parameter that no config sets.
func sourceOf(p *kudo.Parameter, instance *kudo.Instance, given bool) (Source, string) {
	switch parent := instance.Parent(); {
	case given && parent != nil:
		return SourceParent, instance.Namespace + "/" + parent.Name
	case given:
		return SourceInstance, instance.Namespace + "/" + instance.Name
	case p.Default != nil:
		return SourceDefault, ""
	default:
		return SourceNone, ""
	}
}
