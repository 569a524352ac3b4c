package diagnose

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// collected is a kind of objects to collect.
type collected struct {
	group, version, kind string // the server's preferred version, if empty
	// metadata means that only the metadata is read: the rest is large.
	metadata bool
	// only filters the objects; nil collects all.
	only func(*unstructured.Unstructured) bool
	// shorten removes fields that are not useful.
	shorten func(*unstructured.Unstructured)
	options []client.ListOption
}

var (
	addOnGroup, kudoGroup = addonv1alpha1.GroupVersion.Group, kudo.GroupVersion.Group

	// ofHub lists the kinds on the hub that describe the installation of Tandem.
	ofHub = []collected{
		{group: addOnGroup, version: addonv1alpha1.GroupVersion.Version, kind: "ClusterManagementAddOn"},
		{group: addOnGroup, version: addonv1alpha1.GroupVersion.Version, kind: "AddOnDeploymentConfig"},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "Operator"},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "OperatorVersion"},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "OperatorContent", metadata: true},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "PackageSource"},
		{group: "cluster.open-cluster-management.io", version: "v1beta1", kind: "Placement"},
		{group: "cluster.open-cluster-management.io", version: "v1beta1", kind: "PlacementDecision"},
	}
	// ofServer lists the kinds by which an API server admits or rejects writes.
	ofServer = []collected{
		{group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition", only: definesOurs, shorten: versionsOnly},
		{group: "admissionregistration.k8s.io", kind: "ValidatingWebhookConfiguration"},
		{group: "admissionregistration.k8s.io", kind: "MutatingWebhookConfiguration"},
		{group: "admissionregistration.k8s.io", kind: "ValidatingAdmissionPolicy", only: isOurs},
		{group: "admissionregistration.k8s.io", kind: "ValidatingAdmissionPolicyBinding", only: isOurs},
		{group: "admissionregistration.k8s.io", kind: "MutatingAdmissionPolicy", only: isOurs},
		{group: "admissionregistration.k8s.io", kind: "MutatingAdmissionPolicyBinding", only: isOurs},
	}
	// ofProgram lists the kinds in the namespace of addon-manager or addon-agent.
	ofProgram = []collected{
		{group: "apps", version: "v1", kind: "Deployment"},
		{version: "v1", kind: "Pod"},
		{version: "v1", kind: "Service"},
		{version: "v1", kind: "Event"},
		{group: "coordination.k8s.io", version: "v1", kind: "Lease"},
		{group: "rbac.authorization.k8s.io", version: "v1", kind: "Role"},
		{group: "rbac.authorization.k8s.io", version: "v1", kind: "RoleBinding"},
	}
	// ofCluster lists the kinds in a managed cluster's namespace on the hub.
	ofCluster = []collected{
		{group: addOnGroup, version: addonv1alpha1.GroupVersion.Version, kind: "ManagedClusterAddOn"},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "Instance", shorten: withoutLogs},
		{group: "work.open-cluster-management.io", version: "v1", kind: "ManifestWork"},
		{group: "coordination.k8s.io", version: "v1", kind: "Lease"},
		{group: "rbac.authorization.k8s.io", version: "v1", kind: "Role"},
		{group: "rbac.authorization.k8s.io", version: "v1", kind: "RoleBinding"},
		{version: "v1", kind: "Event"},
	}
	// ofMirror lists the kinds that a managed cluster mirrors from the hub.
	ofMirror = []collected{
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "Instance", shorten: withoutLogs},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "OperatorVersion"},
		{group: kudoGroup, version: kudo.GroupVersion.Version, kind: "OperatorContent", metadata: true},
	}
	// ofWorkloads lists the kinds that packages apply to a managed cluster. Their specs come from the packages.
	ofWorkloads = []collected{
		workload("apps", "Deployment"), workload("apps", "StatefulSet"), workload("apps", "DaemonSet"), workload("batch", "Job"),
		workload("batch", "CronJob"), workload("", "Pod"), workload("", "PersistentVolumeClaim"), workload("", "Service"),
	}
)

func workload(group, kind string) collected {
	return collected{
		group: group, version: "v1", kind: kind, shorten: statusOnly,
		options: []client.ListOption{client.HasLabels{kudo.LabelInstance}},
	}
}

// isOurs reports whether an object belongs to Tandem, by its name or its label.
func isOurs(object *unstructured.Unstructured) bool {
	return strings.HasPrefix(object.GetName(), "tandem") || object.GetLabels()["app.kubernetes.io/part-of"] == "tandem"
}

func definesOurs(definition *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	return group == kudoGroup || strings.HasSuffix(group, ".open-cluster-management.io")
}

// versionsOnly removes the schemas.
func versionsOnly(definition *unstructured.Unstructured) {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok {
			delete(fields, "schema")
			delete(fields, "additionalPrinterColumns")
		}
	}
	_ = unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions") // as it was read
}

func statusOnly(object *unstructured.Unstructured) {
	replicas, found, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	delete(object.Object, "spec")
	if found {
		_ = unstructured.SetNestedField(object.Object, replicas, "spec", "replicas") // spec was removed
	}
}

// withoutLogs removes the log lines of pods from an Instance: they may contain anything.
func withoutLogs(instance *unstructured.Unstructured) {
	pods, found, _ := unstructured.NestedSlice(instance.Object, "status", "diagnosis", "pods")
	if !found {
		return
	}
	for _, pod := range pods {
		if fields, ok := pod.(map[string]any); ok {
			delete(fields, "logs")
		}
	}
	_ = unstructured.SetNestedSlice(instance.Object, pods, "status", "diagnosis", "pods") // as it was read
}

// redactMessages removes all messages from an object, and the values of labels and annotations that are not Tandem's.
func redactMessages(object *unstructured.Unstructured) {
	for _, field := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedMap(object.Object, "metadata", field)
		for key := range values {
			if prefix, _, _ := strings.Cut(key, "/"); prefix != kudoGroup && key != kudo.LabelHeritage {
				values[key] = terminal.Redacted
			}
		}
		if len(values) > 0 {
			_ = unstructured.SetNestedMap(object.Object, values, "metadata", field) // as it was read
		}
	}
	redactFields(object.Object)
}

func redactFields(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if message, isText := field.(string); isText && key == "message" && message != "" {
				v[key] = terminal.Redacted
				continue
			}
			redactFields(field)
		}
	case []any:
		for _, item := range v {
			redactFields(item)
		}
	}
}

// side is one of the diagnosed clusters.
type side struct {
	client.Client
	// name in messages, and folder in the archive.
	name, folder string
}

// collect reads the kinds, in one namespace or in all, into files of a folder.
func (d *diagnosis) collect(ctx context.Context, of side, folder, namespace string, kinds []collected) {
	for _, kind := range kinds {
		found, err := d.list(ctx, of, namespace, kind)
		if err != nil {
			d.recordFailure(fmt.Sprintf("%s: %s in %s", of.name, kind.kind, placeText(namespace)), err)
		}
		if len(found) > 0 {
			file := path.Join(of.folder, folder, strings.ToLower(kind.kind)+".yaml")
			d.objects[file] = append(d.objects[file], found...)
		}
	}
}

func placeText(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// list reads objects of a kind, up to a limit.
func (d *diagnosis) list(ctx context.Context, of side, namespace string, kind collected) ([]*unstructured.Unstructured, error) {
	mapping, err := of.RESTMapper().RESTMapping(schema.GroupKind{Group: kind.group, Kind: kind.kind}, versionsOf(kind)...)
	if meta.IsNoMatchError(err) {
		if text := fmt.Sprintf("%s: kind %s of group %q", of.name, kind.kind, kind.group); !slices.Contains(d.absent, text) {
			d.absent = append(d.absent, text)
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := listKind(ctx, of, mapping.GroupVersionKind, kind, client.InNamespace(namespace))
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	if list.GetContinue() != "" {
		d.left = append(d.left, fmt.Sprintf("%s: %s in %s: all but the first %d", of.name, kind.kind, placeText(namespace), objectsPerList))
	}
	var found []*unstructured.Unstructured
	for i := range list.Items {
		object := &list.Items[i]
		if kind.only != nil && !kind.only(object) {
			continue
		}
		if kind.shorten != nil {
			kind.shorten(object)
		}
		found = append(found, object)
	}
	return found, nil
}

// listKind reads objects of a kind, or their metadata, up to a limit.
func listKind(
	ctx context.Context, c client.Reader, gvk schema.GroupVersionKind, kind collected, in client.InNamespace,
) (*unstructured.UnstructuredList, error) {
	options := append([]client.ListOption{in, client.Limit(objectsPerList)}, kind.options...)
	found := &unstructured.UnstructuredList{}
	if !kind.metadata {
		found.SetGroupVersionKind(gvk)
		return found, c.List(ctx, found, options...)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	found.SetContinue(list.Continue)
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("converting the metadata of %s: %w", gvk.Kind, err)
		}
		found.Items = append(found.Items, unstructured.Unstructured{Object: content})
	}
	return found, nil
}

func versionsOf(kind collected) []string {
	if kind.version == "" {
		return nil
	}
	return []string{kind.version}
}
