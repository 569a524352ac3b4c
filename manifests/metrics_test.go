package manifests

import (
	"os"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestPrometheusReadsMetrics checks that the examples in deploy/prometheus refer to what is installed: a ServiceAccount, and the port of metrics.
func TestPrometheusReadsMetrics(t *testing.T) {
	deploy := os.DirFS("../deploy")
	program, err := Objects(deploy, "hub/addon-manager.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := Objects(FS, "deployment/*.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	for folder, objects := range map[string][]*unstructured.Unstructured{"hub": program, "agent": agent} {
		installed, err := Objects(FS, folder+"/*.yaml", nil)
		if err != nil {
			t.Fatal(err)
		}
		examples, err := Objects(deploy, "prometheus/"+folder+".yaml", nil)
		if err != nil || len(examples) != 2 {
			t.Fatalf("%d examples, %v", len(examples), err)
		}
		secret, monitor := examples[0], examples[1]
		account := secret.GetAnnotations()[corev1.ServiceAccountNameKey]
		if !slices.ContainsFunc(installed, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "ServiceAccount" && o.GetName() == account && o.GetNamespace() == secret.GetNamespace()
		}) {
			t.Errorf("%s: ServiceAccount %q does not exist", folder, account)
		}
		endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "podMetricsEndpoints")
		endpoint := endpoints[0].(map[string]any)
		if name, _, _ := unstructured.NestedString(endpoint, "authorization", "credentials", "name"); name != secret.GetName() || endpoint["scheme"] != "https" {
			t.Errorf("%s: the token is in Secret %q, read over %s", folder, name, endpoint["scheme"])
		}
		var deployment appsv1.Deployment
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &deployment); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(deployment.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
			return p.Name == endpoint["port"] && p.ContainerPort == 8443
		}) {
			t.Errorf("%s: the pods have no port %v with number 8443", folder, endpoint["port"])
		}
	}
}
