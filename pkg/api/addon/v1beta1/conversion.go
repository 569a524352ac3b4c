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

// Kinds lists the kinds that have both versions.
func Kinds() []string {
	return []string{"ClusterManagementAddOn", "ManagedClusterAddOn", "AddOnDeploymentConfig"}
}

// FromV1alpha1 returns an object of v1alpha1 in this version, and ToV1alpha1 the other way. They change the fields that differ
// as the functions of OCM's API module do, and install namespace and configuration references of a ManagedClusterAddOn as
// OCM's webhook does; every other field passes as it was written. Typed conversion would drop `dependencies: []` and
// `agentInstallNamespace: ""` and add `lastAppliedConfig: null`: then server-side applies of the two versions would never rest,
// and an empty install namespace would become the default one.
//
// The given object is not changed; the result shares with it what they have alike. It is an error if the kind has no two
// versions, or a field is not what its schema says.
//
// As upstream, a way there and back loses:
//   - of a ClusterManagementAddOn in v1alpha1 spec.addOnConfiguration, and in v1beta1 the namespace of a default configuration
//     without a name, which comes back under upstream's reserved name;
//   - of a ManagedClusterAddOn in v1alpha1 status.addOnConfiguration, the name and namespace of a configuration reference that
//     are not those of its desired configuration, organization units for the API server's signer, the driver if no
//     registration is for that signer, and an annotation under the name that carries the install namespace;
//   - of a ManagedClusterAddOn in v1beta1 the half of a registration that is not of its type, and all drivers but the first.
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

// ToV1alpha1 returns an object of this version in v1alpha1; see FromV1alpha1.
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

// convert makes the changes of the object's kind to a copy of it.
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

// flattenDefaultConfig puts name and namespace of the default configuration beside its group and resource.
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

// nestDefaultConfig puts name and namespace of a default configuration into a field of their own, unless there is none.
func nestDefaultConfig(config map[string]any) error {
	referent := take(config, "name", "namespace")
	name, err := field[string](referent, "name")
	if name != "" && name != upstreamv1beta1.ReservedNoDefaultConfigName {
		config["defaultConfig"] = referent
	}
	return err
}

// installNamespaceToAnnotation keeps spec.installNamespace, which this version does not have, in an annotation.
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

// installNamespaceFromAnnotation puts the namespace that installNamespaceToAnnotation has kept back to where it was.
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

// nameDesiredConfig repeats the name of the desired configuration where v1alpha1 requires one.
func nameDesiredConfig(reference map[string]any) error {
	desired, err := field[map[string]any](reference, "desiredConfig")
	for _, name := range []string{"name", "namespace"} {
		if value, found := desired[name]; found {
			reference[name] = value
		}
	}
	return err
}

// registrationsFromV1alpha1 sorts the registrations by their signer; the driver is that of all for the API server's signer.
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

// registrationsToV1alpha1 names the signer of each registration; the first one's driver for the API server's signer is that of
// all.
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

// A change alters one object of a document, which is a copy already; what it contains is not.
type change func(object map[string]any) error

// within changes a copy of the object in a field, if there is one.
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

// ensure is within, on an empty object if there is none.
func ensure(name string, changes ...change) change {
	return func(object map[string]any) error {
		if object[name] == nil {
			object[name] = map[string]any{}
		}
		return within(name, changes...)(object)
	}
}

// each changes copies of the objects in a list.
func each(name string, changes ...change) change {
	return func(object map[string]any) error {
		list, err := field[[]any](object, name)
		if err != nil || list == nil {
			return err
		}
		changed := make([]any, len(list))
		for i := range list {
			// The change needs a field to find the object in.
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

// take removes fields from an object and returns those that were there.
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

// field reads a field; T's zero value if it is not there, or null.
func field[T any](object map[string]any, name string) (T, error) {
	value := object[name]
	typed, ok := value.(T)
	if !ok && value != nil {
		return typed, fmt.Errorf("%s is a %T, not a %T", name, value, typed)
	}
	return typed, nil
}
