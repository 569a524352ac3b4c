package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// checkManifests applies all manifests to an API server of its own, as users do: one after the other, because a hub with OCM has definitions that
// Tandem installs on a hub without. KUBEBUILDER_ASSETS names the folder of the programs.
func checkManifests(_ context.Context, p published) (err error) {
	log.SetLogger(logr.Discard())
	server := &envtest.Environment{}
	if _, err := server.Start(); err != nil {
		return fmt.Errorf("starting an API server (KUBEBUILDER_ASSETS names the folder of its programs): %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	user, err := server.AddUser(envtest.User{Name: "administrator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range manifests {
		if p.files[m.file] == nil {
			problems = append(problems, fmt.Errorf("%s is missing", m.file))
			continue
		}
		_, output, err := kubectl.Run("apply", "--server-side", "-f", filepath.Join(p.folder, m.file))
		if err != nil {
			problems = append(problems, fmt.Errorf("applying %s: %w", m.file, err))
		}
		warnings, err := io.ReadAll(output)
		if err != nil {
			return err
		}
		if len(warnings) > 0 { // of fields that the API server does not know, for example
			problems = append(problems, fmt.Errorf("applying %s: %s", m.file, warnings))
		}
	}
	return errors.Join(problems...)
}
