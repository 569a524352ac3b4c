package ocm

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The variables of an AddOnDeploymentConfig that configure addon-agent.
const (
	variableImage       = "Image"
	variablePipeImage   = "PipeImage"
	variablePullSecrets = "ImagePullSecrets"
)

// agentVariables returns the variables of a config. All of them must be variables of addon-agent.
func agentVariables(config upstreamv1beta1.AddOnDeploymentConfigSpec) (map[string]string, error) {
	known := []string{variableImage, variablePipeImage, variablePullSecrets, variableRights, variableServiceAccount}
	variables := map[string]string{}
	var unknown []error
	for _, v := range config.CustomizedVariables {
		if variables[v.Name] = v.Value; slices.Contains(known, v.Name) {
			continue
		}
		hint := ""
		if meant := text.ClosestMatch(v.Name, known); meant != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", meant)
		}
		unknown = append(unknown, fmt.Errorf("unknown variable %s of addon-agent%s: available variables are %s",
			v.Name, hint, strings.Join(known, ", ")))
	}
	return variables, errors.Join(unknown...)
}

// agentManifests returns all manifests that a managed cluster needs to run addon-agent from that image, with those arguments, beginning with those that OCM's
// work agent needs to apply the rest. Objects whose deletion would delete users' objects are marked to be left behind: deleting a resource
// definition deletes its objects, and deleting a namespace everything in it.
func agentManifests(image string, arguments []string, config upstreamv1beta1.AddOnDeploymentConfigSpec) ([]runtime.Object, error) {
	variables, err := agentVariables(config)
	if err := errors.Join(err, checkProxy(config.ProxyConfig)); err != nil {
		return nil, err
	}
	more, err := rightsArguments(arguments, variables)
	if err != nil {
		return nil, err
	}
	arguments = slices.Concat(arguments, more)
	if pipeImage := variables[variablePipeImage]; pipeImage != "" {
		arguments = append(arguments, "--pipe-image="+pipeImage)
	}
	var objects []runtime.Object
	// The largest definitions first, as in ManifestWorks: their orphaning rules keep this order, too, and would change otherwise.
	for _, pattern := range []string{
		"klusterlet/*.yaml", "crds/kudo.dev_instances.yaml", "crds/kudo.dev_operatorversions.yaml", "crds/kudo.dev_operatorcontents.yaml",
		"agent/*.yaml", "deployment/*.yaml",
	} {
		found, err := manifests.Objects(manifests.FS, pattern, nil)
		if err != nil {
			return nil, err
		}
		for _, object := range found {
			if object, err = adapt(object, image, arguments, config); err != nil {
				return nil, err
			}
			delete(object.Object, "status")
			objects = append(objects, object)
		}
	}
	if authority := proxyAuthority(config); authority != nil {
		objects = append(objects, authority)
	}
	return objects, nil
}

// adapt returns a manifest adapted to the config.
func adapt(
	object *unstructured.Unstructured, image string, arguments []string, config upstreamv1beta1.AddOnDeploymentConfigSpec,
) (*unstructured.Unstructured, error) {
	object, err := settle(object, installNamespaceOf(config))
	if err != nil {
		return nil, err
	}
	switch object.GetKind() {
	case "CustomResourceDefinition":
		orphan(object)
	case "Namespace":
		orphan(object)
		if object.GetName() != agentNamespace {
			object.SetLabels(nil) // other add-ons may use the namespace, with pods that need more privileges
		}
	case "Deployment":
		return configureAgent(object, image, arguments, config)
	}
	return object, nil
}

// settle moves a manifest into the namespace. It replaces the name in metadata, subjects and an expression; nothing else in the manifests
// has that name.
func settle(object *unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	data, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	settled := &unstructured.Unstructured{}
	if err := settled.UnmarshalJSON(bytes.ReplaceAll(data, []byte(agentNamespace), []byte(namespace))); err != nil {
		return nil, fmt.Errorf("decoding %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return settled, nil
}

// orphan makes OCM leave the object behind when the agent is removed, with addon-framework's annotation.
func orphan(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[upstreamv1beta1.DeletionOrphanAnnotationKey] = ""
	object.SetAnnotations(annotations)
}

// configureAgent returns the Deployment adapted to the config.
func configureAgent(
	object *unstructured.Unstructured, image string, arguments []string, config upstreamv1beta1.AddOnDeploymentConfigSpec,
) (*unstructured.Unstructured, error) {
	deployment := &appsv1.Deployment{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment)
	if err != nil {
		return nil, fmt.Errorf("decoding Deployment %q: %w", object.GetName(), err)
	}
	pod := &deployment.Spec.Template.Spec
	if placement := config.NodePlacement; placement != nil {
		pod.NodeSelector, pod.Tolerations = placement.NodeSelector, placement.Tolerations
	}
	if pod.ImagePullSecrets, err = pullSecretsIn(config); err != nil {
		return nil, err
	}
	container := &pod.Containers[0]
	container.Image = image
	container.Args = append(container.Args, arguments...)
	throughProxy(pod, config)
	for _, r := range config.ResourceRequirements { // the last match wins
		if matchesContainer(r.ContainerID, "deployments", deployment.Name, container.Name) {
			container.Resources = r.Resources
		}
	}
	configured, err := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment)
	if err != nil {
		return nil, fmt.Errorf("encoding Deployment %q: %w", object.GetName(), err)
	}
	return &unstructured.Unstructured{Object: configured}, nil
}

// pullSecretsIn returns the Secrets with which the agent's image is pulled. They are in the agent's namespace on the managed cluster.
func pullSecretsIn(config upstreamv1beta1.AddOnDeploymentConfigSpec) (secrets []corev1.LocalObjectReference, err error) {
	variables, err := agentVariables(config)
	if err != nil || variables[variablePullSecrets] == "" {
		return nil, err
	}
	for name := range strings.SplitSeq(variables[variablePullSecrets], ",") {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return nil, fmt.Errorf("variable %s: %q is not the name of a Secret: %s", variablePullSecrets, name, strings.Join(wrong, ", "))
		}
		secrets = append(secrets, corev1.LocalObjectReference{Name: name})
	}
	return secrets, nil
}

// matchesContainer reports whether an id, TYPE:NAME:CONTAINER with * as a wildcard in each part, matches the container.
func matchesContainer(id string, names ...string) bool {
	patterns := strings.Split(id, ":")
	if len(patterns) != len(names) {
		return false
	}
	for i, pattern := range patterns {
		if matches, err := path.Match(pattern, names[i]); err != nil || !matches {
			return false
		}
	}
	return true
}
