// Command release builds everything that a release of Tandem publishes, into one folder: the plugin for all platforms, container images, manifests,
// the Helm chart, lists of the software in all programs (SBOMs), metadata for catalogs, and checksums. The same commit,
// settings and Go version result in the same bytes. `release check FOLDER` verifies a release, and starts an API server to apply its manifests.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/tandem-addons/tandem/pkg/chart"
)

// steps are all parts but the checksums.
var steps = []step{
	{"the plugin", buildPlugin},
	{"the images", buildImages},
	{"the manifests", buildManifests},
	{"the chart", buildChart},
	{"the control plane", buildControlPlane},
}

func main() {
	chart.ServeChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "check" {
		return runCheck(ctx, arguments[1:])
	}
	r, err := parse(arguments)
	if err != nil {
		return err
	}
	return r.build(ctx, steps)
}

// runCheck verifies the release in a folder.
func runCheck(ctx context.Context, arguments []string) error {
	fs := flag.NewFlagSet("release check", flag.ContinueOnError)
	file := fs.String("key", "", "File with the public key that has to have signed the release.")
	from := fs.String("from", "", "Folder of the release before, from which the sandbox is upgraded; empty for none.")
	if err := fs.Parse(arguments); err != nil {
		return err
	}
	if fs.NArg() != 1 {
		return errors.New("name one folder: release check [-key FILE] [-from FOLDER] FOLDER")
	}
	p, err := readRelease(fs.Arg(0))
	if err == nil && *file != "" {
		p.key, err = readPublicKey(*file)
	}
	if err == nil && *from != "" {
		p.before = new(published)
		*p.before, err = readRelease(*from)
	}
	if err != nil {
		return err
	}
	return check(ctx, p, requirements)
}

func parse(arguments []string) (release, error) {
	r := release{plugin: program{name: "kubectl-addon", path: "./cmd/kubectl-addon"}}
	var created int64
	var platforms, key string
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	fs.StringVar(&r.version, "version", "", "Semantic version of the release, such as v0.1.0.")
	fs.StringVar(&r.revision, "revision", "", "Commit that the release is built from.")
	fs.Int64Var(&created, "created", 0, "Date of the release, in seconds since 1970: of the commit, so that builds of the same commit are identical.")
	fs.StringVar(&r.repository, "repository", "localhost/tandem-addons", "Registry and folder of the images.")
	fs.StringVar(&r.url, "url", "https://github.com/tandem-addons/tandem/releases/download", "Address at which releases are published, each in a folder of its version.")
	fs.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "Comma-separated platforms of the plugin.")
	fs.StringVar(&r.images, "image-platforms", "linux/amd64,linux/arm64", "Comma-separated platforms of the images.")
	fs.StringVar(&r.source, "source", ".", "Folder of the module.")
	fs.StringVar(&r.output, "output", "dist", "Folder of the release, which is replaced.")
	fs.StringVar(&r.controlPlane, "controlplane", "", "Folder with the programs of control planes, as hack/controlplane prints it; empty publishes none.")
	fs.StringVar(&r.builder, "builder", localBuilderID, "URI of who builds the release, for its provenance.")
	fs.StringVar(&r.artifactHub, "artifact-hub", "", "ID that Artifact Hub has given to the chart's repository, for the mark of a verified publisher.")
	fs.StringVar(&key, "key", "", "File with a private key that signs the checksums: ECDSA on curve P-256, in PEM without a password.")
	if err := fs.Parse(arguments); err != nil {
		return r, err
	}
	if fs.NArg() > 0 {
		return r, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if !semantic.MatchString(r.version) {
		return r, fmt.Errorf("-version: %q is not a semantic version such as v0.1.0", r.version)
	}
	r.created = time.Unix(created, 0).UTC()
	var err error
	if r.platforms, err = platformsIn(platforms); err == nil && key != "" {
		r.key, err = readPrivateKey(key)
	}
	return r, err
}
