package hubclient

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func TestWaitReportsUnreachableHub(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	var out bytes.Buffer
	h := Hub{contact: newContact()}
	p := h.Progress(&out)
	config := &rest.Config{Host: server.URL}
	h.contact.watch(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(address string) {
		if response, err := client.Get(address); err == nil {
			_ = response.Body.Close()
		}
		select {
		case <-h.contact.changed:
			if err := h.contact.print(); err != nil {
				t.Error(err)
			}
		default:
		}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if err := p.Show(terminal.Node{Part: "kafka", Message: "waits"}); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{server.URL, gone.URL, gone.URL, server.URL, server.URL, gone.URL} {
		ask(address)
	}
	lost := "the hub: is unreachable (connection refused): operations continue there, and are shown again once it reconnects\n"
	if diff := cmp.Diff("kafka: waits\n"+lost+"the hub: is reachable again\n"+lost, out.String()); diff != "" {
		t.Error(diff)
	}
}
