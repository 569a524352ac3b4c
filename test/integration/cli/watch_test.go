package cli

import (
	"context"
	"io"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var _ = Describe("watches of the fleet", func() {
	It("show each change of an add-on until they are interrupted", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "watched"}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		interrupted, interrupt := context.WithCancel(ctx)
		get, summary, ended := gbytes.NewBuffer(), gbytes.NewBuffer(), make(chan error, 2)
		go func() { ended <- runTo(interrupted, get, io.Discard, "get", "-w", "--cluster", cluster, "-o", "wide") }()
		go func() { ended <- runTo(interrupted, summary, io.Discard, "fleet", "-w", "--cluster", cluster) }()

		Eventually(get).Should(gbytes.Say(`STATE .* MESSAGE\n.* watched .* unknown`))
		Eventually(summary).Should(gbytes.Say(`0 of 1 are available, 1 unknown`))
		Expect(environment.EditStatus(ctx, hub, addOn, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
			meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{
				Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: "Crashed", Message: "it ran out of memory",
			})
		})).To(Succeed())
		Eventually(get).Should(gbytes.Say(`watched .* not available .* Crashed .* it ran out of memory\n`))
		Eventually(summary).Should(gbytes.Say(`0 of 1 are available, 1 not available`))
		Expect(hub.Delete(ctx, addOn)).To(Succeed())
		Eventually(get).Should(gbytes.Say(`watched .* deleted`))
		Eventually(summary).Should(gbytes.Say(`No add-ons are enabled on 1 managed cluster`))
		Consistently(ended).ShouldNot(Receive())
		interrupt()
		Eventually(ended).Should(Receive(BeNil()))
		Eventually(ended).Should(Receive(BeNil()))
	})
})
