package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// keyFiles are the files of a pair of keys, and the public key.
type keyFiles struct {
	private, public string
	keys            []signature.Key
}

// newKeyFiles writes a pair of keys.
func newKeyFiles() keyFiles {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	files := keyFiles{private: filepath.Join(dir, "own.key"), public: filepath.Join(dir, "own.pub")}
	encoded := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	Expect(os.WriteFile(files.public, encoded, 0o600)).To(Succeed())
	Expect(os.WriteFile(files.private, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)).To(Succeed())
	files.keys, err = signature.ParseKeys("own.pub", encoded)
	Expect(err).NotTo(HaveOccurred())
	return files
}

// writeShop writes package shop with all that is stored in different ways: a chart and an image in a registry, a template that is too large for an
// OperatorVersion, a child operator, permissions, and fields that the API server adds defaults to.
func writeShop(host string) string {
	GinkgoHelper()
	shop := filepath.Join(GinkgoT().TempDir(), "shop")
	writePackage(filepath.Join(shop, "cart"), "0.2.0")
	Expect(os.Mkdir(filepath.Join(shop, "templates"), 0o755)).To(Succeed())
	for name, text := range map[string]string{
		"operator.yaml": fmt.Sprintf(`apiVersion: kudo.dev/v1beta1
name: shop
operatorVersion: 1.0.0
appVersion: "1.10"
permissions: {rules: [{apiGroups: [""], resources: [configmaps, pods], verbs: ["*"]}]}
tasks:
- {name: cart, kind: KudoOperator, spec: {package: ./cart}}
- {name: web, kind: Helm, spec: {chart: 'oci://%s/charts/web', version: 1.2.3}}
- {name: app, kind: Apply, spec: {resources: [app.yaml, large.yaml]}}
plans:
  deploy: {phases: [{name: main, steps: [{name: main, tasks: [cart, web, app]}]}]}
  update: {strategy: parallel, phases: [{name: main, strategy: parallel, steps: [{name: main, tasks: [app]}]}]}
`, host),
		"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: [{name: SIZE, default: 2000000}, {name: ON, type: boolean, required: false}]\n",
		"templates/app.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: '{{ .Name }}'}\nspec: {containers: [{name: app, image: '" + host +
			"/images/app:1.0.0'}]}\n",
		"templates/large.yaml": strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 2<<20/100) + configMap,
	} {
		Expect(os.WriteFile(filepath.Join(shop, filepath.FromSlash(name)), []byte(text), 0o600)).To(Succeed())
	}
	return shop
}

var _ = Describe("packages in registries", func() {
	var (
		host, mirror, shop, namespace string
		own                           keyFiles
	)
	BeforeEach(func(ctx context.Context) {
		registrytest.Alone(GinkgoTB())
		host, mirror = registrytest.Registry(GinkgoTB(), false), registrytest.Registry(GinkgoTB(), false)
		registrytest.Push(GinkgoTB(), host+"/charts/web:1.2.3", registrytest.Chart(GinkgoTB(), "web", "1.2.3", map[string]string{
			"templates/a.yaml": configMap,
		}))
		image := filepath.Join(GinkgoT().TempDir(), "app")
		writePackage(image, "1.0.0")
		shop, own, namespace = writeShop(host), newKeyFiles(), newNamespace(ctx)
		succeed(run(ctx, "package", "push", image, "oci://"+host+"/images/app")) // any artifact is copied as an image is
	})
	// stored returns an OperatorVersion as the API server stores it.
	stored := func(ctx context.Context, name string) *kudo.OperatorVersion {
		GinkgoHelper()
		version := &kudo.OperatorVersion{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, version)).To(Succeed())
		return version
	}
	// expectSigned checks what a hub that requires signatures checks.
	expectSigned := func(ctx context.Context) {
		GinkgoHelper()
		for _, name := range []string{"shop-1.10-1.0.0", "cart-0.2.0"} {
			Expect(signature.VerifyVersion(stored(ctx, name), signature.Trust{Keys: own.keys})).To(Succeed())
			Expect(signature.VerifyVersion(stored(ctx, name), signature.Trust{Keys: newKeyFiles().keys})).NotTo(Succeed())
		}
	}

	It("are stored on the hub with signatures that a hub which requires them accepts", func(ctx context.Context) {
		place := "oci://" + host + "/packages/shop"
		first := run(ctx, "package", "push", shop, place, "--sign-key", own.private)
		succeed(first)
		named := regexp.MustCompile(`oci://\S+@sha256:\w+`).FindString(first.out)

		By("refusing another key before anything is stored")
		refused := run(ctx, "package", "push", place, "--key", newKeyFiles().public, "-n", namespace)
		Expect(refused.err).To(MatchError(ContainSubstring("none of its signatures was made with one of the keys")))
		Expect(refused.code).To(Equal(cli.ExitFailure))
		versions := &kudo.OperatorVersionList{}
		Expect(hub.List(ctx, versions, client.InNamespace(namespace))).To(Succeed())
		Expect(versions.Items).To(BeEmpty())

		By("pushing it with the key")
		pushed := run(ctx, "package", "push", place, "--key", own.public, "-n", namespace)
		succeed(pushed)
		Expect(strings.Count(pushed.out, " signed\n")).To(Equal(2), pushed.out)
		Expect(stored(ctx, "shop-1.10-1.0.0").Spec.Content).To(HaveLen(2))
		expectSigned(ctx)

		By("pushing it again")
		again := run(ctx, "package", "push", place, "-n", namespace)
		succeed(again)
		Expect(again.out).NotTo(Or(ContainSubstring("signed"), ContainSubstring("created"), ContainSubstring("configured")))

		By("adding a signature by a further key")
		next := newKeyFiles()
		succeed(run(ctx, "package", "sign", named, "--key", next.private))
		succeed(run(ctx, "package", "push", place, "-n", namespace))
		expectSigned(ctx)
		Expect(signature.VerifyVersion(stored(ctx, "shop-1.10-1.0.0"), signature.Trust{Keys: next.keys})).To(Succeed())
	})

	It("are signed without a registry, too, also after they were stored without a signature", func(ctx context.Context) {
		succeed(run(ctx, "package", "push", shop, "-n", namespace))
		Expect(signature.VerifyVersion(stored(ctx, "shop-1.10-1.0.0"), signature.Trust{Keys: own.keys})).To(MatchError("it has no signature"))
		pushed := run(ctx, "package", "push", shop, "-n", namespace, "--sign-key", own.private)
		succeed(pushed)
		Expect(pushed.out).To(And(ContainSubstring("shop-1.10-1.0.0 signed\n"), ContainSubstring("cart-0.2.0 signed\n")))
		expectSigned(ctx)
	})

	It("are not said to be signed if an earlier release stored them without a field that the signature covers", func(ctx context.Context) {
		dir := filepath.Join(GinkgoT().TempDir(), "old")
		writePackage(dir, "1.0.0")
		operator := filepath.Join(dir, "operator.yaml")
		content, err := os.ReadFile(operator)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(operator, append(content, "\nkubernetesVersion: 1.25.0\n"...), 0o600)).To(Succeed())
		succeed(run(ctx, "package", "push", dir, "-n", namespace))
		versions := &kudo.OperatorVersionList{}
		Expect(hub.List(ctx, versions, client.InNamespace(namespace))).To(Succeed())
		Expect(versions.Items).To(HaveLen(1))
		earlier := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: versions.Items[0].Name}, Spec: versions.Items[0].Spec}
		Expect(earlier.Spec.KubernetesVersion).To(Equal("1.25.0"))
		earlier.Spec.KubernetesVersion = ""
		Expect(hub.Delete(ctx, &versions.Items[0])).To(Succeed())
		Expect(hub.Create(ctx, earlier)).To(Succeed())
		pushed := run(ctx, "package", "push", dir, "-n", namespace, "--sign-key", own.private)
		Expect(pushed.err).To(MatchError(ContainSubstring("is not signed: the signature is about other content than the hub stores: raise operatorVersion")))
		Expect(pushed.out).NotTo(ContainSubstring(" signed"))
	})

	It("are mirrored with charts, images and signatures, so that nothing else needs the first registry", func(ctx context.Context) {
		succeed(run(ctx, "package", "push", shop, "oci://"+host+"/packages/shop", "--sign-key", own.private))
		got := run(ctx, "package", "mirror", "oci://"+host+"/packages/shop", "oci://"+mirror+"/tandem")
		succeed(got)
		name := strings.NewReplacer(":", "-").Replace(host)
		Expect(got.out).To(And(
			MatchRegexp(`oci://%s/tandem/packages/shop:1.0.0_1.10@sha256:\w+ copied with 1 signature\n`, mirror),
			MatchRegexp(`oci://%s/tandem/charts/%s/charts/web:1.2.3@sha256:\w+ copied\n`, mirror, name),
			MatchRegexp(`oci://%s/tandem/%s/images/app:1.0.0@sha256:\w+ copied\n`, mirror, name),
			ContainSubstring("registries:\n- source: %s\n  mirror: %s/tandem/%s\n", host, mirror, name),
		))
		_, after, found := strings.Cut(got.out, "export TANDEM_CHART_MIRRORS=")
		Expect(found).To(BeTrue(), got.out)
		setting, _, _ := strings.Cut(after, "\n")

		By("pushing it from the mirror")
		GinkgoTB().Setenv("TANDEM_CHART_MIRRORS", strings.Trim(setting, `'"`))
		succeed(run(ctx, "package", "push", "oci://"+mirror+"/tandem/packages/shop", "--key", own.public, "-n", namespace))
		expectSigned(ctx)

		By("mirroring it again")
		succeed(run(ctx, "package", "mirror", "oci://"+host+"/packages/shop", "oci://"+mirror+"/tandem"))
	})
})

// succeed checks that a command succeeded.
func succeed(got result) {
	GinkgoHelper()
	Expect(got.err).NotTo(HaveOccurred(), got.errOut)
}
