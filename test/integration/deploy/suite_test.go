// Package deploy tests the manifests of deploy/: a real API server has to accept all of them unchanged, and their pods have to pass the
// strictest Pod Security Standard.
package deploy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// root is the folder of the module, relative to this package.
const root = "../../.."

// Set once before the specs run.
var (
	server   client.Client
	warnings bytes.Buffer // the API server's warnings
)

func TestDeploy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Deploy")
}

var _ = BeforeSuite(func() {
	env, err := environment.Bare()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	env.Config.WarningHandler = rest.NewWarningWriter(&warnings, rest.WarningWriterOptions{})
	server, err = client.New(env.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
})

var _ = BeforeEach(func() { warnings.Reset() })

// kustomize returns the objects that kubectl builds from a folder with a kustomization, namespaces first.
func kustomize(ctx context.Context, folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	kubectl := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", folder)
	kubectl.Stderr = GinkgoWriter
	output, err := kubectl.Output()
	Expect(err).NotTo(HaveOccurred())
	objects, err := manifests.Objects(fstest.MapFS{"all.yaml": {Data: output}}, "all.yaml", nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(objects).NotTo(BeEmpty())
	return objects
}

// deployedObjects returns the objects that a folder of deploy/ installs, with components.
func deployedObjects(ctx context.Context, folder string, components ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	if len(components) > 0 {
		return kustomize(ctx, overlay("resources: [%[1]s/"+folder+"]\ncomponents: [%[1]s/"+strings.Join(components, ", %[1]s/")+"]\n"))
	}
	return kustomize(ctx, filepath.Join(root, "deploy", folder))
}

// install applies the objects. A server-side apply rejects unknown fields.
func install(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, object := range objects {
		err := server.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("administrator"))
		Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	}
}

// namesOf returns the names of the objects of a kind.
func namesOf(objects []*unstructured.Unstructured, kind string) []string {
	var names []string
	for _, object := range objects {
		if object.GetKind() == kind {
			names = append(names, object.GetName())
		}
	}
	return names
}

// pods returns a pod for each workload among the objects.
func pods(objects []*unstructured.Unstructured) []*corev1.Pod {
	GinkgoHelper()
	var pods []*corev1.Pod
	for _, object := range objects {
		template, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		if err != nil || !found {
			continue
		}
		pod := &corev1.Pod{}
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(template, pod, true)).To(Succeed())
		pod.Namespace, pod.Name = object.GetNamespace(), object.GetName()
		pods = append(pods, pod)
	}
	return pods
}

// as converts an object to its Go type.
func as[T any](object *unstructured.Unstructured) T {
	GinkgoHelper()
	var typed T
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true)).To(Succeed())
	return typed
}
