package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/test/bench/program"
)

const (
	// examplePackage is the package that every version is copied from, relative to the Makefile.
	examplePackage = "examples/packages/kafka"
	// versionsStored is the number of versions on the hub and in the repository.
	versionsStored = 1000
)

// versionsOf returns versions of the package in a folder, all with the same content.
func versionsOf(folder string) ([]*kudo.OperatorVersion, error) {
	p, problems := pack.Load(os.DirFS(folder))
	if problems := pack.Errors(problems); len(problems) > 0 {
		return nil, fmt.Errorf("reading %s: %s", folder, problems[0])
	}
	made := make([]*kudo.OperatorVersion, versionsStored)
	for i := range made {
		p.Version.Version = fmt.Sprintf("1.%d.0", i)
		_, made[i] = p.Objects(kudo.DefaultPackagesNamespace)
	}
	return made, nil
}

// store creates the versions on the hub, and an Instance of one of them instead of each add-on of the fleet.
func (b *bench) store(ctx context.Context, versions []*kudo.OperatorVersion) error {
	b.say("storing %d OperatorVersions, and an Instance for each add-on", len(versions))
	for _, version := range versions {
		if err := b.hub.admin.Create(ctx, version.DeepCopy()); err != nil {
			return fmt.Errorf("storing OperatorVersion %q: %w", version.Name, err)
		}
	}
	var next atomic.Int64
	return program.Each(ctx, inFlight, b.fleet.namespaces(), func(ctx context.Context, cluster string) error {
		for _, name := range b.fleet.names() {
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
			version := versions[int(next.Add(1))%len(versions)]
			instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
			if err := b.hub.admin.Create(ctx, instance); err != nil {
				return fmt.Errorf("making Instance %s/%s: %w", cluster, name, err)
			}
		}
		return nil
	})
}

// publish creates a repository of the versions, sufficient for listing, and returns its folder.
func (b *bench) publish(versions []*kudo.OperatorVersion) (string, error) {
	var index strings.Builder
	fmt.Fprintf(&index, "apiVersion: v1\nentries:\n  %s:\n", versions[0].Spec.Operator.Name)
	for _, version := range versions {
		fmt.Fprintf(&index, "  - operatorVersion: %s\n    appVersion: %s\n    urls: [https://example.org/%s.tgz]\n    digest: %064x\n",
			version.Spec.Version, version.Spec.AppVersion, version.Name, len(index.String()))
	}
	if err := os.WriteFile(filepath.Join(b.folder, "index.yaml"), []byte(index.String()), 0o600); err != nil {
		return "", fmt.Errorf("writing a repository: %w", err)
	}
	return b.folder, nil
}
