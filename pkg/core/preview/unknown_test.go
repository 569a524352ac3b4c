package preview_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
)

// applyTask returns a version whose only task applies the objects of a template.
func applyTask(template string) *kudo.OperatorVersion {
	return shop(func(s *kudo.OperatorVersionSpec) {
		s.Templates, s.Plans = map[string]string{"app.yaml": template}, map[string]kudo.Plan{"deploy": planOf("app")}
	})
}

func TestReservedNamespaces(t *testing.T) {
	object := func(apiVersion, kind, namespace string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: app, namespace: %q}\n", apiVersion, kind, namespace)
	}
	const problem = `nothing is applied to namespace "kube-system": use another one (the agent's flag to allow it is --allow-namespaces)`
	there := entry("", "ConfigMap", "kube-system", "other", "app")
	pending := there
	pending.Pending = true
	for sentence, test := range map[string]struct {
		template, installed string
		applied             kudo.InventoryEntry
		want                string
	}{
		"an object in another namespace":                          {template: object("v1", "ConfigMap", "other")},
		"an object in a reserved one":                             {template: object("v1", "ConfigMap", "kube-system"), want: "ConfigMap kube-system/app: " + problem},
		"an object of a kind that the hub does not know":          {template: object("example.com/v1", "Gadget", "kube-system"), want: "Gadget kube-system/app: " + problem},
		"an object that has no namespace":                         {template: object("rbac.authorization.k8s.io/v1", "ClusterRole", "kube-system")},
		"the install namespace, on which admission decides":       {template: object("v1", "ConfigMap", "kube-system"), installed: "kube-system"},
		"where an Instance of the cluster has objects":            {template: object("v1", "ConfigMap", "kube-system"), applied: there},
		"where an Instance of the cluster would have objects":     {template: object("v1", "ConfigMap", "kube-system"), applied: pending, want: "ConfigMap kube-system/app: " + problem},
		"where an Instance of the cluster has objects in another": {template: object("v1", "ConfigMap", "kube-public"), applied: there, want: `ConfigMap kube-public/app: nothing is applied to namespace "kube-public": use another one (the agent's flag to allow it is --allow-namespaces)`},
	} {
		t.Run(sentence, func(t *testing.T) {
			version := applyTask(test.template)
			after := instance(version, nil)
			if test.installed != "" {
				after.Spec.InstallNamespace = test.installed
			}
			beside := deployedInstance(versionOf("other", "1.0.0"), kudo.Complete, nil, test.applied)
			beside.Name = "beside"
			data := preview.DataOf(preview.Of(preview.Change{After: after, Version: version, Instances: []kudo.Instance{*beside}}))
			got := ""
			if err := data.Err(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKindsThatOnlyTheClusterKnows(t *testing.T) {
	const (
		gadget  = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: app}\n---\n"
		monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: app}\n---\n"
		defined = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.example.com}\n" +
			"spec: {group: example.com, scope: Namespaced, names: {kind: Gadget, plural: gadgets}}\n---\n"
	)
	for sentence, test := range map[string]struct {
		template string
		applied  kudo.InventoryEntry
		want     []string
	}{
		"Kubernetes' own":                      {template: app},
		"two":                                  {template: gadget + monitor, want: []string{"Gadget.example.com", "ServiceMonitor.monitoring.coreos.com"}},
		"one that the package defines":         {template: gadget + monitor + defined, want: []string{"ServiceMonitor.monitoring.coreos.com"}},
		"one of which the cluster has objects": {template: gadget, applied: entry("example.com", "Gadget", "x", "y", "z")},
	} {
		t.Run(sentence, func(t *testing.T) {
			version := applyTask(test.template)
			beside := deployedInstance(versionOf("other", "1.0.0"), kudo.Complete, nil, test.applied)
			var got []string
			for _, kind := range preview.Of(preview.Change{
				After: instance(version, nil), Version: version, Instances: []kudo.Instance{*beside},
			}).UnknownKinds {
				got = append(got, kind.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
