package hub

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("A cache of an API server that is restored from a backup", func() {
	It("shows what the backup has, without a restart of its program", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		restored, err := environment.Bare(environment.Restorable(folder))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(restored.Stop)
		clients, err := kubernetes.NewForConfig(restored.Config)
		Expect(err).NotTo(HaveOccurred())
		configs := clients.CoreV1().ConfigMaps("default")
		create := func(name string) {
			_, err := configs.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		create("before")
		cached := toolscache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "configmaps", "default", fields.Everything())
		informer := controller.NewInformer(cached, &corev1.ConfigMap{}, 0, toolscache.Indexers{})
		running, stop := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(stop)
		go informer.RunWithContext(running)
		names := func() []string { return informer.GetStore().ListKeys() }
		Eventually(names).Should(ConsistOf("default/before"))

		Expect(restored.Backup(folder + "/backup")).To(Succeed())
		Eventually(func() error { return configs.Delete(ctx, "before", metav1.DeleteOptions{}) }).WithTimeout(time.Minute).Should(Succeed())
		create("after")
		Eventually(names).Should(ConsistOf("default/after"))

		Expect(restored.Restore(folder + "/backup")).To(Succeed())
		Eventually(names).WithTimeout(time.Minute).Should(ConsistOf("default/before"))
		create("later")
		Eventually(names).WithTimeout(time.Minute).Should(ConsistOf("default/before", "default/later"))
	})
})
