package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		seen observation
		off  bool
		want origin
	}{
		"a program of KUBEBUILDER_ASSETS is linked":   {seen: observation{given: "/a/etcd", cached: true, released: true}, want: fromGiven},
		"a link to it is kept":                        {seen: observation{given: "/a/etcd", linked: true}, want: fromCache},
		"a program in the folder is kept":             {seen: observation{cached: true, released: true}, want: fromCache},
		"a program on PATH comes before downloads":    {seen: observation{onPath: "/usr/bin/etcd", released: true}, want: fromPath},
		"a released program is downloaded":            {seen: observation{released: true}, want: fromRelease},
		"without downloads it is built":               {seen: observation{released: true}, off: true, want: fromModules},
		"what is not released for a platform, either": {want: fromModules},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(test.seen, !test.off); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestProgramsArePickedInTheOrderOfTheTable(t *testing.T) {
	for name, test := range map[string]struct {
		names, want []string
		problem     bool
	}{
		"all":     {want: []string{"etcd", "kwok", "kubectl", "kube-scheduler", "kube-apiserver", "kube-controller-manager"}},
		"some":    {names: []string{"kubectl", "kube-apiserver", "etcd", "etcd"}, want: []string{"etcd", "kubectl", "kube-apiserver"}},
		"unknown": {names: []string{"kubelet"}, problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			picked, err := pick(controlPlane(), test.names)
			if (err != nil) != test.problem {
				t.Fatal(err)
			}
			var got []string
			for _, p := range picked {
				got = append(got, p.name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("programs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExecutableIsCalledAsGoBuildCallsIt(t *testing.T) {
	for main, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kubectl": "kubectl", "go.etcd.io/etcd/server/v3": "server", "example.com/v": "v", "example.com/x/v2x": "v2x",
	} {
		if got := executable(main); got != want {
			t.Errorf("%s: got %q, want %q", main, got, want)
		}
	}
}
