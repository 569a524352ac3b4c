package controller

import (
	"net/http"
	"testing"
)

func TestRequestsAreGroupedByTheirCost(t *testing.T) {
	for sentence, test := range map[string]struct {
		method, url string
		kind        string
		exempt      bool
	}{
		"one object":                    {"GET", "/api/v1/namespaces/a/configmaps/b", "GET v1 configmaps ", false},
		"all objects of a namespace":    {"GET", "/api/v1/namespaces/a/configmaps?limit=500", "LIST v1 configmaps ", false},
		"all objects":                   {"GET", "/apis/apps/v1/deployments", "LIST apps/v1 deployments ", false},
		"a namespace":                   {"GET", "/api/v1/namespaces/a", "GET v1 namespaces ", false},
		"the status of a namespace":     {"PATCH", "/api/v1/namespaces/a/status", "PATCH v1 namespaces status", false},
		"a status":                      {"PATCH", "/apis/kudo.dev/v1beta1/namespaces/a/instances/b/status", "PATCH kudo.dev/v1beta1 instances status", false},
		"a path of a proxy":             {"DELETE", "/k8s/clusters/c/apis/apps/v1/namespaces/a/deployments/b", "DELETE apps/v1 deployments ", false},
		"discovery of a group":          {"GET", "/apis/apps/v1", "GET   ", false},
		"discovery of the core":         {"GET", "/api/v1", "GET   ", false},
		"no API":                        {"GET", "/openapi/v3", "GET   ", false},
		"a watch":                       {"GET", "/api/v1/configmaps?watch=true&allowWatchBookmarks=true", "LIST v1 configmaps ", true},
		"a watch, as kubectl writes it": {"GET", "/api/v1/configmaps?watch=1", "LIST v1 configmaps ", true},
		"a log":                         {"GET", "/api/v1/namespaces/a/pods/b/log?follow=true", "GET v1 pods log", true},
		"a command":                     {"POST", "/api/v1/namespaces/a/pods/b/exec?command=ls", "POST v1 pods exec", true},
		"a renewal of a Lease":          {"PATCH", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "PATCH coordination.k8s.io/v1 leases ", true},
		"another kind named leases":     {"PATCH", "/apis/homes.example/v1/namespaces/a/leases/b", "PATCH homes.example/v1 leases ", false},
	} {
		t.Run(sentence, func(t *testing.T) {
			request, err := http.NewRequest(test.method, "https://hub.example"+test.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			e := endpointOf(request)
			if kind := e.kind(request.Method); kind != test.kind {
				t.Errorf("the kind is %q, want %q", kind, test.kind)
			}
			if exempt := e.exempt(request); exempt != test.exempt {
				t.Errorf("exempt is %t", exempt)
			}
		})
	}
}
