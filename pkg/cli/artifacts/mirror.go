// Package artifacts implements the commands for packages in OCI registries: it pulls, copies, signs and mirrors them. It touches no cluster.
package artifacts

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// MirrorOptions holds the arguments and flags of the command.
type MirrorOptions struct {
	*hubclient.Factory
	from, to  artifact.Reference
	overwrite bool
	dryRun    bool
	reader    packages.Reader
}

// NewCmdMirror returns the command. If runF is set, it replaces runMirror.
func NewCmdMirror(f *hubclient.Factory, runF func(context.Context, *MirrorOptions) error) *cobra.Command {
	o := &MirrorOptions{Factory: f}
	if runF == nil {
		runF = runMirror
	}
	cmd := &cobra.Command{
		Use:   "mirror SOURCE TARGET",
		Short: "Copy a package with its charts and images to another registry",
		Long: "Copy the package at SOURCE, oci://HOST/PATH with :TAG or @DIGEST, below TARGET in another registry, with its signatures, the packages and\n" +
			"charts that it refers to, and the images that 'package images' lists. All digests stay the same.\n\n" +
			"What is printed then lets clusters and the plugin use the mirror without any other network: TANDEM_CHART_MIRRORS for\n" +
			"'package push', and the registries of an AddOnDeploymentConfig for images. Images that 'package images' cannot know are named.",
		Example: "  kubectl addon package mirror oci://registry.example.com/packages/kafka:1.0.0 oci://mirror.internal:5000/tandem\n" +
			"  kubectl addon package mirror oci://registry.example.com/packages/kafka:1.0.0 oci://mirror.internal:5000/tandem --dry-run",
		Args: terminal.Exactly("SOURCE", "TARGET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.from, o.to, err = parseTwo(cmd, args); err != nil {
				return err
			}
			if o.to.Target() != "" {
				return terminal.Usagef(cmd, "TARGET must have neither a tag nor a digest: those of the source are kept")
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.overwrite, "overwrite", false, "Move tags in the target that name other artifacts or images.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Print what would be copied, and copy nothing.")
	o.reader.AddFlags(cmd)
	return cmd
}

// parseTwo parses the references of a source and a target.
func parseTwo(cmd *cobra.Command, args []string) (from, to artifact.Reference, err error) {
	if from, err = artifact.Parse(args[0]); err == nil {
		to, err = artifact.Parse(args[1])
	}
	if err != nil {
		return from, to, terminal.Usagef(cmd, "%v", err)
	}
	return from, to, nil
}

func runMirror(ctx context.Context, o *MirrorOptions) error {
	loaded, err := o.reader.Read(ctx, o.ErrOut, o.from.String())
	if err != nil {
		return err
	}
	images, unknown, err := loaded.Images()
	if err != nil {
		return err
	}
	copies, registries, err := artifact.MirrorImages(images, o.to)
	if err != nil {
		return err
	}
	for _, note := range unknown {
		if err := printers.WriteEscaped(o.ErrOut, fmt.Sprintf("warning: not known before the package runs: %s\n", text.JoinMessage(note))); err != nil {
			return err
		}
	}
	client, err := o.reader.Client()
	if err != nil {
		return err
	}
	m := &mirror{MirrorOptions: o, client: client}
	if err := m.copyAll(ctx, loaded.Charts(), copies); err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, m.mirrorsText()+registriesText(registries))
}

// mirror copies to the target.
type mirror struct {
	*MirrorOptions
	client *oci.Client
	// mirrors are those of charts and of packages to which others refer.
	mirrors []catalog.Mirror
}

// copyAll copies all packages that were pulled, charts, and images.
func (m *mirror) copyAll(ctx context.Context, charts []*registry.Chart, images []artifact.ImageCopy) error {
	for _, place := range m.reader.References() {
		if err := m.copyPackage(ctx, place); err != nil {
			return err
		}
	}
	for _, chart := range charts {
		if err := m.copyChart(ctx, chart); err != nil {
			return err
		}
	}
	for _, c := range images {
		if err := m.copy(ctx, c.From, c.To); err != nil {
			return err
		}
	}
	return nil
}

// copyPackage copies a package that was pulled, with its signatures.
func (m *mirror) copyPackage(ctx context.Context, place string) error {
	from := m.reader.Pulled(place)
	to := artifact.PackageMirror(from, m.to)
	if place == m.from.String() {
		_, name := cutLast(from.Repository)
		to = m.to.Below("packages/" + name)
	} else {
		named, err := artifact.Parse(place) // what the package refers to, even if it was read from a mirror
		if err != nil {
			return err
		}
		m.mirrors = append(m.mirrors, catalog.Mirror{From: named.Place(), To: to.Place()})
	}
	to.Tag = from.Tag
	if m.dryRun {
		return m.print(to, from.Digest, "would be copied")
	}
	copied, signatures, err := m.client.CopySigned(ctx, from, to, m.overwrite)
	if err != nil {
		return err
	}
	return m.print(to, copied.Digest, copiedText(signatures))
}

// cutLast cuts a path before its last part.
func cutLast(place string) (above, name string) {
	at := strings.LastIndex(place, "/")
	return place[:max(0, at)], place[at+1:]
}

// copiedText says that an artifact was copied, with its signatures.
func copiedText(signatures int) string {
	if signatures == 0 {
		return "copied"
	}
	return "copied with " + text.Plural(signatures, "signature")
}

// copyChart copies a chart: the artifact of a registry as it is, and an archive as an artifact that Helm can pull.
func (m *mirror) copyChart(ctx context.Context, chart *registry.Chart) error {
	above := artifact.ChartMirror(chart.Repository, m.to)
	to := above.Below(chart.Name)
	to.Tag = catalog.TagOf(chart.Version)
	if chart.Repository != "" {
		m.mirrors = append(m.mirrors, catalog.Mirror{From: chart.Repository, To: above.Place()})
	}
	if artifact.IsReference(chart.From) {
		from, err := artifact.Parse(chart.From)
		if err != nil {
			return err
		}
		return m.copy(ctx, from, to)
	}
	made, err := artifact.NewChart(chart.Name, chart.Version, chart.Archive)
	if err != nil {
		return err
	}
	if m.dryRun {
		return m.print(to, made.Digest, "would be pushed")
	}
	if _, err := m.client.Push(ctx, to, made, m.overwrite); err != nil {
		return err
	}
	return m.print(to, made.Digest, "pushed")
}

// copy copies an artifact or an image.
func (m *mirror) copy(ctx context.Context, from, to artifact.Reference) error {
	if m.dryRun {
		return m.print(to, from.Digest, "would be copied from "+from.String())
	}
	copied, err := m.client.Copy(ctx, from, to, m.overwrite)
	if err != nil {
		return err
	}
	return m.print(to, copied.Digest, "copied")
}

func (m *mirror) print(to artifact.Reference, digest, did string) error {
	to.Digest = digest
	return printers.WriteEscaped(m.Out, fmt.Sprintf("%s %s\n", to, did))
}

// mirrorsText returns the setting with which charts and packages are fetched from the mirror.
func (m *mirror) mirrorsText() string {
	var mirrors []string
	for _, c := range m.mirrors {
		mirrors = append(mirrors, c.From+"="+c.To)
	}
	if len(mirrors) == 0 {
		return ""
	}
	return fmt.Sprintf("\n# For 'kubectl addon package push' from the mirror:\nexport %s=%s\n", registry.MirrorsVariable, text.Word(strings.Join(mirrors, " ")))
}

// registriesText returns the registries of an AddOnDeploymentConfig with which clusters pull images from the mirror.
func registriesText(registries []kudo.ImageRegistry) string {
	if len(registries) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n# For clusters that pull images from the mirror, in an AddOnDeploymentConfig:\nregistries:\n")
	for _, r := range registries {
		fmt.Fprintf(&b, "- source: %s\n  mirror: %s\n", r.Source, r.Mirror)
	}
	return b.String()
}
