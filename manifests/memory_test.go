package manifests

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A program that does not know its limit collects garbage too late.
func TestProgramsKnowTheirMemoryLimits(t *testing.T) {
	found := 0
	for _, pattern := range []string{"manifests/deployment/*.yaml", "deploy/hub/addon-manager.yaml", "deploy/ui/addon-manager-ui.yaml",
		"deploy/packagesources/package-controller.yaml"} {
		objects, err := Objects(os.DirFS(".."), pattern, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if object.GetKind() != "Deployment" {
				continue
			}
			found++
			deployment := &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				t.Fatal(err)
			}
			for _, container := range deployment.Spec.Template.Spec.Containers {
				if container.Resources.Limits.Memory().IsZero() || limitOf(container) != "limits.memory" {
					t.Errorf("%s: container %s has the limit %v and GOMEMLIMIT %q", deployment.Name, container.Name, container.Resources.Limits, limitOf(container))
				}
			}
		}
	}
	if found != 4 {
		t.Errorf("found %d Deployments", found)
	}
}

// limitOf returns the resource from which a container's GOMEMLIMIT is set.
func limitOf(container corev1.Container) string {
	for _, variable := range container.Env {
		if variable.Name == "GOMEMLIMIT" && variable.ValueFrom != nil && variable.ValueFrom.ResourceFieldRef != nil {
			return variable.ValueFrom.ResourceFieldRef.Resource
		}
	}
	return ""
}
