package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/sandbox"
)

// checkSandbox runs the demo with the programs of the release on a sandbox of its own. If there is a release before, the demo runs with the programs of that
// one first, and an upgrade as users do it must leave the pods of all add-ons running.
func checkSandbox(ctx context.Context, p published) (err error) {
	folder, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("creating a folder for the sandbox: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	t := trial{programs: filepath.Join(folder, "bin"), home: filepath.Join(folder, "home"), out: os.Stderr}
	if err := t.run(ctx, "go", "build", "-o", t.sandbox(), "./cmd/sandbox"); err != nil {
		return err
	}
	first := p
	if p.before != nil {
		first = *p.before
		first.key = p.key
		if err := errors.Join(checkSignature(ctx, first), checkSums(ctx, first)); err != nil {
			return fmt.Errorf("release %s: %w", first.version, err)
		}
	}
	if err := first.unpackPrograms(t.programs); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, t.run(context.WithoutCancel(ctx), t.sandbox(), "down", "--home", t.home))
	}()
	if err := t.demo(ctx); err != nil || p.before == nil {
		return err
	}
	if err := t.upgrade(ctx, p); err != nil {
		return fmt.Errorf("upgrading from %s: %w", p.before.version, err)
	}
	return t.demo(ctx)
}

// unpackPrograms writes the programs of a release for this machine into a folder.
func (p published) unpackPrograms(folder string) error {
	for _, pod := range []string{"addon-manager", "addon-agent"} { // those that a sandbox runs
		program, err := p.podProgram(pod)
		if err != nil {
			return fmt.Errorf("image %s of %s: %w", pod, p.version, err)
		}
		if err := replaceProgram(filepath.Join(folder, pod), program); err != nil {
			return err
		}
	}
	for _, of := range p.plugin.Spec.Platforms {
		if on := of.Selector.MatchLabels; on["os"] != runtime.GOOS || on["arch"] != runtime.GOARCH {
			continue
		}
		files, err := unpack(p.files[path.Base(of.URI)])
		if err != nil {
			return err
		}
		return replaceProgram(filepath.Join(folder, of.Bin), files[of.Bin])
	}
	return fmt.Errorf("release %s has no plugin for %s/%s", p.version, runtime.GOOS, runtime.GOARCH)
}

// podProgram returns the program in an image, for Linux on this machine's architecture.
func (p published) podProgram(pod string) ([]byte, error) {
	archive := filepath.Join(p.folder, pod+"_"+p.version+"_oci.tar")
	images, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		for _, tag := range image.RepoTags {
			if strings.HasSuffix(tag, ":"+p.version) || strings.HasSuffix(tag, ":"+p.version+"-"+runtime.GOARCH) {
				return programIn(archive, tag, pod)
			}
		}
	}
	return nil, fmt.Errorf("%s has no image for %s", archive, runtime.GOARCH)
}

// replaceProgram replaces a program, which may be running.
func replaceProgram(file string, content []byte) error {
	next := file + ".next"
	return errors.Join(os.WriteFile(next, content, 0o755), os.Rename(next, file))
}

// trial is a sandbox with programs of releases.
type trial struct {
	programs, home string
	out            io.Writer
}

func (t trial) sandbox() string { return filepath.Join(t.programs, "sandbox") }

// run runs a program, and prints its output.
func (t trial) run(ctx context.Context, program string, arguments ...string) error {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stdout, command.Stderr = t.out, t.out
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(arguments, " "), err)
	}
	return nil
}

// demo runs the demo, which fails unless each of its acts has the expected result. The sandbox and the add-ons remain.
func (t trial) demo(ctx context.Context) error {
	return t.run(ctx, t.sandbox(), "demo", "--check", "--home", t.home)
}

// upgrade replaces the definitions on all clusters and the programs by those of a release, the hub's first. It returns an error unless all pods of
// add-ons are the ones before, and all programs have the new version.
func (t trial) upgrade(ctx context.Context, to published) error {
	state, err := sandbox.Read(t.home)
	if err != nil {
		return err
	}
	before, err := t.pods(ctx, state)
	if err != nil {
		return err
	}
	if !strings.Contains(before, "/") {
		return errors.New("the demo has left no pods: there is nothing to upgrade")
	}
	if err := to.unpackPrograms(t.programs); err != nil {
		return err
	}
	for i, cluster := range state.Clusters {
		definitions, program := "install-agent.yaml", "addon-agent"
		if i == 0 {
			definitions, program = "install-hub.yaml", "addon-manager"
		}
		if err := t.upgradeCluster(ctx, state, cluster, filepath.Join(to.folder, definitions), program); err != nil {
			return fmt.Errorf("cluster %s: %w", cluster.Name, err)
		}
	}
	if err := t.awaitVersion(ctx, state.Clusters[0], to.version); err != nil {
		return err
	}
	after, err := t.pods(ctx, state)
	if err != nil {
		return err
	}
	if before != after {
		return fmt.Errorf("the pods before were\n%s\nand are\n%s", before, after)
	}
	return nil
}

// upgradeCluster applies the CustomResourceDefinitions in a file, and starts the program again.
func (t trial) upgradeCluster(ctx context.Context, state sandbox.State, cluster sandbox.ClusterState, file, program string) error {
	definitions, err := definitionsIn(file)
	if err != nil {
		return err
	}
	apply := exec.CommandContext(ctx, filepath.Join(state.Assets, "kubectl"), "--kubeconfig", cluster.Kubeconfig,
		"apply", "--server-side", "--force-conflicts", "-f", "-")
	apply.Stdin, apply.Stdout, apply.Stderr = strings.NewReader(definitions), t.out, t.out
	if err := apply.Run(); err != nil {
		return fmt.Errorf("applying the definitions: %w", err)
	}
	for _, verb := range []string{"stop", "start"} {
		if err := t.run(ctx, t.sandbox(), verb, cluster.Name, program, "--home", t.home); err != nil {
			return err
		}
	}
	return nil
}

// definitionsIn returns the CustomResourceDefinitions in a file of manifests, without those that addon-manager converts: on a sandbox, it is a process at a
// port of this machine, and not behind a Service.
func definitionsIn(file string) (string, error) {
	content, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer content.Close()
	var found strings.Builder
	for documents := yaml.NewYAMLReader(bufio.NewReader(content)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return found.String(), nil
		}
		var object apiextensionsv1.CustomResourceDefinition
		if err == nil {
			err = sigsyaml.Unmarshal(document, &object)
		}
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", file, err)
		}
		isConverted := object.Spec.Conversion != nil && object.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
		if object.Kind == "CustomResourceDefinition" && !isConverted {
			found.WriteString("---\n" + string(document))
		}
	}
}

// pods returns a line for each pod of the managed clusters, with its identity and the restarts of its containers.
func (t trial) pods(ctx context.Context, state sandbox.State) (string, error) {
	var all strings.Builder
	for _, cluster := range state.Clusters[1:] {
		listed, err := exec.CommandContext(ctx, filepath.Join(state.Assets, "kubectl"), "--kubeconfig", cluster.Kubeconfig, "get", "pods", "--all-namespaces",
			"--sort-by=.metadata.uid", "-o", `jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`).Output()
		if err != nil {
			return "", fmt.Errorf("listing the pods of %s: %w", cluster.Name, err)
		}
		fmt.Fprintf(&all, "%s:\n%s", cluster.Name, listed)
	}
	return all.String(), nil
}

// awaitVersion waits until addon-manager and all agents report a version to the hub.
func (t trial) awaitVersion(ctx context.Context, hub sandbox.ClusterState, version string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		printed, err := exec.CommandContext(ctx, filepath.Join(t.programs, "kubectl-addon"), "version", "--kubeconfig", hub.Kubeconfig,
			"-o", "jsonpath={.hub} {.agents[*].version}").CombinedOutput()
		if err == nil && string(printed) == version+" "+version {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("addon-manager and the agents do not all report version %s: %s: %w", version, printed, err)
		case <-time.After(time.Second):
		}
	}
}
