package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// imagePlan returns a plan with the program /agent of the image known.
func imagePlan(t *testing.T) clusterPlan {
	t.Helper()
	plan := ocmPlan("cluster1")
	plan.Images = t.TempDir()
	if err := os.Mkdir(filepath.Join(plan.Images, "known"), 0o700); err != nil {
		t.Fatal(err)
	}
	addProgram(t, filepath.Join(plan.Images, "known"), "agent")
	return plan
}

func TestContainersOfImages(t *testing.T) {
	plan := imagePlan(t)
	for sentence, test := range map[string]struct {
		container corev1.Container
		runs      bool
	}{
		"a program that is there runs, wherever the image comes from": {
			corev1.Container{Image: "registry.example:5000/team/known:v1", Command: []string{"/agent"}}, true},
		"an image by its digest is the same one": {
			corev1.Container{Image: "known@sha256:0123", Command: []string{"/agent"}}, true},
		"another program of the image is unknown": {
			corev1.Container{Image: "known", Command: []string{"/manager"}}, false},
		"the same program of another image is unknown": {
			corev1.Container{Image: "known/unknown", Command: []string{"/agent"}}, false},
		"what an image runs by itself is unknown": {
			corev1.Container{Image: "known", Args: []string{"/agent"}}, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			deployment := &appsv1.Deployment{}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{test.container}
			if found := plan.containers(deployment); (len(found) == 1) != test.runs {
				t.Errorf("there are %d containers, and it runs: %t", len(found), test.runs)
			}
			plan := plan
			plan.Images = ""
			if found := plan.containers(deployment); len(found) > 0 {
				t.Error("it runs where no images are known")
			}
		})
	}
}

func TestAContainerSeesWhatAPodHas(t *testing.T) {
	plan := imagePlan(t)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "add-ons", Name: "proxy"}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{
		Name: "agent", Image: "known", Command: []string{"/bin/agent", "serve"}, Args: []string{"--namespace=$(NAMESPACE)", "--hub=/etc/hub"},
		Env: []corev1.EnvVar{
			{Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "hub", MountPath: "/etc/hub/"}},
	}}
	found := plan.containers(deployment)[0]
	root := "/home/cluster1/pods/add-ons/proxy/agent"
	want := program{
		Name: "proxy.agent", Path: "/bin/agent", Args: []string{"serve", "--namespace=add-ons", "--hub=/etc/hub"},
		Pod:  types.NamespacedName{Namespace: "add-ons", Name: "proxy"},
		Root: root, Image: filepath.Join(plan.Images, "known", "agent"),
		Env: []string{
			"PATH=/", "HOME=/", "KUBERNETES_SERVICE_HOST=127.0.0.1", fmt.Sprintf("KUBERNETES_SERVICE_PORT=%d", plan.port("kube-apiserver")),
			"NAMESPACE=add-ons",
		},
	}
	if diff := cmp.Diff(want, found.program); diff != "" {
		t.Errorf("program (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"hub": root + "/etc/hub"}, found.folders); diff != "" {
		t.Errorf("folders of volumes (-want +got):\n%s", diff)
	}
	if name := serviceAccountOf(deployment).Name; name != "default" {
		t.Errorf("its service account is %q", name)
	}
}

func TestAVolumeHasTheFilesOfItsSecret(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "etc", "hub")
	for _, content := range []string{"first", "second", "second"} {
		secret := &corev1.Secret{Data: map[string][]byte{"kubeconfig": []byte(content)}}
		if err := mount(secret, folder); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, "kubeconfig"))
		if err != nil || string(got) != content {
			t.Errorf("the file has %q, %v, want %q", got, err, content)
		}
	}
	scratch := filepath.Join(folder, "scratch")
	if err := mount(nil, scratch); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(scratch); err != nil || !info.IsDir() {
		t.Errorf("there is no folder for a volume without a Secret: %v", err)
	}
}

func TestAProgramIsReplacedInItsPlace(t *testing.T) {
	folder := t.TempDir()
	addProgram(t, folder, "agent")
	place := filepath.Join(folder, "root-agent")
	for range 2 {
		if err := replicate(filepath.Join(folder, "agent"), place); err != nil {
			t.Fatal(err)
		}
		if len(missingPrograms(folder, []string{"root-agent"})) > 0 {
			t.Error("it is no program there")
		}
	}
}
