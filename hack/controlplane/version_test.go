package main

import (
	"strings"
	"testing"
)

func TestRequiredVersion(t *testing.T) {
	for name, test := range map[string]struct{ goMod, want string }{
		"a requirement of one line":      {"module x\nrequire example.com/a v1.2.3\n", "v1.2.3"},
		"one in a block":                 {"require (\n\texample.com/ab v0.1.0\n\texample.com/a v1.2.3 // indirect\n)\n", "v1.2.3"},
		"a replacement is none":          {"replace (\n\texample.com/a => example.com/b v1.0.0\n\texample.com/a v1.0.0 => ../a\n)\n", ""},
		"neither is a comment or a tool": {"tool example.com/a\n// example.com/a v1.2.3\n", ""},
		"nor that of another module":     {"require example.com/a/v2 v2.0.0\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := requiredVersion(test.goMod, "example.com/a")
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestSaysVersion(t *testing.T) {
	const kubectl = `{
  "clientVersion": {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3",
    "gitCommit": "$Format:%H$",
    "goVersion": "go1.26.8"
  },
  "kustomizeVersion": "v5.8.1"
}
`
	const etcd = "etcd Version: 3.6.16\nGit SHA: Not provided (use ./build instead of go build)\nGo Version: go1.26.8\nGo OS/Arch: linux/amd64\n"
	for name, test := range map[string]struct {
		program, printed, version string
		want                      bool
	}{
		"etcd":                              {"etcd", etcd, "v3.6.16", true},
		"etcd, not the beginning of it":     {"etcd", etcd, "v3.6.1", false},
		"kwok":                              {"kwok", "kwok version v0.8.0 go1.26.8 (linux/amd64)\n", "v0.8.0", true},
		"kwok of a later version":           {"kwok", "kwok version v0.8.1 go1.26.8 (linux/amd64)\n", "v0.8.0", false},
		"kubectl":                           {"kubectl", kubectl, "v1.36.3", true},
		"kubectl of a distribution":         {"kubectl", strings.ReplaceAll(kubectl, "v1.36.3", "v1.36.3-gke.1"), "v1.36.3", false},
		"kubectl, with the server's beside": {"kubectl", `{"serverVersion": {"gitVersion": "v1.36.3"}}`, "v1.36.3", false},
		"kube-apiserver":                    {"kube-apiserver", "Kubernetes v1.36.3\n", "v1.36.3", true},
		"a warning in its place":            {"kube-apiserver", "deprecated\nKubernetes v1.36.3\n", "v1.36.3", false},
		"nothing":                           {"kube-apiserver", "", "v1.36.3", false},
	} {
		t.Run(name, func(t *testing.T) {
			picked, err := pick(controlPlane(), []string{test.program})
			if err != nil {
				t.Fatal(err)
			}
			if got := picked[0].saysVersion(test.printed, test.version); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestLinkerFlags(t *testing.T) {
	want := "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1" +
		" -X k8s.io/component-base/version.gitMinor=36 -X k8s.io/component-base/version.gitTreeState=clean" +
		" -X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0 -X sigs.k8s.io/kwok/pkg/consts.PreRelease=GA"
	if got := linkerFlags(map[string]string{kubernetesPin: "v1.36.3", kwokPin: "v0.8.0", etcdPin: "v3.6.16"}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
