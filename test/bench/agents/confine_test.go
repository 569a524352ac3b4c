package main

import "testing"

func TestConfined(t *testing.T) {
	c := &confinement{namespace: "bench-0001", namespaced: map[string]bool{"v1/configmaps": true, "kudo.dev/v1beta1/instances": true}}
	for sentence, test := range map[string]struct {
		path, want string
		refused    bool
	}{
		"all objects of a kind of the core group": {"/api/v1/configmaps", "/api/v1/namespaces/bench-0001/configmaps", false},
		"all objects of a kind of another group": {
			"/apis/kudo.dev/v1beta1/instances", "/apis/kudo.dev/v1beta1/namespaces/bench-0001/instances", false,
		},
		"an object in the namespace":       {"/api/v1/namespaces/bench-0001/configmaps/a", "/api/v1/namespaces/bench-0001/configmaps/a", false},
		"the namespace itself":             {"/api/v1/namespaces/bench-0001", "/api/v1/namespaces/bench-0001", false},
		"a kind without namespaces":        {"/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/storageclasses", false},
		"all namespaces":                   {"/api/v1/namespaces", "/api/v1/namespaces", false},
		"discovery of a group":             {"/apis/kudo.dev/v1beta1", "/apis/kudo.dev/v1beta1", false},
		"discovery of all groups":          {"/apis", "/apis", false},
		"no API":                           {"/version", "/version", false},
		"an object in another namespace":   {"/api/v1/namespaces/bench-0002/configmaps/a", "", true},
		"another namespace":                {"/api/v1/namespaces/bench-0002", "", true},
		"a kind of a group in another one": {"/apis/kudo.dev/v1beta1/namespaces/default/instances", "", true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := c.confine(test.path)
			if got != test.want || (err != nil) != test.refused {
				t.Errorf("got %q and error %v, want %q", got, err, test.want)
			}
		})
	}
}
