package v1beta1

import (
	"encoding/binary"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// conversion is FromV1alpha1 or ToV1alpha1.
type conversion = func(*unstructured.Unstructured) (*unstructured.Unstructured, error)

// document parses an object; apiVersion and kind come apart.
func document(t *testing.T, apiVersion, kind, body string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(body), &content); err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = apiVersion, kind
	return &unstructured.Unstructured{Object: content}
}

func TestConversion(t *testing.T) {
	tests := map[string]struct {
		kind              string
		v1alpha1, v1beta1 string
	}{
		"dependencies are the same in both versions": {
			kind:     "ClusterManagementAddOn",
			v1alpha1: `spec: {dependencies: [{name: b, type: Required}, {name: c, type: Optional, message: No metrics.}]}`,
			v1beta1:  `spec: {dependencies: [{name: b, type: Required}, {name: c, type: Optional, message: No metrics.}]}`,
		},
		"what is empty stays, and nothing is added": {
			kind:     "ClusterManagementAddOn",
			v1alpha1: `spec: {dependencies: [], supportedConfigs: [], installStrategy: {type: Manual, placements: []}}`,
			v1beta1:  `spec: {dependencies: [], defaultConfigs: [], installStrategy: {type: Manual, placements: []}}`,
		},
		"default configurations, of which one has none": {
			kind: "ClusterManagementAddOn",
			v1alpha1: `spec: {supportedConfigs: [
				{group: kudo.dev, resource: operatorversions, defaultConfig: {namespace: packages, name: kafka-1.3.1}},
				{group: "", resource: configmaps, defaultConfig: {namespace: "", name: kafka}},
				{group: addon.open-cluster-management.io, resource: addondeploymentconfigs}]}`,
			v1beta1: `spec: {defaultConfigs: [
				{group: kudo.dev, resource: operatorversions, namespace: packages, name: kafka-1.3.1},
				{group: "", resource: configmaps, namespace: "", name: kafka},
				{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, name: __reserved_no_default__}]}`,
		},
		"the status of a definition": {
			kind:     "ClusterManagementAddOn",
			v1alpha1: `status: {defaultconfigReferences: [{group: kudo.dev, resource: operatorversions}], installProgressions: []}`,
			v1beta1:  `status: {defaultConfigReferences: [{group: kudo.dev, resource: operatorversions}], installProgressions: []}`,
		},
		"the install namespace is an annotation": {
			kind:     "ManagedClusterAddOn",
			v1alpha1: `{metadata: {name: kafka}, spec: {installNamespace: streams}}`,
			v1beta1: `{metadata: {name: kafka, annotations: {addon.open-cluster-management.io/v1alpha1-install-namespace: streams}},
				spec: {}}`,
		},
		"the install namespace is added to the annotations": {
			kind:     "ManagedClusterAddOn",
			v1alpha1: `{metadata: {annotations: {a: b}}, spec: {configs: [], installNamespace: streams}}`,
			v1beta1: `{metadata: {annotations: {a: b, addon.open-cluster-management.io/v1alpha1-install-namespace: streams}},
				spec: {configs: []}}`,
		},
		"without an install namespace, there is no annotation": {
			kind:     "ManagedClusterAddOn",
			v1alpha1: `{metadata: {annotations: {a: b}}, spec: {}}`,
			v1beta1:  `{metadata: {annotations: {a: b}}, spec: {}}`,
		},
		"registrations with the driver of those for the API server's signer": {
			kind: "ManagedClusterAddOn",
			v1alpha1: `status: {kubeClientDriver: token, registrations: [
				{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, groups: []}},
				{signerName: example.com/signer, subject: {user: v, organizationUnit: [ou]}}]}`,
			v1beta1: `status: {registrations: [
				{type: kubeClient, kubeClient: {driver: token, subject: {user: u, groups: []}}},
				{type: customSigner, customSigner: {signerName: example.com/signer, subject: {user: v, organizationUnits: [ou]}}}]}`,
		},
		"registrations without subjects and driver": {
			kind:     "ManagedClusterAddOn",
			v1alpha1: `status: {registrations: [{signerName: kubernetes.io/kube-apiserver-client}, {signerName: example.com/signer}]}`,
			v1beta1: `status: {registrations: [{type: kubeClient, kubeClient: {}},
				{type: customSigner, customSigner: {signerName: example.com/signer}}]}`,
		},
		"references to the desired configuration": {
			kind: "ManagedClusterAddOn",
			v1alpha1: `status: {configReferences: [{group: kudo.dev, resource: operatorversions, lastObservedGeneration: 9007199254740993,
				namespace: packages, name: kafka-1.3.1, desiredConfig: {namespace: packages, name: kafka-1.3.1, specHash: x}}]}`,
			v1beta1: `status: {configReferences: [{group: kudo.dev, resource: operatorversions, lastObservedGeneration: 9007199254740993,
				desiredConfig: {namespace: packages, name: kafka-1.3.1, specHash: x}}]}`,
		},
		"conditions and the rest of a status": {
			kind:     "ManagedClusterAddOn",
			v1alpha1: `status: {conditions: [{type: Degraded, status: "False", message: ""}], healthCheck: {}, relatedObjects: []}`,
			v1beta1:  `status: {conditions: [{type: Degraded, status: "False", message: ""}], healthCheck: {}, relatedObjects: []}`,
		},
		"an install namespace that is empty on purpose": {
			kind:     "AddOnDeploymentConfig",
			v1alpha1: `spec: {agentInstallNamespace: "", customizedVariables: [{name: A, value: ""}]}`,
			v1beta1:  `spec: {agentInstallNamespace: "", customizedVariables: [{name: A, value: ""}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			older := document(t, "addon.open-cluster-management.io/v1alpha1", test.kind, test.v1alpha1)
			newer := document(t, "addon.open-cluster-management.io/v1beta1", test.kind, test.v1beta1)
			check := func(convert conversion, from, want *unstructured.Unstructured) {
				t.Helper()
				got, err := convert(from)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.Object, got.Object); diff != "" {
					t.Errorf("to %s, -want +got\n%s", want.GetAPIVersion(), diff)
				}
			}
			check(FromV1alpha1, older, newer)
			check(ToV1alpha1, newer, older)
		})
	}
}

func TestConversionRefuses(t *testing.T) {
	tests := map[string]struct {
		kind, v1alpha1, v1beta1 string
		want                    string
	}{
		"a kind of one version": {
			kind: "AddOnTemplate", v1alpha1: `{}`,
			want: `kind "AddOnTemplate" has no versions to convert between`,
		},
		"a spec that is no object": {
			kind: "ClusterManagementAddOn", v1alpha1: `{metadata: {name: kafka}, spec: 5}`,
			want: `converting ClusterManagementAddOn "kafka" to v1beta1: spec is a float64, not a map[string]interface {}`,
		},
		"configurations that are no list": {
			kind: "ClusterManagementAddOn", v1beta1: `{metadata: {name: kafka}, spec: {defaultConfigs: {}}}`,
			want: `converting ClusterManagementAddOn "kafka" to v1alpha1: spec: ` +
				`supportedConfigs is a map[string]interface {}, not a []interface {}`,
		},
		"a registration that is no object": {
			kind: "ManagedClusterAddOn", v1alpha1: `{metadata: {name: kafka}, status: {registrations: [a]}}`,
			want: `converting ManagedClusterAddOn "kafka" to v1beta1: status: registrations is a string, not a map[string]interface {}`,
		},
		"an install namespace that is no text": {
			kind: "ManagedClusterAddOn", v1alpha1: `{metadata: {name: kafka}, spec: {installNamespace: []}}`,
			want: `converting ManagedClusterAddOn "kafka" to v1beta1: spec: installNamespace is a []interface {}, not a string`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			convert, body := FromV1alpha1, test.v1alpha1
			if body == "" {
				convert, body = ToV1alpha1, test.v1beta1
			}
			_, err := convert(document(t, "any", test.kind, body))
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// filler fills an object with what its type admits, as the given bytes say.
func filler(data []byte) *randfill.Filler {
	text := func(c randfill.Continue, among ...string) string { return among[c.Intn(len(among))] }
	return randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 3).MaxDepth(12).Funcs(
		func(text *string, c randfill.Continue) { *text = []string{"", "a", "b", "c"}[c.Intn(4)] },
		func(time *metav1.Time, _ randfill.Continue) { *time = metav1.Unix(1, 0) },
		func(fields *metav1.FieldsV1, _ randfill.Continue) { fields.Raw = []byte(`{"f:a":{}}`) },
		func(q *resource.Quantity, c randfill.Continue) { *q = resource.MustParse(text(c, "1", "5Gi", "300m")) },
		func(value *intstr.IntOrString, c randfill.Continue) { *value = intstr.Parse(text(c, "1", "10%")) },
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(meta)
			if c.Bool() {
				meta.Annotations = map[string]string{upstreamv1beta1.InstallNamespaceAnnotation: text(c, "", "streams")}
			}
		},
		func(config *upstreamv1beta1.AddOnConfig, c randfill.Continue) {
			c.FillNoCustom(config)
			config.Name = text(c, "", "a", upstreamv1beta1.ReservedNoDefaultConfigName)
		},
		func(referent *upstream.ConfigReferent, c randfill.Continue) {
			c.FillNoCustom(referent)
			referent.Name = text(c, "a", "b") // The schema wants a name.
		},
		func(config *upstream.RegistrationConfig, c randfill.Continue) {
			c.FillNoCustom(config)
			config.SignerName = text(c, "", "example.com/signer", certificatesv1.KubeAPIServerClientSignerName)
		},
		func(kind *upstreamv1beta1.RegistrationType, c randfill.Continue) {
			*kind = upstreamv1beta1.RegistrationType(text(c, "", string(upstreamv1beta1.KubeClient), string(upstreamv1beta1.CustomSigner)))
		},
	)
}

// addSeeds adds enough to a fuzz target for a plain test to meet every field.
func addSeeds(f *testing.F) {
	for i := range uint64(200) {
		f.Add(binary.BigEndian.AppendUint64(nil, i*0x9e3779b97f4a7c15))
	}
}

// toUnstructured is the object as the API server sends it.
func toUnstructured(t *testing.T, typed any, apiVersion, kind string) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	content["apiVersion"], content["kind"] = apiVersion, kind
	return &unstructured.Unstructured{Object: content}
}

// convertObject returns the conversion of an object, and checks that the object is unchanged.
func convertObject(t *testing.T, from *unstructured.Unstructured, to conversion) *unstructured.Unstructured {
	t.Helper()
	before := from.DeepCopy()
	got, err := to(from)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, from.Object); diff != "" {
		t.Fatalf("the given object was changed: -before +after\n%s", diff)
	}
	return got
}

// same compares objects of one type, of which the one is in fields as the API server has it. What is empty is as good as absent.
func same[T any](t *testing.T, want *T, got *unstructured.Unstructured) {
	t.Helper()
	content, typed := maps.Clone(got.Object), new(T)
	delete(content, "apiVersion")
	delete(content, "kind")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, typed, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, typed, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-OCM's functions +ours\n%s", diff)
	}
}

// rests checks that a second way there and back changes nothing: else writers of both versions would never rest.
func rests(t *testing.T, object *unstructured.Unstructured, there, back conversion) {
	t.Helper()
	once := convertObject(t, convertObject(t, object, there), back)
	again := convertObject(t, convertObject(t, once, there), back)
	if diff := cmp.Diff(once.Object, again.Object); diff != "" {
		t.Errorf("the second way there and back: -before +after\n%s", diff)
	}
}

func FuzzClusterManagementAddOnFromV1alpha1(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, want := &addonv1alpha1.ClusterManagementAddOn{}, &ClusterManagementAddOn{}
		filler(data).Fill(in)
		in.TypeMeta = metav1.TypeMeta{}
		object := toUnstructured(t, in, addonv1alpha1.GroupVersion.String(), "ClusterManagementAddOn")

		byOCM := &upstreamv1beta1.ClusterManagementAddOn{}
		if err := upstreamv1beta1.Convert_v1alpha1_ClusterManagementAddOn_To_v1beta1_ClusterManagementAddOn(
			&upstream.ClusterManagementAddOn{
				ObjectMeta: in.ObjectMeta, Spec: in.Spec.ClusterManagementAddOnSpec, Status: in.Status,
			}, byOCM, nil); err != nil {
			t.Fatal(err)
		}
		want.ObjectMeta, want.Spec.ClusterManagementAddOnSpec, want.Status = byOCM.ObjectMeta, byOCM.Spec, byOCM.Status
		want.Spec.Dependencies = in.Spec.Dependencies
		same(t, want, convertObject(t, object, FromV1alpha1))
		rests(t, object, FromV1alpha1, ToV1alpha1)

		in.Spec.AddOnConfiguration = upstream.ConfigCoordinates{}
		same(t, in, convertObject(t, convertObject(t, object, FromV1alpha1), ToV1alpha1))
	})
}

func FuzzClusterManagementAddOnToV1alpha1(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, want := &ClusterManagementAddOn{}, &addonv1alpha1.ClusterManagementAddOn{}
		filler(data).Fill(in)
		in.TypeMeta = metav1.TypeMeta{}
		object := toUnstructured(t, in, GroupVersion.String(), "ClusterManagementAddOn")

		byOCM := &upstream.ClusterManagementAddOn{}
		if err := upstreamv1beta1.Convert_v1beta1_ClusterManagementAddOn_To_v1alpha1_ClusterManagementAddOn(
			&upstreamv1beta1.ClusterManagementAddOn{
				ObjectMeta: in.ObjectMeta, Spec: in.Spec.ClusterManagementAddOnSpec, Status: in.Status,
			}, byOCM, nil); err != nil {
			t.Fatal(err)
		}
		want.ObjectMeta, want.Spec.ClusterManagementAddOnSpec, want.Status = byOCM.ObjectMeta, byOCM.Spec, byOCM.Status
		want.Spec.Dependencies = in.Spec.Dependencies
		same(t, want, convertObject(t, object, ToV1alpha1))
		rests(t, object, ToV1alpha1, FromV1alpha1)

		for i, config := range in.Spec.DefaultConfigs {
			if config.Name == "" || config.Name == upstreamv1beta1.ReservedNoDefaultConfigName {
				in.Spec.DefaultConfigs[i].ConfigReferent = upstreamv1beta1.ConfigReferent{Name: upstreamv1beta1.ReservedNoDefaultConfigName}
			}
		}
		same(t, in, convertObject(t, convertObject(t, object, ToV1alpha1), FromV1alpha1))
	})
}

// The two functions below do on typed objects what OCM's webhook does in addition to the functions of its API module.

func keepInstallNamespace(in *upstream.ManagedClusterAddOn, out *upstreamv1beta1.ManagedClusterAddOn) {
	if in.Spec.InstallNamespace != "" {
		out.Annotations = maps.Clone(out.Annotations)
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, upstreamv1beta1.InstallNamespaceAnnotation, in.Spec.InstallNamespace)
	}
}

func restoreInstallNamespace(in *upstreamv1beta1.ManagedClusterAddOn, out *upstream.ManagedClusterAddOn) {
	out.Annotations = maps.Clone(in.Annotations)
	out.Spec.InstallNamespace = in.Annotations[upstreamv1beta1.InstallNamespaceAnnotation]
	delete(out.Annotations, upstreamv1beta1.InstallNamespaceAnnotation)
	for i, reference := range out.Status.ConfigReferences {
		if reference.DesiredConfig != nil {
			out.Status.ConfigReferences[i].ConfigReferent = reference.DesiredConfig.ConfigReferent
		}
	}
}

func FuzzManagedClusterAddOnFromV1alpha1(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, want := &addonv1alpha1.ManagedClusterAddOn{}, &ManagedClusterAddOn{}
		filler(data).Fill(in)
		in.TypeMeta = metav1.TypeMeta{}
		object := toUnstructured(t, in, addonv1alpha1.GroupVersion.String(), "ManagedClusterAddOn")

		if err := upstreamv1beta1.Convert_v1alpha1_ManagedClusterAddOn_To_v1beta1_ManagedClusterAddOn(in, want, nil); err != nil {
			t.Fatal(err)
		}
		keepInstallNamespace(in, want)
		same(t, want, convertObject(t, object, FromV1alpha1))
		rests(t, object, FromV1alpha1, ToV1alpha1)
	})
}

func FuzzManagedClusterAddOnToV1alpha1(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, want := &ManagedClusterAddOn{}, &addonv1alpha1.ManagedClusterAddOn{}
		filler(data).Fill(in)
		in.TypeMeta = metav1.TypeMeta{}
		object := toUnstructured(t, in, GroupVersion.String(), "ManagedClusterAddOn")

		if err := upstreamv1beta1.Convert_v1beta1_ManagedClusterAddOn_To_v1alpha1_ManagedClusterAddOn(in, want, nil); err != nil {
			t.Fatal(err)
		}
		restoreInstallNamespace(in, want)
		same(t, want, convertObject(t, object, ToV1alpha1))
		rests(t, object, ToV1alpha1, FromV1alpha1)
	})
}

// Both versions of an AddOnDeploymentConfig have the same fields.
func FuzzAddOnDeploymentConfig(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in, want := &addonv1alpha1.AddOnDeploymentConfig{}, &AddOnDeploymentConfig{}
		filler(data).Fill(in)
		in.TypeMeta = metav1.TypeMeta{}
		object := toUnstructured(t, in, addonv1alpha1.GroupVersion.String(), "AddOnDeploymentConfig")

		if err := upstreamv1beta1.Convert_v1alpha1_AddOnDeploymentConfig_To_v1beta1_AddOnDeploymentConfig(in, want, nil); err != nil {
			t.Fatal(err)
		}
		got := convertObject(t, object, FromV1alpha1)
		same(t, want, got)
		if diff := cmp.Diff(object.Object, convertObject(t, got, ToV1alpha1).Object); diff != "" {
			t.Errorf("there and back: -before +after\n%s", diff)
		}
	})
}
