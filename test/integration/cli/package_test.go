package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/core/render"
)

var _ = Describe("packages on the hub", func() {
	var namespace, cart, stock string

	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		dir := GinkgoT().TempDir()
		cart, stock = filepath.Join(dir, "cart"), filepath.Join(dir, "stock")
		for _, version := range []string{"1.9.0", "1.10.0"} {
			writePackage(stock, version)
			Expect(run(ctx, "package", "push", stock, "-n", namespace).err).NotTo(HaveOccurred())
		}
		writePackage(cart, "0.2.0", "stock")
		Expect(run(ctx, "package", "push", cart, "-n", namespace).err).NotTo(HaveOccurred())
	})

	newInstance := func(ctx context.Context, in, name string, version corev1.ObjectReference) {
		GinkgoHelper()
		Expect(hub.Create(ctx, &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Spec: kudo.InstanceSpec{OperatorVersion: version},
		})).To(Succeed())
	}

	It("begin as one that can be pushed, and whose objects a cluster takes", func(ctx context.Context) {
		dir := filepath.Join(GinkgoT().TempDir(), "web")
		Expect(run(ctx, "package", "new", "web", dir).err).NotTo(HaveOccurred())
		pushed := run(ctx, "package", "push", dir, "-n", namespace)
		Expect(pushed.err).NotTo(HaveOccurred())
		Expect(pushed.out).To(HaveSuffix("operatorversion.kudo.dev/web-1.27.3-0.1.0 created\n"))
		Expect(pushed.errOut).To(BeEmpty())
		var version kudo.OperatorVersion
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web-1.27.3-0.1.0"}, &version)).To(Succeed())
		for _, task := range version.Spec.Tasks {
			objects, err := render.Objects(render.Context{Version: &version.Spec, Instance: "web", Namespace: namespace}, task.Spec.Resources...)
			Expect(err).NotTo(HaveOccurred())
			for _, object := range objects {
				object.SetNamespace(namespace) // as the agent does
				Expect(hub.Create(ctx, object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
			}
		}
	})

	It("are listed, the highest version first, with how many Instances ask for them", func(ctx context.Context) {
		elsewhere := newNamespace(ctx)
		newInstance(ctx, namespace, "one", corev1.ObjectReference{Name: "stock-1.9.0"})
		newInstance(ctx, elsewhere, "two", corev1.ObjectReference{Name: "stock-1.9.0", Namespace: namespace})
		newInstance(ctx, elsewhere, "three", corev1.ObjectReference{Name: "stock-1.10.0"})
		list := run(ctx, "package", "list", "-n", namespace, "-o",
			`jsonpath={range .packages[*]}{.namespace} {.operatorVersion} {.operator} {.version} {.instances}{"\n"}{end}`)
		Expect(list.err).NotTo(HaveOccurred())
		Expect(strings.ReplaceAll(list.out, namespace, "NS")).To(Equal(
			"NS cart-0.2.0 cart 0.2.0 0\nNS stock-1.10.0 stock 1.10.0 0\nNS stock-1.9.0 stock 1.9.0 2\n"))
		Expect(run(ctx, "package", "list").out).To(And(HavePrefix("NAMESPACE"), ContainSubstring(namespace)))
		Expect(run(ctx, "package", "list", "-n", elsewhere).out).To(HavePrefix("No packages found"))
	})

	It("are listed for those who may see no Instances, and for those who may see one namespace", func(ctx context.Context) {
		allow(ctx, namespace, "lister", rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}})
		Eventually(func() string { return run(ctx, "package", "list", "-n", namespace, "--as", "lister").out }).Should(MatchRegexp(`stock-1.10.0 +stock +1.10.0 +- +\?\n`))
		Expect(run(ctx, "package", "list", "--as", "lister").err).To(MatchError(And(
			ContainSubstring("forbidden"), HaveSuffix("select a namespace with -n, such as addon-packages: 'kubectl addon check' lists what your user may do"))))
	})

	It("are shown by their names, or by those of their operators, with their dependencies", func(ctx context.Context) {
		shown := run(ctx, "package", "show", "cart", "-n", namespace)
		Expect(shown.err).NotTo(HaveOccurred())
		Expect(shown.out).To(And(
			ContainSubstring("Source:           namespace "+namespace+" on the hub\n"),
			ContainSubstring("\nDEPENDENCIES\ncart: OperatorVersion cart-0.2.0\n└── cart.stock: OperatorVersion stock-1.10.0\n"),
		))
		Expect(run(ctx, "package", "show", "stock", "-n", namespace, "-o", "name").out).To(Equal("operatorversion.kudo.dev/stock-1.10.0\n"))
		Expect(run(ctx, "package", "show", "stock-1.9.0", "-n", namespace, "-o", "name").out).To(Equal("operatorversion.kudo.dev/stock-1.9.0\n"))

		By("asking for another one")
		Expect(run(ctx, "package", "show", "stok", "-n", namespace).err).To(MatchError(
			`in namespace "` + namespace + `" on the hub: package "stok" not found: did you mean stock?`))
		Expect(run(ctx, "package", "show", "stock").err).To(MatchError(ContainSubstring(`in namespace "addon-packages" on the hub`)))

		By("removing its dependencies")
		for _, version := range []string{"stock-1.9.0", "stock-1.10.0"} {
			Expect(hub.Delete(ctx, &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: version}})).To(Succeed())
		}
		alone := run(ctx, "package", "show", "dependencies", "cart", "-n", namespace)
		Expect(alone.err).NotTo(HaveOccurred())
		Expect(alone.out).To(ContainSubstring(`operator "stock" does not exist`))
	})

	It("are compared with each other, and with what is to be pushed", func(ctx context.Context) {
		between := run(ctx, "package", "diff", "stock-1.9.0", "stock", "-n", namespace)
		Expect(between.err).NotTo(HaveOccurred())
		Expect(between.out).To(Equal("stock-1.9.0 -> stock-1.10.0\n\nVERSION\n  ~ version: 1.9.0 -> 1.10.0\n\n" +
			"Upgrading an Instance runs plan deploy.\n"))

		By("comparing what was not changed")
		Expect(run(ctx, "package", "diff", "stock", stock, "-n", namespace).out).To(Equal("No differences between stock-1.10.0 and stock-1.10.0.\n"))

		Expect(run(ctx, "package", "diff", "cart", cart, "-n", namespace).out).To(Equal("No differences between cart-0.2.0 and cart-0.2.0.\n"))

		By("comparing what was changed, and not raised")
		Expect(os.WriteFile(filepath.Join(stock, "params.yaml"), []byte("parameters: [{name: SIZE, default: 1}]\n"), 0o600)).To(Succeed())
		changed := run(ctx, "package", "diff", "stock", stock, "-n", namespace)
		Expect(changed.err).NotTo(HaveOccurred())
		Expect(changed.out).To(And(ContainSubstring("\nPARAMETERS\n  + SIZE: string, default 1\n"), ContainSubstring("raise operatorVersion")))
	})

	It("complete in a shell, as do clusters' Instances and their plans", func(ctx context.Context) {
		newInstance(ctx, namespace, "one", corev1.ObjectReference{Name: "stock-1.9.0"})
		Expect(completions(ctx, "package", "show", "-n", namespace, "st")).To(Equal([]string{"stock-1.10.0", "stock-1.9.0"}))
		Expect(completions(ctx, "package", "diff", "-n", namespace, "stock-1.9.0", "c")).To(Equal([]string{"cart-0.2.0"}))
		Expect(completions(ctx, "plan", "status", "--cluster", namespace, "")).To(Equal([]string{"one"}))
		Expect(completions(ctx, "plan", "status", "")).To(BeEmpty())
		Expect(completions(ctx, "get", "--context", "h")).To(Equal([]string{"hub"}))
		Expect(completions(ctx, "package", "list", "-n", namespace[:len(namespace)-1])).To(ContainElement(namespace))
	})
})

// completions returns the shell completions of the last word.
func completions(ctx context.Context, words ...string) []string {
	GinkgoHelper()
	var out bytes.Buffer
	cmd := cli.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &bytes.Buffer{}}, "v0.0.0")
	cmd.SetArgs(append([]string{"__completeNoDesc", "--kubeconfig", kubeconfig, "--cache-dir", GinkgoT().TempDir()}, words...))
	Expect(cmd.ExecuteContext(ctx)).To(Succeed())
	found := strings.Split(strings.TrimSpace(out.String()), "\n")
	return found[:len(found)-1] // followed by the completion directive
}
