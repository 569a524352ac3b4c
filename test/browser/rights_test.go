package browser

import (
	"context"
	"strings"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tandem-addons/tandem/test/dashboard"
)

var _ = Describe("A user", func() {
	It("without permissions sees no name, and no sign of what exists", func(ctx context.Context) {
		address := serveUsers(env.Config, anywhere).address
		page := tab()
		signIn(page, address, user(ctx, "outsider", "", nil).Token)
		source := func(path string) string {
			GinkgoHelper()
			open(page, address, path)
			html, err := chromedp.Run(page, chromedp.OuterHTML("html"))
			Expect(err).NotTo(HaveOccurred())
			return html
		}
		for _, path := range []string{"/", "/packages"} {
			Expect(source(path)).NotTo(Or(ContainSubstring("cluster-"), ContainSubstring("kafka"), ContainSubstring("ingress")), path)
		}
		for existing, missing := range map[string]string{
			"/clusters/cluster-01": "/clusters/cluster-0x", "/addons/kafka": "/addons/kafkx",
			"/clusters/cluster-01/addons/kafka": "/clusters/cluster-0x/addons/kafka", "/clusters/cluster-01/instances/kafka": "/clusters/cluster-01/instances/kafkx",
			"/clusters/cluster-01/instances/kafka/what-if":  "/clusters/cluster-0x/instances/kafka/what-if",
			"/packages/addon-packages/" + dashboard.Version: "/packages/addon-packages/kafkx",
		} {
			from, to := existing[strings.LastIndex(existing, "/")+1:], missing[strings.LastIndex(missing, "/")+1:]
			if from == to {
				from, to = "cluster-01", "cluster-0x"
			}
			Expect(strings.ReplaceAll(source(existing), from, to)).To(Equal(source(missing)), existing)
		}
	})

	It("of one cluster sees its add-ons, and no trace of other clusters", func(ctx context.Context) {
		address := serveUsers(env.Config, anywhere).address
		page := tab()
		signIn(page, address, user(ctx, "tenant", "cluster-04", dashboard.Reading).Token)
		for _, path := range []string{"/", "/addons/monitoring", "/clusters/cluster-04", "/clusters/cluster-04/addons/kafka", "/clusters/cluster-04/instances/kafka"} {
			open(page, address, path)
			html, err := chromedp.Run(page, chromedp.OuterHTML("html"))
			Expect(err).NotTo(HaveOccurred())
			Expect(html).To(ContainSubstring("cluster-04"), path)
			Expect(html).NotTo(MatchRegexp(`cluster-(0[1-35-9]|1)`), path)
			Expect(html).NotTo(Or(ContainSubstring("Run…"), ContainSubstring("Disable…")), path)
		}
	})
})
