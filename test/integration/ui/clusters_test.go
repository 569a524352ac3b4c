package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	fleet "github.com/tandem-addons/tandem/test/dashboard"
)

var _ = Describe("the clusters on the dashboard", func() {
	It("are listed with their availability, version and states, filtered and grouped by labels", func(ctx context.Context) {
		s := local(ctx, nil)
		page := s.get("/clusters")
		Expect(page.status).To(Equal(http.StatusOK))
		Expect(page.body).To(And(
			MatchRegexp(`<a href="/clusters/cluster-01">cluster-01</a></th><td><span class="state good">.{0,60} available</span></td><td>v1.31.4</td>`),
			MatchRegexp(`<a href="/clusters/cluster-03">cluster-03</a></th><td><span class="state unknown">`)))
		for _, query := range []string{"l=region%3Dus", "selector=region%3Dus"} {
			Expect(s.get("/clusters?"+query).body).To(And(ContainSubstring("cluster-02</a>"), Not(ContainSubstring("cluster-01</a>")), ContainSubstring("5 clusters.")), query)
		}
		for _, path := range []string{"/clusters?group=region", "/?group=region"} {
			Expect(s.get(path).body).To(And(ContainSubstring(`selector=region%3Deu">eu</a></th><td class="number">5</td>`),
				ContainSubstring(`selector=region%3Dus">us</a></th><td class="number">5</td>`), Not(ContainSubstring(`class="matrix"`))), path)
		}

		By("refusing what is no selector or label")
		for _, query := range []string{"l=" + url.QueryEscape("a=("), "group=" + url.QueryEscape("<b>"), "l=" + strings.Repeat("(", 9000)} {
			refused := s.get("/clusters?" + query)
			Expect(refused.status).To(Equal(http.StatusBadRequest), query)
			Expect(refused.body).To(And(ContainSubstring(`role="alert"`), Not(ContainSubstring("<b>")), Not(ContainSubstring("cluster-01"))), query)
		}
		Expect(s.get("/?group=" + url.QueryEscape("<b>")).body).To(ContainSubstring(`id="group-problem" role="alert"`))
	})

	It("are those that the user may read", func(ctx context.Context) {
		s := serveShared(ctx)
		one := s.as(token(ctx, "lists-one", "cluster-01", fleet.Reading))
		Expect(one.get("/clusters").body).To(And(ContainSubstring("1 cluster."), ContainSubstring("cluster-01</a>"), Not(ContainSubstring("cluster-02")),
			Not(ContainSubstring("v1.31.4")), ContainSubstring("you have no permission to list ManagedClusters")))
		Expect(one.get("/clusters?group=region").body).To(And(ContainSubstring("The labels are unknown"), Not(ContainSubstring(">eu<"))))
		Expect(s.as(token(ctx, "lists-none", "", nil)).get("/clusters").body).To(And(ContainSubstring("0 clusters."), Not(ContainSubstring("cluster-0"))))
	})
})
