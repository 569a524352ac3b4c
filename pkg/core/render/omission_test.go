package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// withoutMarks removes Tandem's labels and annotations from an object, and empty metadata in templates.
func withoutMarks(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetLabels(nil)
	obj.SetAnnotations(nil)
	all, _ := templatesOf(obj)
	for _, t := range all {
		metadata := t.object["metadata"].(map[string]any)
		for _, label := range []string{kudo.LabelHeritage, kudo.LabelOperator, kudo.LabelInstance} {
			delete(metadata["labels"].(map[string]any), label)
		}
		for _, field := range []string{"labels", "annotations"} {
			if isEmpty(metadata[field]) {
				delete(metadata, field)
			}
		}
		if len(metadata) == 0 {
			delete(t.object, "metadata")
		}
	}
	return obj
}

func TestFieldsThatAreNotApplied(t *testing.T) {
	const pod = "spec: {containers: [{name: a, image: b}]"
	for sentence, test := range map[string]struct {
		template, want string
		omitted        []string
	}{
		"an object as the API server has returned it": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u, resourceVersion: '12', generation: 4, selfLink: /x, " +
				"creationTimestamp: '2020-01-01T00:00:00Z', deletionTimestamp: '2020-01-01T00:00:00Z', deletionGracePeriodSeconds: 0, managedFields: [{manager: x}]}, " +
				"data: {uid: u, status: s}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {uid: u, status: s}}",
			[]string{
				"metadata.creationTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.deletionTimestamp", "metadata.generation",
				"metadata.managedFields", "metadata.resourceVersion", "metadata.selfLink", "metadata.uid",
			},
		},
		"a status": {
			"{apiVersion: example.com/v1, kind: Toy, metadata: {name: a}, spec: {status: s}, status: {phase: Ready}}",
			"{apiVersion: example.com/v1, kind: Toy, metadata: {name: a}, spec: {status: s}}", []string{"status"},
		},
		"fields without a value, as generators write them, are not worth a word": {
			"{apiVersion: v1, kind: Service, metadata: {name: a, creationTimestamp: null, uid: ''}, status: {loadBalancer: {}, conditions: []}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}}", nil,
		},
		"metadata of a pod template is kept, because a change restarts pods": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {creationTimestamp: null, uid: u}}}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {creationTimestamp: null, uid: u}}}}", nil,
		},
		"rules that are aggregated": {
			"{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}, rules: [{verbs: [get]}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {}}", []string{"rules"},
		},
		"rules": {
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}", nil,
		},

		"removed fields of metadata": {
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, initializers: {pending: []}}, spec: {template: {metadata: {initializers: {pending: []}, " +
				"clusterName: c, labels: {a: b}}, spec: {initializers: x}}}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {a: b}}, spec: {initializers: x}}}}",
			[]string{"metadata.initializers", "spec.template.metadata.initializers", "spec.template.metadata.clusterName"},
		},
		"removed fields of a custom resource's metadata": {
			"{apiVersion: example.com/v1, kind: Toy, metadata: {name: a, initializers: null}, spec: {template: {metadata: {initializers: x}}}}",
			"{apiVersion: example.com/v1, kind: Toy, metadata: {name: a}, spec: {template: {metadata: {initializers: x}}}}",
			[]string{"metadata.initializers"},
		},
		"removed fields of a job template": {
			"{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {metadata: {clusterName: a}, spec: {template: {metadata: {initializers: {}}}}}}}",
			"{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {jobTemplate: {spec: {template: {}}}}}",
			[]string{"spec.jobTemplate.metadata.clusterName", "spec.jobTemplate.spec.template.metadata.initializers"},
		},
		"removed fields of a volume": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: v}, {ephemeral: {readOnly: true, volumeClaimTemplate: {spec: {resources: {claims: [], requests: {}}}}}}]}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: [{name: v}, {ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {}}}}}}]}}",
			[]string{"spec.volumes[].ephemeral.readOnly", "spec.volumes[].ephemeral.volumeClaimTemplate.spec.resources.claims"},
		},
		"removed fields of a volume claim template": {
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: v, clusterName: c}, status: {phase: Pending, resizeStatus: ''}}]}}",
			"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: v}, status: {phase: Pending}}]}}",
			[]string{"spec.volumeClaimTemplates[].status.resizeStatus", "spec.volumeClaimTemplates[].metadata.clusterName"},
		},
		"removed fields of a Service": {
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ipFamily: IPv4, topologyKeys: ['*'], type: ClusterIP}}",
			"{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP}}", []string{"spec.ipFamily", "spec.topologyKeys"},
		},
		"a misspelt field is left for the API server": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a, initialisers: {}}, " + pod + ", topologyKeys: []}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: a, initialisers: {}}, " + pod + ", topologyKeys: []}}", nil,
		},
		"a malformed object is left for the API server": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: {ephemeral: {readOnly: true}}}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {volumes: {ephemeral: {readOnly: true}}}}", nil,
		},

		"text of a Secret": {
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: b2xk, b: b2xk}, stringData: {a: new, c: '', d: null}}",
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: bmV3, b: b2xk, c: '', d: ''}}", nil,
		},
		"text of a Secret alone":    {"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: new}}", "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: bmV3}}", nil},
		"a Secret without any text": {"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: }", "{apiVersion: v1, kind: Secret, metadata: {name: a}}", nil},
		"a custom kind of Secret": {
			"{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}, stringData: {a: new}}",
			"{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}, stringData: {a: new}}", nil,
		},
		"the former name of a service account": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccount: x}}",
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccountName: x, serviceAccount: x}}", nil,
		},
		"both names of a service account": {
			"{apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {spec: {serviceAccount: x, serviceAccountName: y}}}",
			"{apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {spec: {serviceAccountName: y, serviceAccount: y}}}", nil,
		},
		"no service account": {
			"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {serviceAccount: ''}}", "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {}}", nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			rendered, err := Templates(newContext("t", test.template), "t")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, test.want), withoutMarks(rendered.Objects[0])); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			var omitted []string
			for _, o := range rendered.Omissions {
				if o.Object != identify(rendered.Objects[0], "").String() || o.Reason == "" {
					t.Errorf("got %+v", o)
				}
				omitted = append(omitted, o.Field)
			}
			if diff := cmp.Diff(test.omitted, omitted); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTextOfASecretMustBeText(t *testing.T) {
	for fields, want := range map[string]string{
		"stringData: {a: 1234567}":            `Secret a: stringData: the value of "a" must be a string: quote it`,
		"stringData: [1234567]":               `Secret a: stringData must be an object, with a string for each key`,
		"stringData: {a: b}, data: [1234567]": `Secret a: data must be an object, with a string for each key`,
	} {
		_, err := Objects(newContext("t", "{apiVersion: v1, kind: Secret, metadata: {name: a}, "+fields+"}"), "t")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "123") {
			t.Errorf("%s: got %v, want %s", fields, err, want)
		}
	}
}

func TestOmissionsAreBounded(t *testing.T) {
	item := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a{{ . }}, uid: u}}"
	rendered, err := Templates(newContext("t", "{kind: List, apiVersion: v1, items: [{{ range until 1500 }}"+item+",{{ end }}]}"), "t")
	if err != nil || len(rendered.Omissions) != maxOmissions || len(rendered.Objects) != 1500 {
		t.Errorf("got %d omissions of %d objects, %v", len(rendered.Omissions), len(rendered.Objects), err)
	}
}

// TestFormerFieldsAreUnknownToKubernetes checks that the types of Kubernetes have none of the fields that are not applied.
func TestFormerFieldsAreUnknownToKubernetes(t *testing.T) {
	checked := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		for _, field := range formerFields(gvk.GroupKind()) {
			typed, err := scheme.Scheme.New(gvk)
			if _, isObject := typed.(metav1.ObjectMetaAccessor); err != nil || !isObject || gvk.Version != "v1" {
				continue
			}
			encoded, err := json.Marshal(nestedAt(field.path))
			if err != nil {
				t.Fatal(err)
			}
			if unknown, err := kjson.UnmarshalStrict(encoded, typed); err != nil || len(unknown) != 1 {
				t.Errorf("%s has %s: %v %v", gvk, field.path, unknown, err)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("checked only %d fields", checked)
	}
}

// nestedAt returns an object with only a field at a path.
func nestedAt(path string) any {
	name, rest, isBelow := strings.Cut(path, ".")
	var value any
	if isBelow {
		value = nestedAt(rest)
	}
	if list, isList := strings.CutSuffix(name, "[]"); isList {
		return map[string]any{list: []any{value}}
	}
	return map[string]any{name: value}
}

func TestTakeOver(t *testing.T) {
	const live = `{apiVersion: v1, kind: Secret, metadata: {name: a, managedFields: [{manager: MANAGER, fieldsV1: {'f:stringData': {.: {}, 'f:a': {}, 'f:b': {}, 'f:gone': {}}}}, ` +
		`{manager: x, fieldsV1: {'f:stringData': {'f:c': {}}}}]}, data: {a: b2xk, b: b2xk, c: b2xk}}`
	for sentence, test := range map[string]struct{ manager, live, want, taken string }{
		"a key that is dropped":       {"own", live, "data: {a: bmV3}", "data: {a: bmV3, b: b2xk}"},
		"all keys are dropped":        {"own", live, "type: Opaque", "type: Opaque, data: {a: b2xk, b: b2xk}"},
		"no key is dropped":           {"own", live, "data: {a: bmV3, b: bmV3}", ""},
		"another manager's":           {"other", live, "data: {a: bmV3}", ""},
		"the Secret does not exist":   {"own", "", "data: {a: bmV3}", ""},
		"nothing was applied as text": {"own", "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {b: b2xk}}", "data: {a: bmV3}", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			var there *unstructured.Unstructured
			if test.live != "" {
				there = object(t, strings.Replace(test.live, "MANAGER", test.manager, 1))
				if test.manager == "other" {
					there = object(t, strings.Replace(test.live, "MANAGER", "own", 1))
				}
			}
			of := func(fields string) *unstructured.Unstructured {
				return object(t, "{apiVersion: v1, kind: Secret, metadata: {name: a}, "+fields+"}")
			}
			got := TakeOver(of(test.want), there, test.manager)
			if test.taken == "" {
				if got != nil {
					t.Errorf("got %v", got)
				}
				return
			}
			if diff := cmp.Diff(of(test.taken), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
