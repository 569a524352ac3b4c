package ocm

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
)

// renderManifests returns the manifests for a config, by KIND NAMESPACE/NAME.
func renderManifests(t *testing.T, config upstreamv1beta1.AddOnDeploymentConfigSpec) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := agentManifests("registry.example/addon-agent:1", nil, config)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: content}
		found[object.GetKind()+" "+strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")] = object
	}
	return found
}

func deploymentOf(t *testing.T, objects map[string]*unstructured.Unstructured, namespace string) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	object := objects["Deployment "+namespace+"/addon-agent"]
	if object == nil {
		t.Fatal("there is no Deployment")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, deployment, true); err != nil {
		t.Fatal(err)
	}
	return deployment
}

func TestAgentManifestsOrphanOnlyCRDsAndNamespace(t *testing.T) {
	left := map[string]bool{
		"CustomResourceDefinition instances.kudo.dev": true, "CustomResourceDefinition operatorcontents.kudo.dev": true,
		"CustomResourceDefinition operatorversions.kudo.dev": true,
		"Namespace tandem-system":                            true,
		"Deployment tandem-system/addon-agent":               false, "ServiceAccount tandem-system/addon-agent": false,
		"ClusterRole tandem:addon-agent": false, "ClusterRoleBinding tandem:addon-agent": false,
		"ServiceAccount tandem-system/addon-agent-metrics-reader": false, "ClusterRole tandem:addon-agent-metrics-reader": false,
		"ClusterRoleBinding tandem:addon-agent-metrics-reader": false,
		"ClusterRole tandem:klusterlet-work":                   false, "ValidatingAdmissionPolicy tandem-mirror": false,
		"ValidatingAdmissionPolicyBinding tandem-mirror": false, "FlowSchema tandem-leases": false,
		"FlowSchema tandem-instances": false,
	}
	got := map[string]bool{}
	for name, object := range renderManifests(t, upstreamv1beta1.AddOnDeploymentConfigSpec{}) {
		_, got[name] = object.GetAnnotations()["addon.open-cluster-management.io/deletion-orphan"]
	}
	if diff := cmp.Diff(left, got); diff != "" {
		t.Errorf("what is left behind (-want +got):\n%s", diff)
	}
}

func TestAgentManifestsUseTheNamespaceOfTheConfig(t *testing.T) {
	for name, test := range map[string]struct{ named, want string }{
		"a namespace that is named":              {"spoke", "spoke"},
		"none":                                   {"", "tandem-system"},
		"OCM's default, which may be unintended": {"open-cluster-management-agent-addon", "tandem-system"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := renderManifests(t, upstreamv1beta1.AddOnDeploymentConfigSpec{AgentInstallNamespace: test.named})
			for name, object := range objects {
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				if test.want != agentNamespace && strings.Contains(string(text), agentNamespace) {
					t.Errorf("%s still names %s", name, agentNamespace)
				}
			}
			for _, name := range []string{"Namespace " + test.want, "ServiceAccount " + test.want + "/addon-agent"} {
				if objects[name] == nil {
					t.Fatalf("there is no %s", name)
				}
			}
			restricted := objects["Namespace "+test.want].GetLabels()["pod-security.kubernetes.io/enforce"] != ""
			if ours := test.want == agentNamespace; restricted != ours {
				t.Errorf("what may run in the namespace is restricted: %t, want %t", restricted, ours)
			}
			policy, _ := json.Marshal(objects["ValidatingAdmissionPolicy tandem-mirror"])
			if !strings.Contains(string(policy), "system:serviceaccount:"+test.want+":addon-agent") {
				t.Error("the policy keeps the agent off its own mirror")
			}
			deploymentOf(t, objects, test.want)
		})
	}
}

func TestAgentManifestsFollowTheConfig(t *testing.T) {
	small := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}
	large := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}}
	tolerations := []corev1.Toleration{{Key: "infra", Operator: corev1.TolerationOpExists}}
	pod := deploymentOf(t, renderManifests(t, upstreamv1beta1.AddOnDeploymentConfigSpec{
		CustomizedVariables: []upstreamv1beta1.CustomizedVariable{{Name: "PipeImage", Value: "registry.example/pipe"}, {Name: "ImagePullSecrets", Value: "registry,mirror"}},
		NodePlacement:       &upstreamv1beta1.NodePlacement{NodeSelector: map[string]string{"disk": "ssd"}, Tolerations: tolerations},
		ProxyConfig:         upstreamv1beta1.ProxyConfig{HTTPSProxy: "https://proxy", NoProxy: "10.0.0.0/8"},
		ResourceRequirements: []upstreamv1beta1.ContainerResourceRequirements{
			{ContainerID: "*:*:*", Resources: small},
			{ContainerID: "deployments:addon-*:addon-agent", Resources: large},
			{ContainerID: "daemonsets:*:*", Resources: small},
		},
	}), agentNamespace).Spec.Template.Spec
	container := pod.Containers[0]
	if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "registry"}, {Name: "mirror"}}, pod.ImagePullSecrets); diff != "" {
		t.Errorf("pull secrets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"disk": "ssd"}, pod.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(tolerations, pod.Tolerations); diff != "" {
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(large, container.Resources); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if container.Image != "registry.example/addon-agent:1" {
		t.Errorf("the image is %s", container.Image)
	}
	if last := container.Args[len(container.Args)-1]; last != "--pipe-image=registry.example/pipe" {
		t.Errorf("the last argument is %s", last)
	}
	want := []corev1.EnvVar{
		{Name: "HTTPS_PROXY", Value: "https://proxy"}, {Name: "NO_PROXY", Value: "$(KUBERNETES_SERVICE_HOST),10.0.0.0/8"},
	}
	if diff := cmp.Diff(want, container.Env[len(container.Env)-2:]); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

// authority returns an unrelated certificate in PEM.
func authority(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestAgentManifestsTrustTheAuthorityOfTheProxy(t *testing.T) {
	first, second := authority(t, "first"), authority(t, "second")
	named := map[string]bool{}
	for _, bundle := range [][]byte{first, second} {
		objects := renderManifests(t, upstreamv1beta1.AddOnDeploymentConfigSpec{
			AgentInstallNamespace: "spoke", ProxyConfig: upstreamv1beta1.ProxyConfig{HTTPSProxy: "https://proxy", CABundle: bundle},
		})
		pod := deploymentOf(t, objects, "spoke").Spec.Template.Spec
		container := pod.Containers[0]
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil })
		if at < 0 {
			t.Fatal("no ConfigMap is mounted")
		}
		volume := pod.Volumes[at]
		named[volume.ConfigMap.Name] = true
		mounted := objects["ConfigMap spoke/"+volume.ConfigMap.Name]
		if mounted == nil {
			t.Fatalf("there is no ConfigMap %s", volume.ConfigMap.Name)
		}
		content, _, _ := unstructured.NestedString(mounted.Object, "data", "ca-bundle.crt")
		if content != string(bundle) {
			t.Errorf("the ConfigMap has %q", content)
		}
		mount := container.VolumeMounts[len(container.VolumeMounts)-1]
		if diff := cmp.Diff(corev1.VolumeMount{Name: volume.Name, MountPath: "/var/run/tandem/proxy", ReadOnly: true}, mount); diff != "" {
			t.Errorf("mount (-want +got):\n%s", diff)
		}
		if last := container.Args[len(container.Args)-1]; last != "--hub-certificate-authority=/var/run/tandem/proxy/ca-bundle.crt" {
			t.Errorf("the last argument is %s", last)
		}
	}
	if len(named) != 2 {
		t.Error("another authority does not replace the pod")
	}
	for name, proxy := range map[string]upstreamv1beta1.ProxyConfig{
		"without a proxy": {CABundle: first}, "without an authority": {HTTPSProxy: "https://proxy"},
	} {
		for object := range renderManifests(t, upstreamv1beta1.AddOnDeploymentConfigSpec{ProxyConfig: proxy}) {
			if strings.HasPrefix(object, "ConfigMap") {
				t.Errorf("%s there is %s", name, object)
			}
		}
	}
}

func TestAgentManifestsRefuseAnAuthorityThatIsNone(t *testing.T) {
	_, err := agentManifests("image", nil, upstreamv1beta1.AddOnDeploymentConfigSpec{
		ProxyConfig: upstreamv1beta1.ProxyConfig{HTTPSProxy: "https://proxy", CABundle: []byte("-----BEGIN NOTHING-----")},
	})
	if err == nil || err.Error() != "proxyConfig.caBundle has no certificate in PEM" {
		t.Errorf("the error is %v", err)
	}
}

func TestAgentManifestsRefuseWhatTheyDoNotKnow(t *testing.T) {
	_, err := agentManifests("image", nil, upstreamv1beta1.AddOnDeploymentConfigSpec{
		CustomizedVariables: []upstreamv1beta1.CustomizedVariable{{Name: "image", Value: "x"}, {Name: "Colour", Value: "red"}},
	})
	want := "unknown variable image of addon-agent (did you mean Image?): available variables are Image, PipeImage, ImagePullSecrets, Rights, DefaultServiceAccount\n" +
		"unknown variable Colour of addon-agent: available variables are Image, PipeImage, ImagePullSecrets, Rights, DefaultServiceAccount"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
}

func TestAgentManifestsRefuseASecretWithoutAName(t *testing.T) {
	for _, names := range []string{"registry,", "registry, mirror", "a/b"} {
		_, err := agentManifests("image", nil, upstreamv1beta1.AddOnDeploymentConfigSpec{
			CustomizedVariables: []upstreamv1beta1.CustomizedVariable{{Name: "ImagePullSecrets", Value: names}},
		})
		if err == nil || !strings.Contains(err.Error(), "is not the name of a Secret") {
			t.Errorf("%q: the error is %v", names, err)
		}
	}
}

// In addition to the restricted Pod Security Standard, which an API server checks (test/integration/delivery).
func TestAgentPodTakesNoMoreThanItNeeds(t *testing.T) {
	pod := deploymentOf(t, renderManifests(t, upstreamv1beta1.AddOnDeploymentConfigSpec{}), agentNamespace).Spec.Template.Spec
	container := pod.Containers[0]
	for rule, kept := range map[string]bool{
		"it has one container":             len(pod.Containers) == 1 && len(pod.InitContainers) == 0,
		"it writes no files":               ptr.Deref(container.SecurityContext.ReadOnlyRootFilesystem, false),
		"its volumes are Secrets":          len(pod.Volumes) == 1 && pod.Volumes[0].Secret != nil,
		"it asks for memory and processor": len(container.Resources.Requests) == 2,
	} {
		if !kept {
			t.Errorf("not so: %s", rule)
		}
	}
}
