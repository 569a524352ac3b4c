package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/preview"
)

// TestFieldsThatCannotBeChanged renders a template with MODE=a, and again with MODE=b.
func TestFieldsThatCannotBeChanged(t *testing.T) {
	template := func(apiVersion, kind, rest string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: app}\n%s\n", apiVersion, kind, rest)
	}
	either := func(a, b string) string {
		return fmt.Sprintf(`{{ if eq .Params.MODE "a" }}%s{{ else }}%s{{ end }}`, a, b)
	}
	service := func(a, b string) string { return template("v1", "Service", "spec: "+either(a, b)) }
	claim := func(a, b string) string { return template("v1", "PersistentVolumeClaim", "spec: "+either(a, b)) }
	stateful := func(a, b string) string {
		return template("apps/v1", "StatefulSet", "spec: "+either("{selector: {matchLabels: {a: b}}, "+a+"}", "{selector: {matchLabels: {a: b}}, "+b+"}"))
	}
	for sentence, test := range map[string]struct {
		template string
		fields   string
	}{
		"replicas":                       {template: template("apps/v1", "Deployment", "spec: {replicas: "+either("1", "2")+", selector: {matchLabels: {a: b}}}")},
		"a selector":                     {template("apps/v1", "Deployment", "spec: {selector: {matchLabels: {a: {{ .Params.MODE }}}}}"), "spec.selector"},
		"a label that a selector gets":   {template("apps/v1", "DaemonSet", "spec: {selector: {matchLabels: "+either("{a: b}", "{a: b, c: d}")+"}}"), "spec.selector"},
		"an empty list in a selector":    {template: template("apps/v1", "ReplicaSet", "spec: {selector: "+either("{matchLabels: {a: b}}", "{matchLabels: {a: b}, matchExpressions: []}")+"}")},
		"the service of a StatefulSet":   {stateful("serviceName: x", "replicas: 2"), "spec.serviceName"},
		"a default":                      {template: stateful("replicas: 1", "podManagementPolicy: OrderedReady, serviceName: ''")},
		"another value than the default": {stateful("replicas: 1", "podManagementPolicy: Parallel"), "spec.podManagementPolicy"},
		"a volume of a StatefulSet": {stateful("replicas: 1",
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]"), "spec.volumeClaimTemplates"},
		"the size of the volume of a StatefulSet": {stateful("volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]",
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 2Gi}}}}]"), "spec.volumeClaimTemplates"},
		"the same size in another unit": {template: stateful("volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]",
			"volumeClaimTemplates: [{metadata: {name: data}, spec: {volumeMode: Filesystem, resources: {requests: {storage: 1024Mi}}}}]")},
		"the size of a claim":               {template: claim("{resources: {requests: {storage: 1Gi}}}", "{resources: {requests: {storage: 2Gi}}}")},
		"the class of a claim":              {claim("{storageClassName: a, accessModes: [ReadWriteOnce]}", "{storageClassName: b, accessModes: [ReadWriteMany]}"), "spec.accessModes, spec.storageClassName"},
		"a class of a claim that had none":  {template: claim("{accessModes: [ReadWriteOnce]}", "{storageClassName: a, accessModes: [ReadWriteOnce]}")},
		"the address of a Service":          {service("{clusterIP: 10.0.0.1}", "{clusterIP: 10.0.0.2}"), "spec.clusterIP"},
		"no address instead of one":         {service("{ports: [{port: 80}]}", "{clusterIP: None}"), "spec.clusterIP"},
		"an address that is no longer set":  {template: service("{clusterIP: 10.0.0.1}", "{ports: [{port: 80}]}")},
		"an address that may be the same":   {template: service("{ports: [{port: 80}]}", "{clusterIP: 10.0.0.1}")},
		"an address of an ExternalName":     {template: service("{type: ExternalName, externalName: a.b}", "{clusterIP: None}")},
		"a class of a load balancer":        {service("{type: LoadBalancer}", "{type: LoadBalancer, loadBalancerClass: a.b/c}"), "spec.loadBalancerClass"},
		"the type of a Secret":              {template("v1", "Secret", "type: "+either("Opaque", "example.com/b")), "type"},
		"the default type of a Secret":      {template: template("v1", "Secret", either("data: {}", "type: Opaque"))},
		"the data of a Secret":              {template: template("v1", "Secret", "stringData: {a: {{ .Params.MODE }}}")},
		"the data of an immutable Secret":   {template("v1", "Secret", "immutable: true\nstringData: {a: {{ .Params.MODE }}}"), "data"},
		"a Secret that becomes immutable":   {template: template("v1", "Secret", "immutable: "+either("false", "true")+"\nstringData: {a: {{ .Params.MODE }}}")},
		"a ConfigMap that becomes mutable":  {template("v1", "ConfigMap", "immutable: "+either("true", "false")), "immutable"},
		"a key of an immutable ConfigMap":   {template("v1", "ConfigMap", "immutable: true\ndata: "+either("{a: b}", "{a: b, c: d}")), "data"},
		"a role":                            {template("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .Params.MODE }}}"), "roleRef"},
		"subjects":                          {template: template("rbac.authorization.k8s.io/v1", "RoleBinding", "roleRef: {kind: Role, name: a}\nsubjects: [{kind: User, name: {{ .Params.MODE }}}]")},
		"the scope of a kind":               {template("apiextensions.k8s.io/v1", "CustomResourceDefinition", "spec: {group: a.b, scope: "+either("Cluster", "Namespaced")+"}"), "spec.scope"},
		"the parameters of a storage class": {template("storage.k8s.io/v1", "StorageClass", "provisioner: a\nparameters: {a: {{ .Params.MODE }}}"), "parameters"},
		"the image of a Pod":                {template: template("v1", "Pod", "spec: {containers: [{name: a, image: {{ .Params.MODE }}}]}")},
		"the command of a Pod":              {template("v1", "Pod", "spec: {containers: [{name: a, command: [{{ .Params.MODE }}]}]}"), "spec.containers"},
		"the pods of a Job, which is replaced": {template: template("batch/v1", "Job",
			"spec: {template: {spec: {containers: [{name: a, image: {{ .Params.MODE }}}]}}}")},
		"a kind of others": {template: template("example.com/v1", "Gadget", "spec: {selector: {{ .Params.MODE }}}")},
	} {
		t.Run(sentence, func(t *testing.T) {
			version := shop(func(s *kudo.OperatorVersionSpec) {
				s.Templates, s.Plans = map[string]string{"app.yaml": test.template}, map[string]kudo.Plan{"deploy": planOf("app")}
			})
			_, kind, _ := strings.Cut(test.template, "kind: ")
			kind, _, _ = strings.Cut(kind, "\n")
			group, _, isNamed := strings.Cut(strings.TrimPrefix(strings.Split(test.template, "\n")[0], "apiVersion: "), "/")
			if !isNamed {
				group = ""
			}
			before := deployedInstance(version, kudo.Complete, map[string]string{"MODE": "a"}, entry(group, kind, "ns", "app", "app"))
			after := instance(version, map[string]string{"MODE": "b"})
			change := preview.Change{Before: before, After: after, Version: version, Started: version}
			want := ""
			if test.fields != "" {
				want = kind + " ns/app: " + plan.CannotChangeText(test.fields)
			}
			change.Validation = preview.ValidationIgnore
			task := preview.Of(change).Plans[0].Tasks[0]
			if diff := cmp.Diff(want, task.Problem); diff != "" {
				t.Error(diff)
			}
			before.Status.PlanStatus["deploy"] = kudo.PlanStatus{UID: "before", Status: kudo.FatalError}
			task = preview.Of(change).Plans[0].Tasks[0]
			if want != "" {
				want = "may fail, because the last plan is not complete: " + want
			}
			if diff := cmp.Diff(want, strings.Join(task.Warnings, "")); diff != "" || task.Problem != "" {
				t.Error("after a plan that failed:", diff, task.Problem)
			}
		})
	}
}

// TestJobs covers what agents do with the Job of an earlier execution: they replace one that would change, or that has failed.
func TestJobs(t *testing.T) {
	version := applyTask("apiVersion: batch/v1\nkind: Job\nmetadata: {name: app}\nspec: {template: {spec: {containers: [{name: a, image: {{ .Params.MODE }}}]}}}\n")
	before := deployedInstance(version, kudo.Complete, map[string]string{"MODE": "a"}, entry("batch", "Job", "ns", "app", "app"))
	after := instance(version, map[string]string{"MODE": "b"})
	effect := func(started *kudo.OperatorVersion) string {
		change := preview.Change{Before: before, After: after, Version: version, Started: started}
		job := preview.Of(change).Plans[0].Tasks[0].Objects[0]
		return strings.TrimSuffix(string(job.Effect)+": "+job.Note, ": ")
	}
	if got := effect(version); got != "replaced" {
		t.Errorf("one that changes: %s", got)
	}
	if got := effect(nil); got != "replaced" {
		t.Errorf("one whose template is lost: %s", got)
	}
	after.Spec.Parameters = map[string]string{"MODE": "a", "EXTRA": "true"}
	if got := effect(version); got != "unchanged: replaced if it has failed" {
		t.Errorf("one that does not change: %s", got)
	}
}
