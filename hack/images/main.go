// Command images builds the container images of Tandem's programs without a container runtime: it cross-compiles the programs
// and packs each with the certificates of public authorities. It does not connect to a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// programs lists the programs that run in pods.
var programs = []program{
	{name: "addon-manager", path: "./cmd/addon-manager", description: "Tandem's controllers on the hub"},
	{name: "addon-agent", path: "./cmd/addon-agent", description: "Tandem's agent on a managed cluster"},
	{name: "package-controller", path: "./cmd/package-controller", description: "Tandem's controller of package sources on the hub"},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, programs, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	source, out, repository string
	platforms               []v1.Platform
	stamp                   stamp
	push                    bool
}

func parse(arguments []string) (settings, error) {
	s := settings{}
	var platforms string
	var created int64
	fs := flag.NewFlagSet("images", flag.ContinueOnError)
	fs.StringVar(&s.source, "source", ".", "Folder of the programs' module.")
	fs.StringVar(&s.out, "out", ".", "Folder for the archives, one for each image.")
	fs.StringVar(&s.repository, "repository", "localhost", "Prefix of the images' names.")
	fs.StringVar(&platforms, "platforms", "linux/amd64,linux/arm64", "Comma-separated platforms of the images.")
	fs.StringVar(&s.stamp.version, "version", "devel", "Version of the programs, and tag of the images.")
	fs.StringVar(&s.stamp.revision, "revision", "", "Commit that the programs are built from.")
	fs.Int64Var(&created, "created", 0, "Date of the images, in seconds since 1970. Builds of the same commit with the same date are identical.")
	fs.BoolVar(&s.push, "push", false, "Push the images to the registry in their names, with the credentials of \"docker login\".")
	if err := fs.Parse(arguments); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	s.stamp.created = time.Unix(created, 0).UTC()
	for text := range strings.SplitSeq(platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS == "" || platform.Architecture == "" {
			return s, fmt.Errorf("-platforms: %q is not of the form linux/amd64", text)
		}
		s.platforms = append(s.platforms, *platform)
	}
	return s, nil
}

// run builds the image of each program, writes it to an archive, pushes it if requested, and prints the results.
func run(ctx context.Context, programs []program, arguments []string, out io.Writer) error {
	s, err := parse(arguments)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return fmt.Errorf("creating the folder for the archives: %w", err)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IMAGE\tPLATFORM\tDOWNLOAD\tUNPACKED\tDIGEST")
	for _, p := range programs {
		if err := s.make(ctx, p, table); err != nil {
			return fmt.Errorf("building the image of %s: %w", p.name, err)
		}
	}
	return table.Flush()
}

// make builds one image for all platforms.
func (s settings) make(ctx context.Context, p program, table io.Writer) error {
	// Container runtimes expand a name without a registry with docker.io/.
	name, err := reference.ParseNormalizedNamed(s.repository + "/" + p.name)
	if err != nil {
		return err
	}
	tagged, err := reference.WithTag(name, s.stamp.version)
	if err != nil {
		return fmt.Errorf("tagging it with version %q: %w", s.stamp.version, err)
	}
	made := newImage(tagged, s.stamp.labels(p))
	for _, platform := range s.platforms {
		fmt.Fprintf(os.Stderr, "building %s for %s\n", p.name, platform)
		binary, err := p.build(ctx, s.source, platform, s.stamp.version)
		if err != nil {
			return err
		}
		variant, err := pack(p, binary, platform, s.stamp)
		if err != nil {
			return err
		}
		made.add(platform, variant)
	}
	if err := made.save(filepath.Join(s.out, p.name+".tar")); err != nil {
		return err
	}
	if s.push {
		if err := made.push(ctx); err != nil {
			return err
		}
	}
	return made.describe(table)
}
