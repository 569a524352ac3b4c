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

var _ = Describe("the search of the dashboard", func() {
	It("finds add-ons, clusters, Instances and packages, and refuses what cannot be a name", func(ctx context.Context) {
		s := local(ctx, nil)
		page := s.get("/search?q=KAFKA")
		Expect(page.status).To(Equal(http.StatusOK))
		Expect(page.body).To(And(ContainSubstring(`<li><a href="/addons/kafka">kafka</a>`), ContainSubstring(`<a href="/clusters/cluster-01/instances/kafka">kafka</a>`),
			ContainSubstring(`<a href="/packages/addon-packages/`+fleet.Version+`">`), ContainSubstring(`type="search" value="KAFKA"`), Not(ContainSubstring(`<h2 id="clusters">`))))
		Expect(s.get("/search?q=cluster-02").body).To(And(ContainSubstring("1 result for"), ContainSubstring(`<a href="/clusters/cluster-02">cluster-02</a>`)))
		Expect(s.get("/search").body).To(ContainSubstring("Enter a part of the name"))
		Expect(s.get("/search?q=" + strings.Repeat("x", 5000)).status).To(Equal(http.StatusBadRequest))
		hostile := s.get("/search?q=" + url.QueryEscape("\"><img src=x>\x00\x1b[2J\u202e"))
		Expect(hostile.status).To(Equal(http.StatusOK))
		Expect(hostile.body).To(And(ContainSubstring("0 results"), Not(ContainSubstring("<img")), Not(ContainSubstring("\x1b"))))
	})

	It("finds only what the user may read", func(ctx context.Context) {
		s := serveShared(ctx)
		one := s.as(token(ctx, "searches-one", "cluster-01", fleet.Reading))
		for query, want := range map[string]string{"kafka": "2 results", "cluster": "1 result ", "cluster-02": "0 results", "ingress": "1 result ", fleet.Version: "0 results"} {
			page := one.get("/search?q=" + query)
			Expect(page.status).To(Equal(http.StatusOK))
			Expect(page.body).To(ContainSubstring(want), query)
			if query != "cluster-02" {
				Expect(page.body).NotTo(ContainSubstring("cluster-02"), query)
			}
		}
		unprivileged := s.as(token(ctx, "searches-none", "", nil))
		Expect(unprivileged.get("/search?q=a").body).To(ContainSubstring("0 results"))
	})
})
