package install

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/image"
)

// maxRegistries limits the image registries of an Instance, as the resource definition does.
const maxRegistries = 64

// registriesOf returns the image registries of an AddOnDeploymentConfig. As in OCM's API, entries without a mirror have no effect.
func registriesOf(config *addonv1alpha1.AddOnDeploymentConfig) (registries []kudo.ImageRegistry) {
	for _, given := range config.Spec.Registries {
		if given.Mirror != "" {
			registries = append(registries, kudo.ImageRegistry{Source: given.Source, Mirror: given.Mirror})
		}
	}
	return registries
}

// registries returns the image registries of the last AddOnDeploymentConfig that has any: they replace those of the others, as in OCM.
func (a AddOn) registries() []kudo.ImageRegistry {
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		if registries := registriesOf(a.DeploymentConfigs[name]); len(registries) > 0 {
			return registries
		}
	}
	return nil
}

// registryProblems returns why an Instance cannot have the image registries of an AddOnDeploymentConfig of that name.
func registryProblems(name types.NamespacedName, config *addonv1alpha1.AddOnDeploymentConfig) []Problem {
	invalid := func(format string, args ...any) []Problem {
		return []Problem{{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf("AddOnDeploymentConfig %s: ", name) + fmt.Sprintf(format, args...)}}
	}
	registries := registriesOf(config)
	if len(registries) > maxRegistries {
		return invalid("it has %d registries, more than %d: remove some", len(registries), maxRegistries)
	}
	for _, r := range registries {
		if problem := image.Problem(r); problem != "" {
			return invalid("registries: %s", problem)
		}
	}
	return nil
}
