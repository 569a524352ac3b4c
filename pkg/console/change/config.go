package change

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

var configResource = upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}

// withConfig returns the step with the parameters as an AddOnDeploymentConfig that the add-on refers to.
func (s Step) withConfig(ctx context.Context, reader client.Reader, definition *addonv1alpha1.ClusterManagementAddOn, given Desired) (Step, error) {
	own := install.OwnConfig(s.Wanted.Namespace, s.Wanted.Name)
	if err := checkNotRolledOut(definition, s.Wanted, configResource, "parameters"); err != nil {
		return s, err
	}
	if err := checkLengths(given.Parameters); err != nil {
		return s, fmt.Errorf("add-on %q on cluster %s: %w", s.Wanted.Name, s.Wanted.Namespace, err)
	}
	wanted := s.Wanted.DeepCopy()
	if err := addReference(definition, wanted, own); err != nil {
		return s, err
	}
	config := &addonv1alpha1.AddOnDeploymentConfig{}
	switch err := reader.Get(ctx, own, config); {
	case err == nil:
		s.CurrentConfig = config
	case !apierrors.IsNotFound(err):
		return s, fmt.Errorf("reading AddOnDeploymentConfig %s: %w", own, err)
	}
	if s.CurrentConfig == nil && len(given.Parameters) == 0 { // there is nothing to unset
		return s, nil
	}
	s.Wanted = wanted
	s.Config, s.Parameters = withVariables(s.CurrentConfig, own, given), given.Parameters
	return s, nil
}

// maxVariable is the number of characters of a variable's value that OCM's AddOnDeploymentConfig accepts.
const maxVariable = 1024

// checkLengths returns an error that names the parameters whose values an AddOnDeploymentConfig does not accept.
func checkLengths(values map[string]string) error {
	invalid := parameter.InvalidError{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if count := utf8.RuneCountInString(values[name]); count > maxVariable {
			invalid.Problems = append(invalid.Problems, parameter.Problem{Parameter: name, Reason: fmt.Sprintf(
				"its value has %d characters, and an AddOnDeploymentConfig holds at most %d: store it under this key in a ConfigMap with label %s=true, "+
					"and name that in spec.configs of the add-on (group \"\", resource configmaps)",
				count, maxVariable, kudo.LabelConfiguration)})
		}
	}
	if len(invalid.Problems) == 0 {
		return nil
	}
	return &invalid
}

// keptRemarks returns a warning about the AddOnDeploymentConfig that an earlier installation of the add-on has left: which of its parameters
// apply again, or are reset, or that none applies.
func (s Step) keptRemarks(ctx context.Context, reader client.Reader, definition *addonv1alpha1.ClusterManagementAddOn) []string {
	own := install.OwnConfig(s.Wanted.Namespace, s.Wanted.Name)
	if refersTo(definition, s.Current, own) {
		return nil
	}
	if s.Config != nil {
		return s.usedAgain(own.Name)
	}
	kept := &addonv1alpha1.AddOnDeploymentConfig{}
	if s.Current != nil || reader.Get(ctx, own, kept) != nil || len(kept.Spec.CustomizedVariables) == 0 {
		return nil // one that cannot be read cannot be changed either
	}
	return []string{fmt.Sprintf("AddOnDeploymentConfig %s of an earlier installation is not used (it sets %s): -p refers to it again, with all its "+
		"parameters unless --reset is set; 'kubectl delete addondeploymentconfig %[1]s -n %[3]s' deletes it",
		own.Name, text.List(variableTexts(kept, nil), maxListed), own.Namespace)}
}

// usedAgain returns a warning about the parameters of the config of an earlier installation that apply again, or are reset.
func (s Step) usedAgain(config string) []string {
	if s.CurrentConfig == nil {
		return nil
	}
	if again := variableTexts(s.Config, s.Parameters); len(again) > 0 {
		return []string{fmt.Sprintf("these parameters apply too, because AddOnDeploymentConfig %s of an earlier installation sets them: %s; "+
			"--reset resets those that are not given", config, text.List(again, maxListed))}
	}
	if before := variableTexts(s.CurrentConfig, s.Parameters); len(before) > 0 {
		return []string{fmt.Sprintf("these parameters of an earlier installation are reset: %s", text.List(before, maxListed))}
	}
	return nil
}

// refersTo reports whether the add-on, which may be nil, takes its parameters from that AddOnDeploymentConfig.
func refersTo(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, config types.NamespacedName) bool {
	referent := upstream.ConfigReferent(config)
	if addOn != nil && slices.Contains(addOn.Spec.Configs, upstream.AddOnConfig{ConfigGroupResource: configResource, ConfigReferent: referent}) {
		return true
	}
	return definition != nil && slices.ContainsFunc(definition.Spec.SupportedConfigs, func(c upstream.ConfigMeta) bool {
		return c.ConfigGroupResource == configResource && c.DefaultConfig != nil && *c.DefaultConfig == referent
	})
}

// maxShownValue is the number of characters of a parameter's value that a warning shows.
const maxShownValue = 32

// variableTexts returns the config's variables without the given parameters, as NAME=VALUE.
func variableTexts(config *addonv1alpha1.AddOnDeploymentConfig, given map[string]string) []string {
	var texts []string
	for _, variable := range config.Spec.CustomizedVariables {
		if _, isGiven := given[variable.Name]; !isGiven {
			texts = append(texts, variable.Name+"="+text.ShellWord(text.Truncate(variable.Value, maxShownValue)))
		}
	}
	return texts
}

// addReference makes the add-on refer to its AddOnDeploymentConfig own, after the default one. It returns an error if the add-on already refers to
// another one, which only its author should change.
func addReference(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, own types.NamespacedName) error {
	supported := definition.Spec.SupportedConfigs
	at := slices.IndexFunc(supported, func(c upstream.ConfigMeta) bool { return c.ConfigGroupResource == configResource })
	if at < 0 {
		return fmt.Errorf("add-on %q does not support parameters: its ClusterManagementAddOn does not list %s in spec.supportedConfigs",
			addOn.Name, configResource.Resource)
	}
	last, named := install.LastConfig(addOn)
	switch {
	case named && last == own:
		return nil
	case named:
		return fmt.Errorf("add-on %q on cluster %s takes its parameters from AddOnDeploymentConfig %s; change them there "+
			"('kubectl edit addondeploymentconfig %s -n %s')", addOn.Name, addOn.Namespace, last, last.Name, last.Namespace)
	case supported[at].DefaultConfig != nil:
		addOn.Spec.Configs = append(addOn.Spec.Configs, upstream.AddOnConfig{
			ConfigGroupResource: configResource, ConfigReferent: *supported[at].DefaultConfig,
		})
	}
	addOn.Spec.Configs = append(addOn.Spec.Configs, upstream.AddOnConfig{
		ConfigGroupResource: configResource, ConfigReferent: upstream.ConfigReferent(own),
	})
	return nil
}

// versionResource is the resource of an OperatorVersion in the configs of an add-on.
var versionResource = upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}

// CheckVersionNotRolledOut returns an error if a Placement provides the OperatorVersion of the add-on. Its message names the command that changes that.
func CheckVersionNotRolledOut(definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	return checkNotRolledOut(definition, addOn, versionResource, "OperatorVersion")
}

// checkNotRolledOut returns an error if a Placement provides a config of the add-on, because a reference in the add-on itself would override it.
func checkNotRolledOut(
	definition *addonv1alpha1.ClusterManagementAddOn, addOn *addonv1alpha1.ManagedClusterAddOn, resource upstream.ConfigGroupResource, what string,
) error {
	config, placement, rolledOut := install.RolledOutConfig(definition, addOn, resource)
	if !rolledOut {
		return nil
	}
	return fmt.Errorf("add-on %q on cluster %s takes its %s from %s %s/%s, which OCM applies to all clusters that Placement %s selects; change that "+
		"object, or refer to another one in spec.installStrategy ('kubectl edit clustermanagementaddon %s')",
		addOn.Name, addOn.Namespace, what, resource.Resource, config.Namespace, config.Name, placement, addOn.Name)
}

// withVariables returns the config with variables set and removed, or a new config if there is none.
func withVariables(
	current *addonv1alpha1.AddOnDeploymentConfig, name types.NamespacedName, given Desired,
) *addonv1alpha1.AddOnDeploymentConfig {
	config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if current != nil {
		config = current.DeepCopy()
	}
	variables := config.Spec.CustomizedVariables
	if given.Reset {
		variables = nil
	}
	for _, name := range slices.Sorted(maps.Keys(given.Parameters)) {
		at := slices.IndexFunc(variables, func(v upstream.CustomizedVariable) bool { return v.Name == name })
		if at < 0 {
			at, variables = len(variables), append(variables, upstream.CustomizedVariable{Name: name})
		}
		variables[at].Value = given.Parameters[name]
	}
	config.Spec.CustomizedVariables = slices.DeleteFunc(variables, func(v upstream.CustomizedVariable) bool { return slices.Contains(given.Unset, v.Name) })
	return config
}
