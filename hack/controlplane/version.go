package main

import (
	"fmt"
	"strings"
)

// requiredVersion returns the version of a module that a go.mod requires.
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

// saysVersion reports whether the version output of a program names exactly this version.
func (p program) saysVersion(printed, version string) bool {
	said := p.answer.FindStringSubmatch(printed)
	return said != nil && strings.TrimPrefix(said[1], "v") == strings.TrimPrefix(version, "v")
}

// linkerFlags returns flags that set the programs' versions as in released builds; versions are module versions by module path. Flags for
// packages that a program does not include have no effect. (etcd has its version in its source.)
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
