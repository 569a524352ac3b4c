package remote

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestALogIsBounded(t *testing.T) {
	query := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		for range 64 { // a node that ignores the limit
			if _, err := w.Write([]byte(strings.Repeat("x", 16<<10))); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	r, err := New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	log, err := r.Log(context.Background(), types.NamespacedName{Namespace: "shop", Name: "app-1"}, "app", true, 10)
	if err != nil || len(log) != MaxLogBytes {
		t.Errorf("%d bytes, %v", len(log), err)
	}
	if want := "container=app&limitBytes=65536&previous=true&tailLines=10"; query != want {
		t.Errorf("got %q, want %q", query, want)
	}
}
