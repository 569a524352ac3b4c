// Package deploy checks what deploy/ installs: a real API server has to take all of it as it is, and the pods that it would run have to
// pass the strictest of the Pod Security Standards there.
package deploy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
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

// root is the folder of the module, as seen from this package.
const root = "../../.."

// Set once, before the specs run.
var (
	server   client.Client
	warnings bytes.Buffer // what the API server has warned of
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

// rendered are the objects that kubectl makes of a folder with a kustomization, namespaces first.
func rendered(ctx context.Context, folder string) []*unstructured.Unstructured {
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

// deployed is what a folder of deploy/ installs.
func deployed(ctx context.Context, folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	return rendered(ctx, filepath.Join(root, "deploy", folder))
}

// install brings the objects to the API server. A server-side apply refuses fields that it does not know.
func install(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	for _, object := range objects {
		err := server.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("administrator"))
		Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	}
}

// named are the names of the objects of a kind.
func named(objects []*unstructured.Unstructured, kind string) []string {
	var names []string
	for _, object := range objects {
		if object.GetKind() == kind {
			names = append(names, object.GetName())
		}
	}
	return names
}

// pods are one of each workload among the objects.
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

// as is an object of a kind that Go knows.
func as[T any](object *unstructured.Unstructured) T {
	GinkgoHelper()
	var typed T
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true)).To(Succeed())
	return typed
}
