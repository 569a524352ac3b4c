package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/core/content"
	kubecontent "github.com/tandem-addons/tandem/pkg/kube/content"
)

var _ = Describe("package push", func() {
	It("stores a package once, says so when it is there, and refuses another content under the same version", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := packageDir("a: b\n")

		By("pushing it")
		pushed := run(ctx, "package", "push", dir, "-n", namespace)
		Expect(pushed.err).NotTo(HaveOccurred())
		Expect(pushed.out).To(Equal("operator.kudo.dev/shop created\noperatorversion.kudo.dev/shop-1.10-1.2.0 created\n"))
		var version kudo.OperatorVersion
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.10-1.2.0"}, &version)).To(Succeed())
		Expect(version.Spec.Operator.Name).To(Equal("shop"))
		Expect(version.Spec.Parameters).To(Equal([]kudo.Parameter{{
			Name: "SIZE", Required: new(true), Default: new("2000000"), Trigger: "backup", Type: "string", ForcePodRestart: new(kudo.Flag(false)),
		}}))
		Expect(version.ManagedFields).To(HaveLen(1))
		Expect(version.ManagedFields[0].Manager).To(Equal("kubectl-addon"))
		Expect(version.ManagedFields[0].Operation).To(Equal(metav1.ManagedFieldsOperationApply))

		By("pushing it again")
		again := run(ctx, "package", "push", dir, "-n", namespace)
		Expect(again.err).NotTo(HaveOccurred())
		Expect(again.out).To(Equal("operator.kudo.dev/shop unchanged\noperatorversion.kudo.dev/shop-1.10-1.2.0 unchanged\n"))

		By("pushing another content under the same version")
		another := packageDir("a: c\n")
		changed := run(ctx, "package", "push", another, "-n", namespace)
		Expect(changed.err).To(MatchError(`OperatorVersion "shop-1.10-1.2.0" already exists in namespace "` + namespace +
			`" with different content (template app.yaml) and is immutable: raise operatorVersion in ` + filepath.Join(another, "operator.yaml")))
		Expect(changed.code).To(Equal(cli.ExitFailure))
		Expect(changed.out).To(BeEmpty())
	})

	It("stores a template of 3 MB as content, which an equal push completes and restores", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		large := func(last string) string {
			return packageDir(strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 3<<20/100) + "apiVersion: v1\nkind: ConfigMap\n" +
				"metadata: {name: '{{ .Name }}'}\ndata: {size: '{{ .Params.SIZE }}', last: " + last + "}\n")
		}
		dir := large("a")
		push := func() result { return run(ctx, "package", "push", dir, "-n", namespace) }
		contents := func() []kudo.OperatorContent {
			list := &kudo.OperatorContentList{}
			Expect(hub.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
			return list.Items
		}

		By("pushing it")
		pushed := push()
		Expect(pushed.err).NotTo(HaveOccurred())
		var version kudo.OperatorVersion
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.10-1.2.0"}, &version)).To(Succeed())
		Expect(version.Spec.Templates).To(BeEmpty())
		Expect(version.Spec.Content).To(HaveLen(1))
		parts := contents()
		Expect(parts).To(HaveLen(4))
		for _, part := range parts {
			Expect(pushed.out).To(ContainSubstring("operatorcontent.kudo.dev/" + part.Name + " created\n"))
			Expect(part.Version).To(Equal(version.Name))
			Expect(part.OwnerReferences).To(Equal([]metav1.OwnerReference{content.OwnerOf(&version)}))
		}

		By("pushing it again")
		again := push()
		Expect(again.err).NotTo(HaveOccurred())
		Expect(strings.Count(again.out, " unchanged\n")).To(Equal(6), again.out)

		By("pushing it again after a part was lost, and another was altered")
		altered := parts[1].DeepCopy()
		for i := range 2 {
			Expect(hub.Delete(ctx, &parts[i])).To(Succeed())
		}
		altered.ResourceVersion, altered.UID, altered.Data = "", "", content.New(&version, []byte("another")).Data
		Expect(hub.Create(ctx, altered)).To(Succeed())
		restored := push()
		Expect(restored.err).NotTo(HaveOccurred())
		Expect(restored.out).To(And(ContainSubstring(parts[0].Name+" created\n"), ContainSubstring(parts[1].Name+" replaced\n"),
			ContainSubstring(parts[2].Name+" unchanged\n")))

		By("comparing it with a changed one, which is refused under the same version")
		dir = large("b")
		Expect(push().err).To(MatchError(ContainSubstring("with different content (template app.yaml) and is immutable: raise operatorVersion")))
		diff := run(ctx, "package", "diff", version.Name, dir, "-n", namespace, "-o", "wide")
		Expect(diff.err).NotTo(HaveOccurred())
		Expect(diff.out).To(And(ContainSubstring("last: a}"), ContainSubstring("last: b}")))
		shown := run(ctx, "package", "show", version.Name, "-n", namespace, "-o", "json")
		Expect(shown.out).To(And(ContainSubstring(`"app.yaml"`), ContainSubstring(version.Spec.Content[0].Digest)))

		By("pushing a deleted version again before its content is collected")
		Expect(hub.Delete(ctx, &version)).To(Succeed())
		dir = large("a")
		replaced := push()
		Expect(replaced.err).NotTo(HaveOccurred())
		Expect(strings.Count(replaced.out, " configured\n")).To(Equal(4), replaced.out)
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.10-1.2.0"}, &version)).To(Succeed())
		for _, part := range contents() {
			Expect(part.OwnerReferences).To(Equal([]metav1.OwnerReference{content.OwnerOf(&version)}))
		}
	})

	It("looks for the packages' namespace where none is given, and says how to make it", func(ctx context.Context) {
		missing := run(ctx, "package", "push", packageDir("a: b\n"))
		Expect(missing.err).To(MatchError(`applying operator "shop": namespaces "addon-packages" not found: ` +
			`run 'kubectl create namespace addon-packages', or select another one with -n`))

		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "addon-packages"}})).To(Succeed())
		DeferCleanup(func(ctx context.Context) { // other specs install an operator of that name from another location
			Expect(hub.DeleteAllOf(ctx, &kudo.OperatorVersion{}, client.InNamespace("addon-packages"))).To(Succeed())
		})
		Expect(run(ctx, "package", "push", packageDir("a: b\n")).err).NotTo(HaveOccurred())
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "addon-packages", Name: "shop-1.10-1.2.0"}, &kudo.OperatorVersion{})).To(Succeed())
	})

	It("stores a package after its dependencies, with the versions that it was pushed with, and nothing of it unless it can store all",
		func(ctx context.Context) {
			namespace := newNamespace(ctx)
			dir := GinkgoT().TempDir()
			shop, cart, stock := filepath.Join(dir, "shop"), filepath.Join(dir, "cart"), filepath.Join(dir, "stock")
			writePackage(shop, "1.0.0", "../cart", "ledger")
			writePackage(cart, "0.2.0", "../stock")
			writePackage(stock, "0.1.0")

			By("naming an operator that is nowhere")
			refused := run(ctx, "package", "push", shop, "-n", namespace)
			Expect(refused.err).To(MatchError(ContainSubstring("is not valid: 1 error")))
			Expect(refused.errOut).To(ContainSubstring(`task "ledger": package "ledger": on the hub: operator "ledger" does not exist`))

			By("naming one that is on the hub")
			ledger := filepath.Join(dir, "ledger")
			for _, version := range []string{"1.9.0", "1.10.0"} {
				writePackage(ledger, version)
				Expect(run(ctx, "package", "push", ledger, "-n", namespace).err).NotTo(HaveOccurred())
			}
			pushed := run(ctx, "package", "push", shop, "-n", namespace)
			Expect(pushed.err).NotTo(HaveOccurred())
			Expect(pushed.out).To(Equal("operator.kudo.dev/stock created\noperatorversion.kudo.dev/stock-0.1.0 created\n" +
				"operator.kudo.dev/cart created\noperatorversion.kudo.dev/cart-0.2.0 created\n" +
				"operator.kudo.dev/shop created\noperatorversion.kudo.dev/shop-1.0.0 created\n"))
			var version kudo.OperatorVersion
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.0.0"}, &version)).To(Succeed())
			Expect(version.Spec.Tasks[0].Spec).To(And(
				HaveField("Package", "cart"), HaveField("OperatorVersion", "0.2.0"), HaveField("OperatorVersionName", "cart-0.2.0")))
			Expect(version.Spec.Tasks[1].Spec).To(And(
				HaveField("Package", "ledger"), HaveField("OperatorVersion", "1.10.0"), HaveField("OperatorVersionName", "ledger-1.10.0")))

			By("pushing it again, changed where only its dependency was not raised")
			Expect(run(ctx, "package", "push", shop, "-n", namespace).out).NotTo(Or(ContainSubstring("created"), ContainSubstring("configured")))
			writePackage(shop, "1.1.0", "../cart", "ledger")
			writePackage(stock, "0.1.0", "../ledger")
			changed := run(ctx, "package", "push", shop, "-n", namespace)
			Expect(changed.err).To(MatchError(And(ContainSubstring(`"stock-0.1.0" already exists`), ContainSubstring("raise operatorVersion in "+stock))))
			Expect(changed.out).To(BeEmpty())
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.1.0"}, &version)).NotTo(Succeed())
		})

	It("finds a package unchanged that an earlier release has stored, without the exact name of a child", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := GinkgoT().TempDir()
		shop := filepath.Join(dir, "shop")
		writePackage(shop, "1.0.0", "../cart")
		writePackage(filepath.Join(dir, "cart"), "0.2.0")
		Expect(run(ctx, "package", "push", shop, "-n", namespace).err).NotTo(HaveOccurred())
		var version kudo.OperatorVersion
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.0.0"}, &version)).To(Succeed())
		Expect(hub.Delete(ctx, &version)).To(Succeed())
		version.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: version.Name}
		version.Spec.Tasks[0].Spec.OperatorVersionName = ""
		Expect(hub.Create(ctx, &version)).To(Succeed())

		again := run(ctx, "package", "push", shop, "-n", namespace)
		Expect(again.err).NotTo(HaveOccurred())
		Expect(again.out).To(HaveSuffix("operatorversion.kudo.dev/shop-1.0.0 unchanged\n"))
	})

	It("says that a name means another version now, where nothing else has changed", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := GinkgoT().TempDir()
		shop, ledger := filepath.Join(dir, "shop"), filepath.Join(dir, "ledger")
		writePackage(shop, "1.0.0", "ledger")
		for _, version := range []string{"1.9.0", "1.10.0"} {
			writePackage(ledger, version)
			Expect(run(ctx, "package", "push", ledger, "-n", namespace).err).NotTo(HaveOccurred())
			if version == "1.9.0" {
				Expect(run(ctx, "package", "push", shop, "-n", namespace).err).NotTo(HaveOccurred())
			}
		}
		Expect(run(ctx, "package", "push", shop, "-n", namespace).err).To(MatchError(ContainSubstring(
			"with different content (task ledger with child operator ledger-1.10.0 instead of ledger-1.9.0)")))
	})

	It("stores one Operator for two versions, as the higher one says, and is quiet when they are pushed again", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := GinkgoT().TempDir()
		shop, cart := filepath.Join(dir, "shop"), filepath.Join(dir, "cart")
		writePackage(shop, "1.0.0", "../new/stock", "../cart")
		writePackage(cart, "1.0.0", "../old/stock")
		writePackage(filepath.Join(dir, "old", "stock"), "1.9.0")
		writePackage(filepath.Join(dir, "new", "stock"), "1.10.0")
		describe(filepath.Join(dir, "old", "stock"), "old")
		describe(filepath.Join(dir, "new", "stock"), "new")

		pushed := run(ctx, "package", "push", shop, "-n", namespace)
		Expect(pushed.err).NotTo(HaveOccurred())
		Expect(pushed.out).To(HavePrefix("operator.kudo.dev/stock created\noperatorversion.kudo.dev/stock-1.10.0 created\n" +
			"operatorversion.kudo.dev/stock-1.9.0 created\n"))
		var operator kudo.Operator
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "stock"}, &operator)).To(Succeed())
		Expect(operator.Spec.Description).To(Equal("new"))
		Expect(run(ctx, "package", "push", shop, "-n", namespace).out).NotTo(Or(ContainSubstring("created"), ContainSubstring("configured")))
	})

	It("does not describe an operator as an older version of it does", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := filepath.Join(GinkgoT().TempDir(), "stock")
		for _, version := range []string{"1.10.0", "1.9.0"} {
			writePackage(dir, version)
			describe(dir, "as of "+version)
			Expect(run(ctx, "package", "push", dir, "-n", namespace).err).NotTo(HaveOccurred())
		}
		var operator kudo.Operator
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "stock"}, &operator)).To(Succeed())
		Expect(operator.Spec.Description).To(Equal("as of 1.10.0"))
	})

	It("leaves no package without those that it requires when it is interrupted, and continues from there", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := GinkgoT().TempDir()
		shop, cart, stock := filepath.Join(dir, "shop"), filepath.Join(dir, "cart"), filepath.Join(dir, "stock")
		writePackage(shop, "1.0.0", "../cart")
		writePackage(cart, "0.2.0", "../stock")
		writePackage(stock, "0.1.0")

		By("pushing without any rights")
		refused := run(ctx, "package", "push", shop, "-n", namespace, "--as", "jane")
		Expect(refused.err).To(MatchError(And(HavePrefix(`reading OperatorVersion "stock-0.1.0": `), ContainSubstring(`User "jane" cannot get resource`))))

		By("pushing with the right to store one of them")
		allow(ctx, namespace, "jane", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"kudo.dev"}, Resources: []string{"operators"}},
			rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}},
			rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"kudo.dev"}, Resources: []string{"operatorversions"}, ResourceNames: []string{"stock-0.1.0"}})
		Eventually(func() error { return run(ctx, "package", "push", shop, "-n", namespace, "--as", "jane").err }).Should(MatchError(HavePrefix(`applying operatorversion "cart-0.2.0": `)))
		var versions kudo.OperatorVersionList
		Expect(hub.List(ctx, &versions, client.InNamespace(namespace))).To(Succeed())
		Expect(versions.Items).To(ConsistOf(HaveField("Name", "stock-0.1.0")))

		By("pushing the rest")
		rest := run(ctx, "package", "push", shop, "-n", namespace)
		Expect(rest.err).NotTo(HaveOccurred())
		Expect(rest.out).To(And(ContainSubstring("stock-0.1.0 unchanged"), ContainSubstring("cart-0.2.0 created"), ContainSubstring("shop-1.0.0 created")))
	})

	It("rejects a cycle with packages on the hub", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		dir := GinkgoT().TempDir()
		cart, stock := filepath.Join(dir, "cart"), filepath.Join(dir, "stock")
		writePackage(stock, "0.1.0")
		writePackage(cart, "0.2.0", "stock")
		for _, pushed := range []string{stock, cart} {
			Expect(run(ctx, "package", "push", pushed, "-n", namespace).err).NotTo(HaveOccurred())
		}
		writePackage(stock, "0.1.0", "cart")
		refused := run(ctx, "package", "push", stock, "-n", namespace)
		Expect(refused.err).To(HaveOccurred())
		Expect(refused.errOut).To(ContainSubstring("circular dependency: stock-0.1.0 -> cart-0.2.0 -> stock-0.1.0"))
	})

	It("stores nothing of a package with errors", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		refused := run(ctx, "package", "push", packageDir("{{ .Params.NONE }}"), "-n", namespace)
		Expect(refused.err).To(MatchError(ContainSubstring("is not valid: 1 error")))
		Expect(refused.errOut).To(ContainSubstring(`templates/app.yaml:1: error: parameter "NONE" is not defined in params.yaml`))
		var operators kudo.OperatorList
		Expect(hub.List(ctx, &operators, client.InNamespace(namespace))).To(Succeed())
		Expect(operators.Items).To(BeEmpty())
	})

	It("stores exactly the archive of a chart that it fetches, and refuses another one under the same version", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		registrytest.Alone(GinkgoTB())
		archive := registrytest.Chart(GinkgoTB(), "web", "1.2.3", map[string]string{
			"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n",
		})
		host := registrytest.Registry(GinkgoTB(), false)
		registrytest.Push(GinkgoTB(), host+"/charts/web:1.2.3", archive)
		dir := GinkgoT().TempDir()
		for name, text := range map[string]string{
			"operator.yaml": "apiVersion: kudo.dev/v1beta1\nname: shop\noperatorVersion: 1.0.0\n" +
				"tasks: [{name: web, kind: Helm, spec: {chart: 'oci://" + host + "/charts/web', version: 1.2.3}}]\n" +
				"plans: {deploy: {phases: [{name: main, steps: [{name: main, tasks: [web]}]}]}}\n",
			"params.yaml": "apiVersion: kudo.dev/v1beta1\nparameters: []\n",
		} {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
		}

		By("pushing it")
		pushed := run(ctx, "package", "push", dir, "-n", namespace)
		Expect(pushed.err).NotTo(HaveOccurred())
		var version kudo.OperatorVersion
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-1.0.0"}, &version)).To(Succeed())
		Expect(version.Spec.Tasks[0].Spec.HelmTaskSpec).To(Equal(kudo.HelmTaskSpec{
			Chart: "web-1.2.3.tgz", Version: "1.2.3", Repository: "oci://" + host + "/charts", Digest: content.DigestOf(archive),
		}))
		Expect(version.Spec.Content).To(HaveLen(1))
		Expect(kubecontent.File(ctx, hub, &version, version.Spec.Content[0])).To(Equal(archive))

		By("pushing it again")
		again := run(ctx, "package", "push", dir, "-n", namespace)
		Expect(again.err).NotTo(HaveOccurred())
		Expect(strings.Count(again.out, " unchanged\n")).To(Equal(3), again.out)

		By("pushing it after the chart was replaced in the registry")
		registrytest.Push(GinkgoTB(), host+"/charts/web:1.2.3", registrytest.Chart(GinkgoTB(), "web", "1.2.3", nil))
		replaced := run(ctx, "package", "push", dir, "-n", namespace)
		Expect(replaced.err).To(MatchError(ContainSubstring("already exists")))
	})
})
