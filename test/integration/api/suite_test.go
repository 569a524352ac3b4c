// Package api tests on a real API server what the resource definitions accept, reject, default and print.
package api

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// Set once before the specs run.
var (
	config *rest.Config
	server client.Client
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "API")
}

var _ = BeforeSuite(func() {
	running, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(running.Stop)
	config = running.Config

	scheme := runtime.NewScheme()
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	Expect(addonv1alpha1.AddToScheme(scheme)).To(Succeed())
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	server, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

// newNamespace creates a namespace for one spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	Expect(server.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// object parses one YAML document. The default name is "sample".
func object(document string) *unstructured.Unstructured {
	GinkgoHelper()
	content := map[string]any{}
	Expect(yaml.Unmarshal([]byte(document), &content)).To(Succeed())
	parsed := &unstructured.Unstructured{Object: content}
	if parsed.GetName() == "" {
		parsed.SetName("sample")
	}
	return parsed
}

// kudoObject returns an object of kudo.dev from the YAML of its body, such as "spec: {version: 1.0.0}".
func kudoObject(kind, namespace, body string) *unstructured.Unstructured {
	GinkgoHelper()
	made := object(body)
	made.SetGroupVersionKind(kudo.GroupVersion.WithKind(kind))
	made.SetNamespace(namespace)
	return made
}

// clusterManagementAddOn returns a ClusterManagementAddOn of that name with the YAML of a spec.
func clusterManagementAddOn(name, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	made := object("{spec: " + spec + "}")
	made.SetGroupVersionKind(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"))
	made.SetName(name)
	return made
}

// field returns a nested field, or nil.
func field(from *unstructured.Unstructured, path ...string) any {
	GinkgoHelper()
	value, _, err := unstructured.NestedFieldNoCopy(from.Object, path...)
	Expect(err).NotTo(HaveOccurred())
	return value
}

// patch applies a JSON merge patch to a stored object.
func patch(ctx context.Context, stored client.Object, document string) error {
	return server.Patch(ctx, stored, client.RawPatch("application/merge-patch+json", []byte(document)))
}
