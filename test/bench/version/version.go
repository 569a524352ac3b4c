// Package version returns the versions of programs and API servers. It reads only the version of a cluster.
package version

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Of returns the version that a program prints, without its name.
func Of(program string) (string, error) {
	name := filepath.Base(program)
	said, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the version of %s: %w", name, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(said), name)), nil
}

// OfServer returns the Kubernetes version of an API server.
func OfServer(config *rest.Config) (string, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connecting to the API server: %w", err)
	}
	found, err := server.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the API server's version: %w", err)
	}
	return found.GitVersion, nil
}
