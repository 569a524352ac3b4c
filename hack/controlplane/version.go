package main

import (
	"fmt"
	"strings"
)

// requiredVersion returns the version that the text of a go.mod requires of a module.
func requiredVersion(goMod, module string) (string, error) {
	for line := range strings.Lines(goMod) {
		line, _, _ = strings.Cut(line, "//")
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] == "require" {
			fields = fields[1:]
		}
		if len(fields) == 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("it does not require %s", module)
}

// saysVersion tells whether what a program prints about its version names exactly this one.
func (p program) saysVersion(printed, version string) bool {
	said := p.answer.FindStringSubmatch(printed)
	return said != nil && strings.TrimPrefix(said[1], "v") == strings.TrimPrefix(version, "v")
}

// linkerFlags make the programs say their versions as released ones do; versions are those of modules, by the modules' paths. Flags for
// packages that a program lacks change nothing in it. (etcd has its version in its source.)
func linkerFlags(versions map[string]string) string {
	const component, kwok = "k8s.io/component-base/version.", "sigs.k8s.io/kwok/pkg/consts."
	flags := []string{"-s", "-w"}
	set := func(variable, value string) { flags = append(flags, "-X", variable+"="+value) }
	if version := versions[kubernetesPin]; version != "" {
		major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
		minor, _, _ := strings.Cut(rest, ".")
		set(component+"gitVersion", version)
		set(component+"gitMajor", major)
		set(component+"gitMinor", minor)
		set(component+"gitTreeState", "clean")
	}
	if version := versions[kwokPin]; version != "" {
		set(kwok+"Version", version)
		set(kwok+"PreRelease", "GA")
	}
	return strings.Join(flags, " ")
}
