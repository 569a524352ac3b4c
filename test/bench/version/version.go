// Package version asks programs and API servers which version they are. It reads of a cluster nothing else.
package version

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Of is what a program says of itself, without its name.
func Of(program string) (string, error) {
	name := filepath.Base(program)
	said, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the version of %s: %w", name, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(said), name)), nil
}

// OfServer is the version of Kubernetes that an API server is of.
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
