// Package cli tests the kubectl plugin against a real API server.
package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// Set once before the specs run.
var (
	hub        client.Client
	kubeconfig string
)

// TestMain makes the suite's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

func TestCLI(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyPollingInterval(50 * time.Millisecond)
	SetDefaultConsistentlyDuration(time.Second)
	RunSpecs(t, "CLI")
}

var _ = BeforeSuite(func() {
	ctrl.SetLogger(GinkgoLogr)
	env, err := environment.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	scheme := runtime.NewScheme()
	Expect(corev1.AddToScheme(scheme)).To(Succeed())
	Expect(certificatesv1.AddToScheme(scheme)).To(Succeed())
	Expect(coordinationv1.AddToScheme(scheme)).To(Succeed())
	Expect(rbacv1.AddToScheme(scheme)).To(Succeed())
	Expect(kudo.AddToScheme(scheme)).To(Succeed())
	Expect(addonv1alpha1.AddToScheme(scheme)).To(Succeed())
	hub, err = client.New(env.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	kubeconfig = writeKubeconfig(env.Config)
})

func writeKubeconfig(config *rest.Config) string {
	GinkgoHelper()
	content := clientcmdapi.NewConfig()
	content.Clusters["hub"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	content.AuthInfos["admin"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
	}
	content.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "admin"}
	content.CurrentContext = "hub"
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*content, file)).To(Succeed())
	return file
}

// result is the result of a run of the plugin.
type result struct {
	out, errOut string
	err         error
	code        int
}

// run executes `kubectl addon` against the hub.
func run(ctx context.Context, args ...string) result {
	var out, errOut bytes.Buffer
	err := runTo(ctx, &out, &errOut, args...)
	return result{out: out.String(), errOut: errOut.String(), err: err, code: cli.ExitCode(err)}
}

// runTo is like run, and the output can be read meanwhile.
func runTo(ctx context.Context, out, errOut io.Writer, args ...string) error {
	cmd := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut}, "v0.0.0")
	cmd.SetArgs(append(args, "--kubeconfig", kubeconfig, "--cache-dir", GinkgoT().TempDir()))
	return cmd.ExecuteContext(ctx)
}

// begin executes `kubectl addon` concurrently, while the spec acts as the controllers.
func begin(ctx context.Context, args ...string) chan result {
	return beginTo(ctx, gbytes.NewBuffer(), args...)
}

// beginTo is like begin, and the progress can be read meanwhile.
func beginTo(ctx context.Context, errOut *gbytes.Buffer, args ...string) chan result {
	done := make(chan result, 1)
	go func() {
		defer GinkgoRecover()
		var out bytes.Buffer
		err := runTo(ctx, &out, errOut, args...)
		done <- result{out: out.String(), errOut: string(errOut.Contents()), err: err, code: cli.ExitCode(err)}
	}()
	return done
}

// newCluster creates a managed cluster with the labels, and its namespace, for one spec.
func newCluster(ctx context.Context, labels map[string]string) string {
	GinkgoHelper()
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetName(newNamespace(ctx))
	cluster.SetLabels(labels)
	Expect(hub.Create(ctx, cluster)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(hub.DeleteAllOf(ctx, &addonv1alpha1.ManagedClusterAddOn{}, client.InNamespace(cluster.GetName()))).To(Succeed())
		Expect(hub.Delete(ctx, cluster)).To(Succeed())
	})
	return cluster.GetName()
}

// newNamespace creates a namespace for one spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	Expect(hub.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// configMap is a template of an object.
const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"

// packageDir writes a package with the given text in its only template.
func packageDir(template string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.Mkdir(filepath.Join(dir, "templates"), 0o755)).To(Succeed())
	for name, text := range map[string]string{
		"operator.yaml": `name: shop
operatorVersion: 1.2.0
appVersion: 1.10
description: sells
tasks:
  - {name: app, kind: Apply, spec: {resources: [app.yaml]}}
  - {name: done, kind: Dummy, spec: {done: true}}
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app, done]}]}]}
  backup: {}
`,
		"params.yaml":        "parameters: [{name: SIZE, default: 2000000, trigger: backup, forcePodRestart: \"false\"}]\n",
		"templates/app.yaml": template,
	} {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	return dir
}

// writePackage writes a package named after its folder in a version, with a child operator for each package.
func writePackage(dir, version string, children ...string) {
	GinkgoHelper()
	var tasks, steps strings.Builder
	for _, child := range children {
		name := filepath.Base(child)
		fmt.Fprintf(&tasks, "- {name: %s, kind: KudoOperator, spec: {package: %s}}\n", name, child)
		fmt.Fprintf(&steps, "%s, ", name)
	}
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	for name, text := range map[string]string{
		"operator.yaml": fmt.Sprintf("name: %s\noperatorVersion: %s\ntasks:\n%s- {name: done, kind: Dummy, spec: {done: true}}\n"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: main, tasks: [%sdone]}]}]}}\n", filepath.Base(dir), version, &tasks, &steps),
		"params.yaml": "parameters: []\n",
	} {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
}

// describe adds a description to a package.
func describe(dir, text string) {
	GinkgoHelper()
	file, err := os.OpenFile(filepath.Join(dir, "operator.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	Expect(err).NotTo(HaveOccurred())
	_, err = fmt.Fprintf(file, "description: %s\n", text)
	Expect(err).NotTo(HaveOccurred())
	Expect(file.Close()).To(Succeed())
}

// allow grants a user permissions in a namespace.
func allow(ctx context.Context, namespace, user string, rules ...rbacv1.PolicyRule) {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: user}
	Expect(hub.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules})).To(Succeed())
	Expect(hub.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})).To(Succeed())
}

// lock makes the hub refuse add-ons with that install namespace, which it tries on a cluster.
func lock(ctx context.Context, namespace, cluster string) {
	GinkgoHelper()
	policy, binding := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	for kind, object := range map[string]*unstructured.Unstructured{"ValidatingAdmissionPolicy": policy, "ValidatingAdmissionPolicyBinding": binding} {
		object.SetAPIVersion("admissionregistration.k8s.io/v1")
		object.SetKind(kind)
		object.SetName("lock-" + namespace)
	}
	policy.Object["spec"] = map[string]any{
		"failurePolicy": "Fail",
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{addonv1alpha1.GroupVersion.Group}, "apiVersions": []any{"*"},
			"operations": []any{"CREATE", "UPDATE"}, "resources": []any{"managedclusteraddons"},
		}}},
		"validations": []any{map[string]any{
			"expression": fmt.Sprintf("object.spec.?installNamespace.orValue('') != %q", namespace), "message": "nothing is installed in " + namespace,
		}},
	}
	binding.Object["spec"] = map[string]any{"policyName": policy.GetName(), "validationActions": []any{"Deny"}}
	for _, object := range []client.Object{policy, binding} {
		Expect(hub.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, object)).To(Succeed()) })
	}
	trial := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "trial"}}
	trial.Spec.InstallNamespace = namespace
	Eventually(func() error { return hub.Create(ctx, trial.DeepCopy(), client.DryRunAll) }).Should(MatchError(ContainSubstring("nothing is installed in")))
}
