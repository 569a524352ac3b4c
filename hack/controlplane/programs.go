package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// program is a control plane program.
type program struct {
	name     string
	module   string // its version in the tool module's go.mod is the version of the program
	main     string // import path of its main package
	output   string // the name that go build gives to it
	released bool   // whether dl.k8s.io may have it
}

const (
	kubernetes = "k8s.io/kubernetes"
	kwok       = "sigs.k8s.io/kwok"
	etcd       = "go.etcd.io/etcd/server/v3"
)

// controlPlane returns the programs of a control plane.
func controlPlane() []program {
	programs := []program{
		{name: "etcd", module: etcd, main: etcd, output: "server"},
		{name: "kwok", module: kwok, main: kwok + "/cmd/kwok", output: "kwok"},
	}
	for _, name := range []string{"kubectl", "kube-scheduler", "kube-apiserver", "kube-controller-manager"} {
		programs = append(programs, program{name: name, module: kubernetes, main: kubernetes + "/cmd/" + name, output: name, released: true})
	}
	return programs
}

// pick returns the programs of the given names in table order, or all programs if no names are given.
func pick(programs []program, names []string) ([]program, error) {
	if len(names) == 0 {
		return slices.Clone(programs), nil
	}
	for _, name := range names {
		if !slices.Contains(namesOf(programs), name) {
			return nil, fmt.Errorf("unknown program %q: available programs are %s", name, strings.Join(namesOf(programs), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(programs), func(p program) bool { return !slices.Contains(names, p.name) }), nil
}

func namesOf(programs []program) []string {
	var names []string
	for _, p := range programs {
		names = append(names, p.name)
	}
	return names
}

// versionsOf returns the version of each program's module that a go.mod requires.
func versionsOf(goMod string, programs []program) (map[string]string, error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return nil, fmt.Errorf("reading the versions of programs: %w", err)
	}
	versions := map[string]string{}
	for _, p := range programs {
		required := regexp.MustCompile(`(?m)^\s*(?:require )?` + regexp.QuoteMeta(p.module) + ` (v\S+)`).FindSubmatch(content)
		if required == nil {
			return nil, fmt.Errorf("%s does not require %s, which has %s", goMod, p.module, p.name)
		}
		versions[p.module] = string(required[1])
	}
	return versions, nil
}

// linkerFlags returns flags that set the programs' versions as in released builds. Flags for packages that a program does not include have
// no effect. (etcd has its version in its source.)
func linkerFlags(versions map[string]string) string {
	const component, consts = "k8s.io/component-base/version.", "sigs.k8s.io/kwok/pkg/consts."
	number := strings.SplitN(strings.TrimPrefix(versions[kubernetes], "v"), ".", 3)
	if len(number) < 3 {
		return "-s -w"
	}
	return "-s -w -X " + strings.Join([]string{
		component + "gitVersion=" + versions[kubernetes], component + "gitMajor=" + number[0], component + "gitMinor=" + number[1],
		component + "gitTreeState=clean", consts + "Version=" + versions[kwok], consts + "PreRelease=GA",
	}, " -X ")
}
