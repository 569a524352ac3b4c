package source

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sourcing"
)

// TestOnlyRegistriesReachTheURLOfTokens checks that a registry cannot open another host for downloads by naming it as the place of its tokens.
func TestOnlyRegistriesReachTheURLOfTokens(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer elsewhere.Close()
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+elsewhere.URL+`/token",service="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer registry.Close()
	host, other := strings.TrimPrefix(registry.URL, "http://"), strings.TrimPrefix(elsewhere.URL, "http://")
	hosts, err := sourcing.HostsOf(&kudo.PackageSourceSpec{Package: &kudo.SourcePackage{Reference: "oci://" + host + "/a", Version: "*"}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := newGuard(Network{AllowHosts: []string{host, other}}, hosts, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	get := func(transport http.RoundTripper, url string) error {
		response, err := (&http.Client{Transport: transport}).Get(url)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	if err := get(g, elsewhere.URL+"/token"); err == nil {
		t.Error("the URL is requested before the registry has named it")
	}
	if err := get(g, registry.URL+"/v2/"); err != nil {
		t.Fatal(err)
	}
	if err := get(g, elsewhere.URL+"/token?service=registry"); err != nil {
		t.Errorf("a registry's client gets no token: %v", err)
	}
	if err := get(g, elsewhere.URL+"/other"); err == nil {
		t.Error("another URL of that host is requested")
	}
	if err := get(g.withoutRealms(), elsewhere.URL+"/token"); err == nil {
		t.Error("a download is requested from the URL of tokens")
	}
}
