package hub

import (
	"strings"
	"testing"
)

func TestWebhookAddress(t *testing.T) {
	for name, test := range map[string]struct{ address, fault string }{
		"all interfaces":  {":9443", ""},
		"IPv4":            {"127.0.0.1:9443", ""},
		"IPv6":            {"[::1]:9443", ""},
		"no port":         {"127.0.0.1", "HOST:PORT"},
		"port 0":          {"127.0.0.1:0", "1 to 65535"},
		"port 65536":      {"127.0.0.1:65536", "1 to 65535"},
		"a port's name":   {"127.0.0.1:https", "1 to 65535"},
		"bare IPv6":       {"::1", "HOST:PORT"},
		"a negative port": {"127.0.0.1:-1", "1 to 65535"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&webhookServer{address: test.address}).listener()
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("the error is %v, want %q", err, test.fault)
			}
		})
	}
}

func TestWebhooksAreServedWhereThereIsAnAddress(t *testing.T) {
	for address, want := range map[string]bool{"": false, "0": false, ":9443": true} {
		if got := (Options{WebhookBindAddress: address}).servesWebhooks(); got != want {
			t.Errorf("with address %q webhooks are served: %t, want %t", address, got, want)
		}
	}
}
