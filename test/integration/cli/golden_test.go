package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var update = flag.Bool("update", false, "write testdata/*.golden instead of comparing with it")

// golden compares the output of a command with testdata/NAME.golden, in which $NAME replaces values that differ between runs.
func golden(name string, got result, differs ...string) {
	GinkgoHelper()
	Expect(got.err).NotTo(HaveOccurred())
	text := strings.NewReplacer(differs...).Replace(got.out)
	file := filepath.Join("testdata", name+".golden")
	if *update {
		Expect(os.WriteFile(file, []byte(text), 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred())
	Expect(text).To(Equal(string(want)))
}

func managedCluster(name string) *unstructured.Unstructured {
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion("cluster.open-cluster-management.io/v1")
	cluster.SetKind("ManagedCluster")
	cluster.SetName(name)
	return cluster
}

// createCluster creates the managed cluster of that name for one spec; its namespace is kept.
func createCluster(ctx context.Context, name string) {
	GinkgoHelper()
	cluster := managedCluster(name)
	Expect(hub.Create(ctx, cluster)).To(Succeed())
	Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, cluster)).To(Succeed()) })
}

// sign acts as the hub's signer: it signs the first approved request, with an expiry in 2040.
func sign(ctx context.Context) {
	defer GinkgoRecover()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	until := time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	var requests certificatesv1.CertificateSigningRequestList
	Eventually(func() []certificatesv1.CertificateSigningRequestCondition {
		Expect(hub.List(ctx, &requests)).To(Succeed())
		if len(requests.Items) == 0 {
			return nil
		}
		return requests.Items[0].Status.Conditions
	}).ShouldNot(BeEmpty())
	request := &requests.Items[0]
	block, _ := pem.Decode(request.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	signed, err := x509.CreateCertificate(rand.Reader,
		&x509.Certificate{SerialNumber: big.NewInt(2), Subject: asked.Subject, NotAfter: until}, authority, asked.PublicKey, key)
	Expect(err).NotTo(HaveOccurred())
	Expect(environment.EditStatus(ctx, hub, request, func(r *certificatesv1.CertificateSigningRequest) {
		r.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	})).To(Succeed())
}

var _ = Describe("what commands print", func() {
	It("of packages and plans", func(ctx SpecContext) {
		createCluster(ctx, "east")
		const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n"
		golden("push", run(ctx, "package", "push", packageDir(template), "-n", "east"))
		golden("install", run(ctx, "install", "shop", "--cluster", "east"))
		shop := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "east", Name: "shop"}}
		report := func(plan string, status kudo.ExecutionStatus) {
			GinkgoHelper()
			var version kudo.OperatorVersion
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(shop), shop)).To(Succeed())
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: "east", Name: "shop-1.10-1.2.0"}, &version)).To(Succeed())
			shop.Status.Execution = &kudo.Execution{
				UID: types.UID(plan), Plan: plan, OperatorVersion: corev1.ObjectReference{Namespace: "east", Name: version.Name, UID: version.UID},
				Request: shop.Spec.PlanExecution.UID,
			}
			shop.Status.ObservedGeneration = shop.Generation
			shop.Status.PlanStatus = map[string]kudo.PlanStatus{plan: {Name: plan, UID: types.UID(plan), Status: status}}
			meta.SetStatusCondition(&shop.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, ObservedGeneration: shop.Generation,
			})
			Expect(hub.Status().Update(ctx, shop)).To(Succeed())
		}
		report("deploy", kudo.Complete)
		golden("plan-wait", run(ctx, "plan", "wait", "shop", "--cluster", "east", "--timeout", "1m"))
		golden("update", run(ctx, "update", "shop", "--cluster", "east", "-p", "SIZE=3"))
		golden("plan-run", run(ctx, "plan", "run", "shop", "backup", "--cluster", "east"))
		report("backup", kudo.InProgress)
		golden("plan-cancel", run(ctx, "plan", "cancel", "shop", "--cluster", "east", "--wait=false"))
		newer := packageDir(template)
		text, err := os.ReadFile(filepath.Join(newer, "operator.yaml"))
		Expect(err).NotTo(HaveOccurred())
		text = bytes.Replace(text, []byte("operatorVersion: 1.2.0"), []byte("operatorVersion: 1.3.0"), 1)
		Expect(os.WriteFile(filepath.Join(newer, "operator.yaml"), text, 0o600)).To(Succeed())
		Expect(run(ctx, "package", "push", newer, "-n", "east").err).NotTo(HaveOccurred())
		golden("suspend", run(ctx, "suspend", "shop", "--cluster", "east"))
		golden("resume", run(ctx, "resume", "shop", "--cluster", "east"))
		golden("upgrade", run(ctx, "upgrade", "shop", "--cluster", "east"))
		golden("uninstall", run(ctx, "uninstall", "shop", "--cluster", "east", "--yes", "--timeout", "1m"))
	})

	It("of add-ons", func(ctx SpecContext) {
		createCluster(ctx, "west")
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "charts"}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		golden("enable", run(ctx, "enable", "charts", "--cluster", "west"))
		golden("suspend-everywhere", run(ctx, "suspend", "charts", "--everywhere", "--reason", "a bad release"))
		golden("suspend-all", run(ctx, "suspend", "--all", "--cluster", "west"))
		golden("resume-all", run(ctx, "resume", "--all", "--cluster", "west"))
		golden("resume-everywhere", run(ctx, "resume", "charts", "--everywhere"))
		golden("disable", run(ctx, "disable", "charts", "--cluster", "west", "--yes", "--timeout", "1m"))
	})

	It("of a cluster that joins", func(ctx SpecContext) {
		signer, stop := context.WithCancel(ctx)
		DeferCleanup(stop)
		go sign(signer)
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, managedCluster("north"))).To(Succeed()) })
		golden("join", run(ctx, "join", "north", "--cluster-kubeconfig", kubeconfig, "--hub-server", "https://hub.example.com:6443"))
	})
})
