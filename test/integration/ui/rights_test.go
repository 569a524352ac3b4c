package ui

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dashboard "github.com/tandem-addons/tandem/pkg/ui"
	fleet "github.com/tandem-addons/tandem/test/dashboard"
)

// token creates a user with rules, in one namespace or in all, and returns a token.
func token(ctx context.Context, name, namespace string, rules []rbacv1.PolicyRule) string {
	GinkgoHelper()
	account, err := fleet.NewAccount(ctx, hub, name, namespace, rules)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) { Expect(account.Remove(ctx, hub)).To(Succeed()) })
	return account.Token
}

// serveShared serves the dashboard as `addon-manager ui` does.
func serveShared(ctx context.Context) site {
	GinkgoHelper()
	cached, err := dashboard.NewHub(ctx, env.Config, nil)
	Expect(err).NotTo(HaveOccurred())
	return serve(cached, dashboard.Options{Gate: dashboard.NewTokens(cached, false, nil)})
}

// as signs in with a token.
func (s site) as(bearer string) site {
	GinkgoHelper()
	request := s.request(context.Background(), http.MethodPost, "/session/enter", strings.NewReader(url.Values{"bearer": {bearer}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	entered := s.send(request)
	Expect(entered.status).To(Equal(http.StatusSeeOther), entered.body)
	s.cookies = entered.cookies
	return s
}

// expectRights checks that a dashboard shows users with different permissions what each may read, and nothing else.
func expectRights(ctx context.Context, s site) {
	GinkgoHelper()
	type user struct {
		site
		// one is set if the user may read cluster-01 only; all if the user may read everything.
		one, all bool
	}
	them := map[string]user{
		"anonymous":               {site: s},
		"viewer of one cluster":   {site: s.as(token(ctx, "one", "cluster-01", fleet.Reading)), one: true},
		"viewer":                  {site: s.as(token(ctx, "viewer", "", fleet.Reading)), one: true, all: true},
		"operator":                {site: s.as(token(ctx, "operator", "", fleet.Operating)), one: true, all: true},
		"user without permission": {site: s.as(token(ctx, "unprivileged", "", nil))},
	}
	open := func(needed bool) int { return map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[needed] }
	for name, u := range them {
		for path, want := range map[string]int{
			"/": http.StatusOK, "/addons/kafka": open(u.one), "/addons/none": http.StatusNotFound, "/addons/kafka/history": open(u.one),
			"/search?q=cluster": http.StatusOK, "/search?q=kafka": http.StatusOK, "/clusters": http.StatusOK, "/clusters?group=region": http.StatusOK, "/?group=region": http.StatusOK,
			"/clusters/cluster-01": open(u.one), "/clusters/cluster-01/addons/kafka": open(u.one), "/clusters/cluster-01/instances/kafka": open(u.one),
			"/clusters/cluster-02": open(u.all), "/clusters/cluster-02/addons/kafka": open(u.all), "/clusters/cluster-02/instances/kafka": open(u.all),
			"/clusters/none": http.StatusNotFound, "/packages": http.StatusOK, "/packages/addon-packages/" + fleet.Version: open(u.all), "/none": http.StatusNotFound,
		} {
			if name == "anonymous" {
				want = http.StatusUnauthorized
			}
			page := u.get(path)
			Expect(page.status).To(Equal(want), "%s of %s: %s", path, name, page.body)
			if !u.all && !strings.Contains(path, "cluster-02") {
				Expect(page.body).NotTo(ContainSubstring("cluster-02"), "%s of %s", path, name)
			}
			if !u.one && !strings.Contains(path, "kafka") {
				Expect(page.body).NotTo(ContainSubstring("kafka"), "%s of %s", path, name)
			}
		}
	}
	By("responding to forbidden objects as to missing ones")
	one := them["viewer of one cluster"]
	there, none := one.get("/clusters/cluster-02/instances/kafka"), one.get("/clusters/cluster-0x/instances/kafka")
	Expect(strings.ReplaceAll(there.body, "cluster-02", "cluster-0x")).To(Equal(none.body))
	for _, u := range []user{them["viewer"], one} {
		Expect(u.get("/clusters/cluster-01/addons/kafka").body).To(ContainSubstring("PlanFailed"))
	}
}

var _ = Describe("the dashboard of many users", func() {
	It("shows each user what the user may read, and no trace of anything else", func(ctx context.Context) {
		expectRights(ctx, serveShared(ctx))
	})

	It("ends a stream's content within the time that answers are kept after a permission is withdrawn", func(ctx context.Context) {
		s := serveShared(ctx).as(token(ctx, "leaver", "cluster-01", fleet.Reading))
		Eventually(func() int { return s.get("/clusters/cluster-01").status }).Should(Equal(http.StatusOK), "the API server learns of permissions by watches")
		events := s.stream("/clusters/cluster-01")
		var next event
		Eventually(events).Should(Receive(&next))
		Expect(next.Data).To(ContainSubstring("kafka"))
		Expect(hub.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-01", Name: "leaver"}})).To(Succeed())
		Eventually(events).Should(Receive(&next, HaveField("Name", "change")))
		Expect(next.Data).To(ContainSubstring("Not found"))
		Expect(next.Data).NotTo(ContainSubstring("kafka"))
	})

	It("ends the session of a user whose token is no longer valid", func(ctx context.Context) {
		s := serveShared(ctx).as(token(ctx, "expired", "", fleet.Reading))
		Expect(s.get("/").status).To(Equal(http.StatusOK))
		Expect(hub.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "expired"}})).To(Succeed())
		Eventually(func() int { return s.get("/").status }).Should(Equal(http.StatusUnauthorized))
	})

	It("accepts no token that the hub refuses, and no form of another site", func(ctx context.Context) {
		s := serveShared(ctx)
		enter := func(change func(*http.Request)) answer {
			request := s.request(ctx, http.MethodPost, "/session/enter", strings.NewReader("bearer=wrong"))
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			change(request)
			return s.send(request)
		}
		refused := enter(func(*http.Request) {})
		Expect(refused.status).To(Equal(http.StatusUnauthorized))
		Expect(refused.cookies).To(BeEmpty())
		Expect(enter(func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }).status).To(Equal(http.StatusForbidden))
		Expect(enter(func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }).status).To(Equal(http.StatusForbidden))
		Expect(enter(func(r *http.Request) { r.Host = "evil.example" }).status).To(Equal(http.StatusMisdirectedRequest))

		By("ending a session only by a form of this session")
		s = s.as(token(ctx, "stays", "", fleet.Reading))
		request := s.request(ctx, http.MethodPost, "/session/leave", strings.NewReader("token=wrong"))
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		Expect(s.send(request).status).To(Equal(http.StatusForbidden))
	})
})
