package main

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// program is a control plane program: its import path, how to print its version, and its releases.
type program struct {
	name     string
	main     string         // import path of its main package
	pin      string         // module in the tool module's go.mod that determines the program's version
	question []string       // arguments that make it print its version
	answer   *regexp.Regexp // pattern of the version output; the first group is the version, with or without v
	released func(version string, on platform) (release, bool)
}

// platform is an operating system and an architecture, in Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// toolModule is the folder below hack/controlplane of the module whose go.mod pins the versions of all programs. With a single module, go
// builds shared packages once, and all programs in one call that keeps all processors busy.
const toolModule = "programs"

// The modules whose versions determine the versions of the programs.
const (
	etcdPin       = "go.etcd.io/etcd/server/v3"
	kubernetesPin = "k8s.io/kubernetes"
	kwokPin       = "sigs.k8s.io/kwok"
)

// Patterns of the version output.
var (
	etcdAnswer    = regexp.MustCompile(`^etcd Version: (\S+)\n`)
	kwokAnswer    = regexp.MustCompile(`^kwok version (\S+) `)
	serverAnswer  = regexp.MustCompile(`^Kubernetes (\S+)\n$`)
	kubectlAnswer = regexp.MustCompile(`^\{\s*"clientVersion": ?\{[^{}]*"gitVersion": ?"([^"]+)"`)
)

// controlPlane returns the programs of a control plane, in the order of reports.
func controlPlane() []program {
	ask := []string{"--version"}
	kubernetes := func(name string, question []string, answer *regexp.Regexp, platforms string) program {
		return program{name: name, main: kubernetesPin + "/cmd/" + name, pin: kubernetesPin,
			question: question, answer: answer, released: kubernetesRelease(name, platforms)}
	}
	return []program{
		{name: "etcd", main: etcdPin, pin: etcdPin, question: ask, answer: etcdAnswer, released: etcdRelease},
		{name: "kwok", main: kwokPin + "/cmd/kwok", pin: kwokPin, question: ask, answer: kwokAnswer, released: kwokRelease},
		kubernetes("kubectl", []string{"version", "--client", "-o", "json"}, kubectlAnswer, clientPlatforms),
		kubernetes("kube-scheduler", ask, serverAnswer, serverPlatforms),
		kubernetes("kube-apiserver", ask, serverAnswer, serverPlatforms),
		kubernetes("kube-controller-manager", ask, serverAnswer, serverPlatforms),
	}
}

// pick returns the programs of the given names in table order, or all programs if no names are given.
func pick(programs []program, names []string) ([]program, error) {
	var known []string
	for _, p := range programs {
		known = append(known, p.name)
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var picked []program
	for _, p := range programs {
		if wanted[p.name] || len(names) == 0 {
			picked = append(picked, p)
		}
		delete(wanted, p.name)
	}
	for _, name := range names {
		if wanted[name] {
			return nil, fmt.Errorf("unknown program %q: available programs are %s", name, strings.Join(known, ", "))
		}
	}
	return picked, nil
}

// majorVersion matches the last element of a module path with a major version suffix.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// executable returns the name that go build gives to the program of a main package: the last path element that is not a version.
func executable(main string) string {
	if last := path.Base(main); !majorVersion.MatchString(last) {
		return last
	}
	return path.Base(path.Dir(main))
}
