package packages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"k8s.io/cli-runtime/pkg/printers"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// IndexOptions holds the arguments and flags of the command.
type IndexOptions struct {
	*hubclient.Factory
	folder, base string
}

// NewCmdIndex returns the command. If runF is set, it replaces runIndex.
func NewCmdIndex(f *hubclient.Factory, runF func(context.Context, *IndexOptions) error) *cobra.Command {
	o := &IndexOptions{Factory: f}
	if runF == nil {
		runF = runIndex
	}
	cmd := &cobra.Command{
		Use:   "index DIR",
		Short: "Create a repository from the tarballs in a folder",
		Long: "Verify the tarballs in DIR, which 'package pack' creates, and write index.yaml next to them. The folder is then a repository:\n" +
			"serve it with any web server, or refer to it by its path.\n\n" +
			"The index lists only the tarballs in DIR. If an index.yaml exists, its includes are kept. No cluster is needed.",
		Example: "  kubectl addon package pack web -o repository/web-1.0.0.tgz\n" +
			"  kubectl addon package index repository --url https://example.org/packages",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if address, err := url.Parse(o.base); err != nil || o.base != "" && (!bundle.IsURL(o.base) || address.Host == "") {
				return terminal.Usagef(cmd, "invalid argument %q for \"--url\" flag: must be a URL such as https://example.org/packages", o.base)
			}
			o.folder = args[0]
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.base, "url", "",
		"Base URL of the tarballs, where DIR will be served. By default, URLs are relative to the index, which "+
			"KUDO's own client does not support.")
	return cmd
}

func runIndex(ctx context.Context, o *IndexOptions) error {
	count, err := writeIndex(ctx, o.folder, o.base)
	if err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, fmt.Sprintf("%s created: %s\n", filepath.Join(o.folder, indexFile), text.Plural(count, "package")))
}

// indexFile is the name of a repository's index.
const indexFile = "index.yaml"

// publishedIndex is an index that KUDO's client can read too.
type publishedIndex struct {
	APIVersion string                      `yaml:"apiVersion"`
	Entries    map[string][]publishedEntry `yaml:"entries"`
	Includes   []string                    `yaml:"includes,omitempty"`
}

// publishedEntry is one version of a package, including descriptive fields.
type publishedEntry struct {
	Name              string `yaml:"name"`
	bundle.IndexEntry `yaml:",inline"`
	Description       string       `yaml:"description,omitempty"`
	Maintainers       []maintainer `yaml:"maintainers,omitempty"`

	// version is the version by which entries are sorted.
	version *kudo.OperatorVersion
}

type maintainer struct {
	Name  string `yaml:"name,omitempty"`
	Email string `yaml:"email,omitempty"`
}

// writeIndex writes the index of the tarballs in a folder atomically, and returns their number.
func writeIndex(ctx context.Context, dir, base string) (int, error) {
	names, err := tarballsIn(dir)
	if err != nil {
		return 0, err
	}
	made, err := existingIndex(dir)
	if err != nil {
		return 0, err
	}
	files := map[string]string{}
	var problems []error
	for _, name := range names {
		entry, err := publish(ctx, dir, name, base)
		if err == nil {
			if other, known := files[entry.version.Name]; known {
				err = fmt.Errorf("%s and %s both contain %s: remove one of them", other, name, entry.version.Name)
			}
			files[entry.version.Name] = name
			made.Entries[entry.Name] = append(made.Entries[entry.Name], entry)
		}
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return 0, err
	}
	for _, entries := range made.Entries {
		slices.SortFunc(entries, func(a, b publishedEntry) int { return tree.Compare(b.version, a.version) })
	}
	content, err := yaml.Marshal(made)
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", indexFile, err)
	}
	return len(names), ReplaceFile(filepath.Join(dir, indexFile), content)
}

// tarballsIn returns the sorted names of the tarballs in a folder.
func tarballsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("creating the repository: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && bundle.IsTarball(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("folder %s contains no tarballs (.tgz): create one with 'kubectl addon package pack DIR -o %s'",
			dir, filepath.Join(dir, "NAME.tgz"))
	}
	return names, nil
}

// existingIndex returns an index without entries that has the includes of the existing one in the folder.
func existingIndex(dir string) (publishedIndex, error) {
	made := publishedIndex{APIVersion: "v1", Entries: map[string][]publishedEntry{}}
	file := filepath.Join(dir, indexFile)
	content, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return made, nil
	}
	if err != nil {
		return made, fmt.Errorf("reading the existing index: %w", err)
	}
	existing, err := bundle.ParseIndex(content)
	if err != nil {
		return made, fmt.Errorf("%s: %w: remove it first", file, err)
	}
	made.Includes = existing.Includes
	return made, nil
}

// publish returns the entry of a tarball, which must contain a valid package.
func publish(ctx context.Context, dir, name, base string) (publishedEntry, error) {
	file := filepath.Join(dir, name)
	content, err := os.ReadFile(file)
	if err != nil {
		return publishedEntry{}, fmt.Errorf("reading %s: %w", file, err)
	}
	l := &loader{}
	l.Begin()
	at, err := l.ReadArchive(file, bytes.NewReader(content))
	if err != nil {
		return publishedEntry{}, err
	}
	b, err := l.LoadFrom(ctx, at)
	if err != nil {
		return publishedEntry{}, err
	}
	if err := b.CheckValid(file); err != nil {
		return publishedEntry{}, fmt.Errorf("%w; run 'kubectl addon package verify %s'", err, text.Word(file))
	}
	address := (&url.URL{Path: name}).String()
	if base != "" {
		if address, err = url.JoinPath(base, url.PathEscape(name)); err != nil {
			return publishedEntry{}, err
		}
	}
	p := b.Root().Pkg
	entry := publishedEntry{
		Name: p.Name, Description: p.Operator.Description,
		IndexEntry: bundle.IndexEntry{
			OperatorVersion: p.Version.Version, AppVersion: p.Version.AppVersion,
			URLs: []string{address}, Digest: fmt.Sprintf("%x", sha256.Sum256(content)),
		},
	}
	for _, m := range p.Operator.Maintainers {
		entry.Maintainers = append(entry.Maintainers, maintainer(m))
	}
	_, entry.version = b.Root().Objects("")
	return entry, nil
}
