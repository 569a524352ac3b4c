package v1beta1

import (
	"fmt"
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// FromV1alpha1 converts an object of v1alpha1 to this version; ToV1alpha1 converts in the other direction. Both convert the
// fields that differ like the functions of OCM's API module, and the install namespace and configuration references of a
// ManagedClusterAddOn like OCM's webhook; every other field stays as written. Typed conversion would drop `dependencies: []`
// and `agentInstallNamespace: ""` and add `lastAppliedConfig: null`: server-side applies of the two versions would then never
// settle, and an empty install namespace would become the default one.
//
// The given object is not changed; the result shares unchanged fields with it. FromV1alpha1 returns an error if the kind does
// not exist in both versions, or if a field does not match its schema.
//
// As with upstream's conversion, a round trip loses:
//   - of a ClusterManagementAddOn in v1alpha1: spec.addOnConfiguration; in v1beta1: the namespace of a default configuration
//     without a name, which is returned with upstream's reserved name;
//   - of a ManagedClusterAddOn in v1alpha1: status.addOnConfiguration, the name and namespace of a configuration reference if
//     they differ from its desired configuration, organization units for the API server's signer, the driver if no
//     registration is for that signer, and an annotation with the name that carries the install namespace;
//   - of a ManagedClusterAddOn in v1beta1: the part of a registration that does not belong to its type, and all drivers but the
//     first.
func FromV1alpha1(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return convert(object, GroupVersion, map[string][]change{
		"ClusterManagementAddOn": {
			within("spec",
				drop("addOnConfiguration"),
				rename("supportedConfigs", "defaultConfigs"), each("defaultConfigs", flattenDefaultConfig)),
			within("status", rename("defaultconfigReferences", "defaultConfigReferences")),
		},
		"ManagedClusterAddOn": {
			installNamespaceToAnnotation,
			within("status",
				drop("addOnConfiguration"),
				each("configReferences", drop("name", "namespace")),
				registrationsFromV1alpha1, drop("kubeClientDriver")),
		},
		"AddOnDeploymentConfig": {},
	})
}

// ToV1alpha1 converts an object of this version to v1alpha1; see FromV1alpha1.
func ToV1alpha1(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return convert(object, addonv1alpha1.GroupVersion, map[string][]change{
		"ClusterManagementAddOn": {
			within("spec",
				rename("defaultConfigs", "supportedConfigs"), each("supportedConfigs", nestDefaultConfig)),
			within("status", rename("defaultConfigReferences", "defaultconfigReferences")),
		},
		"ManagedClusterAddOn": {
			installNamespaceFromAnnotation,
			within("status",
				each("configReferences", nameDesiredConfig),
				registrationsToV1alpha1),
		},
		"AddOnDeploymentConfig": {},
	})
}

// convert applies the changes for the object's kind to a copy of it.
func convert(object *unstructured.Unstructured, to schema.GroupVersion, changes map[string][]change) (
	*unstructured.Unstructured, error,
) {
	kind := object.GetKind()
	wanted, found := changes[kind]
	if !found {
		return nil, fmt.Errorf("kind %q has no versions to convert between", kind)
	}
	content := maps.Clone(object.Object)
	content["apiVersion"] = to.String()
	for _, change := range wanted {
		if err := change(content); err != nil {
			return nil, fmt.Errorf("converting %s %q to %s: %w", kind, object.GetName(), to.Version, err)
		}
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// flattenDefaultConfig moves name and namespace of the default configuration next to its group and resource.
func flattenDefaultConfig(config map[string]any) error {
	referent, err := field[map[string]any](config, "defaultConfig")
	if err != nil {
		return err
	}
	delete(config, "defaultConfig")
	if referent == nil {
		config["name"] = upstreamv1beta1.ReservedNoDefaultConfigName
	}
	maps.Copy(config, referent)
	return nil
}

// nestDefaultConfig moves name and namespace of a default configuration, if there is one, into a field of their own.
func nestDefaultConfig(config map[string]any) error {
	referent := take(config, "name", "namespace")
	name, err := field[string](referent, "name")
	if name != "" && name != upstreamv1beta1.ReservedNoDefaultConfigName {
		config["defaultConfig"] = referent
	}
	return err
}

// installNamespaceToAnnotation moves spec.installNamespace, which this version does not have, to an annotation.
func installNamespaceToAnnotation(addOn map[string]any) error {
	spec, err := field[map[string]any](addOn, "spec")
	if err != nil {
		return err
	}
	namespace, err := field[string](spec, "installNamespace")
	if err != nil {
		return fmt.Errorf("spec: %w", err)
	}
	if err := within("spec", drop("installNamespace"))(addOn); err != nil || namespace == "" {
		return err
	}
	return ensure("metadata", ensure("annotations", func(annotations map[string]any) error {
		annotations[upstreamv1beta1.InstallNamespaceAnnotation] = namespace
		return nil
	}))(addOn)
}

// installNamespaceFromAnnotation moves the namespace from the annotation of installNamespaceToAnnotation back to
// spec.installNamespace.
func installNamespaceFromAnnotation(addOn map[string]any) error {
	var namespace string
	err := within("metadata", func(metadata map[string]any) error {
		err := within("annotations", func(annotations map[string]any) (err error) {
			namespace, err = field[string](annotations, upstreamv1beta1.InstallNamespaceAnnotation)
			delete(annotations, upstreamv1beta1.InstallNamespaceAnnotation)
			return err
		})(metadata)
		if rest, err := field[map[string]any](metadata, "annotations"); err == nil && len(rest) == 0 {
			delete(metadata, "annotations")
		}
		return err
	})(addOn)
	if err != nil || namespace == "" {
		return err
	}
	return ensure("spec", func(spec map[string]any) error {
		spec["installNamespace"] = namespace
		return nil
	})(addOn)
}

// nameDesiredConfig copies name and namespace of the desired configuration to the fields that v1alpha1 requires.
func nameDesiredConfig(reference map[string]any) error {
	desired, err := field[map[string]any](reference, "desiredConfig")
	for _, name := range []string{"name", "namespace"} {
		if value, found := desired[name]; found {
			reference[name] = value
		}
	}
	return err
}

// registrationsFromV1alpha1 sets the type of the registrations by their signer. All registrations for the API server's signer get
// the one driver.
func registrationsFromV1alpha1(status map[string]any) error {
	driver, err := field[string](status, "kubeClientDriver")
	if err != nil {
		return err
	}
	return each("registrations", func(registration map[string]any) error {
		config := take(registration, "signerName", "subject")
		if config["signerName"] != certificatesv1.KubeAPIServerClientSignerName {
			registration["type"], registration["customSigner"] = string(upstreamv1beta1.CustomSigner), config
			return within("subject", rename("organizationUnit", "organizationUnits"))(config)
		}
		delete(config, "signerName")
		if driver != "" {
			config["driver"] = driver
		}
		registration["type"], registration["kubeClient"] = string(upstreamv1beta1.KubeClient), config
		return within("subject", drop("organizationUnit"))(config)
	})(status)
}

// registrationsToV1alpha1 sets the signer of each registration. The first registration for the API server's signer determines
// the driver of all.
func registrationsToV1alpha1(status map[string]any) error {
	driven := false
	return each("registrations", func(registration map[string]any) error {
		of := string(upstreamv1beta1.CustomSigner)
		if registration["type"] == string(upstreamv1beta1.KubeClient) {
			of = string(upstreamv1beta1.KubeClient)
		}
		config, err := field[map[string]any](registration, of)
		if err != nil {
			return err
		}
		take(registration, "type", string(upstreamv1beta1.KubeClient), string(upstreamv1beta1.CustomSigner))
		maps.Copy(registration, config)
		if of == string(upstreamv1beta1.CustomSigner) {
			return within("subject", rename("organizationUnits", "organizationUnit"))(registration)
		}
		registration["signerName"] = certificatesv1.KubeAPIServerClientSignerName
		driver, found := take(registration, "driver")["driver"]
		if found && !driven {
			status["kubeClientDriver"] = driver
		}
		driven = driven || config != nil
		return nil
	})(status)
}

// A change modifies one object of a document. The object is a shallow copy: a change must not modify nested values.
type change func(object map[string]any) error

// within applies changes to a copy of the object in a field, if the field exists.
func within(name string, changes ...change) change {
	return func(object map[string]any) error {
		inner, err := field[map[string]any](object, name)
		if err != nil || inner == nil {
			return err
		}
		inner = maps.Clone(inner)
		object[name] = inner
		for _, change := range changes {
			if err := change(inner); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
}

// ensure is like within, but starts with an empty object if the field does not exist.
func ensure(name string, changes ...change) change {
	return func(object map[string]any) error {
		if object[name] == nil {
			object[name] = map[string]any{}
		}
		return within(name, changes...)(object)
	}
}

// each applies changes to copies of the objects in a list.
func each(name string, changes ...change) change {
	return func(object map[string]any) error {
		list, err := field[[]any](object, name)
		if err != nil || list == nil {
			return err
		}
		changed := make([]any, len(list))
		for i := range list {
			// within requires a field that holds the object.
			entry := map[string]any{name: list[i]}
			if err := within(name, changes...)(entry); err != nil {
				return err
			}
			changed[i] = entry[name]
		}
		object[name] = changed
		return nil
	}
}

func rename(from, to string) change {
	return func(object map[string]any) error {
		if value, found := object[from]; found {
			delete(object, from)
			object[to] = value
		}
		return nil
	}
}

func drop(names ...string) change {
	return func(object map[string]any) error {
		take(object, names...)
		return nil
	}
}

// take removes fields from an object and returns the existing ones.
func take(object map[string]any, names ...string) map[string]any {
	taken := map[string]any{}
	for _, name := range names {
		if value, found := object[name]; found {
			delete(object, name)
			taken[name] = value
		}
	}
	return taken
}

// field returns the value of a field, or T's zero value if the field is missing or null.
func field[T any](object map[string]any, name string) (T, error) {
	value := object[name]
	typed, ok := value.(T)
	if !ok && value != nil {
		return typed, fmt.Errorf("%s is a %T, not a %T", name, value, typed)
	}
	return typed, nil
}
