package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/image"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/text"
)

// ImagesOptions holds the arguments and flags of the command.
type ImagesOptions struct {
	*hubclient.Factory
	name string
	// registries are replaced in the names of images.
	registries []kudo.ImageRegistry
	loader
	output *terminal.Output
}

// NewCmdImages returns the command. If runF is set, it replaces runImages.
func NewCmdImages(f *hubclient.Factory, runF func(context.Context, *ImagesOptions) error) *cobra.Command {
	o := &ImagesOptions{Factory: f, output: terminal.NewOutput()}
	var registries []string
	if runF == nil {
		runF = runImages
	}
	cmd := &cobra.Command{
		Use:   "images DIR",
		Short: "List the images that a package or a chart runs",
		Long: "List the container images of all objects that the plans of the package in DIR, in a tarball or at a URL apply, with those of its child\n" +
			"packages. DIR may also be the folder or the archive of a Helm chart. Containers, init containers and image volumes are found in pods,\n" +
			"workloads, Jobs and hooks, and in the pod templates and image fields of custom resources.\n\n" +
			"Templates and charts are rendered with the default parameters, and optional parts as if they were switched on. Lines that begin with # name what is\n" +
			"not known before the package runs, such as images that depend on parameters, or that the controller of a custom resource chooses. No\n" +
			"cluster is needed. With --registry, the images are listed with the mirrors that registries of an AddOnDeploymentConfig set.",
		Example: "  kubectl addon package images ./kafka\n" +
			"  kubectl addon package images ./web-1.2.3.tgz -o jsonpath={.images[*]}\n" +
			"  kubectl addon package images ./kafka --registry quay.io=mirror.example.com:5000/quay",
		Args: terminal.Exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			var err error
			if o.registries, err = parseRegistries(cmd, registries); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.addFlag(cmd)
	cmd.Flags().StringArrayVar(&registries, "registry", nil,
		"SOURCE=MIRROR: list images of SOURCE as those of MIRROR, as imageRegistries of an Instance replace them; of several the last match applies")
	return cmd
}

func runImages(ctx context.Context, o *ImagesOptions) error {
	b, err := o.bundleOf(ctx)
	if err != nil {
		return err
	}
	data, err := imagesOf(b, isChart(o.name), o.registries)
	if err != nil {
		return err
	}
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(), Data: data})
}

// parseRegistries parses image registries, given as SOURCE=MIRROR.
func parseRegistries(cmd *cobra.Command, given []string) ([]kudo.ImageRegistry, error) {
	var registries []kudo.ImageRegistry
	for _, value := range given {
		source, mirror, _ := strings.Cut(value, "=")
		registry := kudo.ImageRegistry{Source: source, Mirror: mirror}
		if problem := image.Problem(registry); problem != "" {
			return nil, terminal.Usagef(cmd, "--registry %s: must be SOURCE=MIRROR, such as quay.io=mirror.example.com/quay: %s",
				text.Quote(value), problem)
		}
		registries = append(registries, registry)
	}
	return registries, nil
}

// bundleOf loads the package, or wraps one around the chart.
func (o *ImagesOptions) bundleOf(ctx context.Context) (*bundle.Bundle, error) {
	if !isChart(o.name) {
		return verifiedBundle(ctx, &o.loader, o.ErrOut, o.name)
	}
	loaded, _, _, err := LoadChart(ctx, o.Factory, Chart{Name: "chart", Namespace: "namespace", Place: o.name})
	if err != nil {
		return nil, err
	}
	return loaded.bundle, nil
}

// isChart reports whether a folder or an archive on disk is a chart and no package.
func isChart(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	if info.IsDir() {
		_, notChart := os.Stat(filepath.Join(name, "Chart.yaml"))
		_, notPackage := os.Stat(filepath.Join(name, "operator.yaml"))
		return notChart == nil && errors.Is(notPackage, fs.ErrNotExist)
	}
	file, err := os.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	files, _, err := pack.Archive(file)
	if err != nil {
		return false
	}
	charts, _ := fs.Glob(files, "*/Chart.yaml")
	packages, _ := fs.Glob(files, "*/operator.yaml")
	_, atTop := fs.Stat(files, "operator.yaml")
	return len(charts) > 0 && len(packages) == 0 && atTop != nil
}

// imagesData are the images of a package.
type imagesData struct {
	// Images lists each image once.
	Images []string   `json:"images"`
	Uses   []imageUse `json:"uses"`
	// Unknown lists what is not known.
	Unknown []string `json:"unknown,omitempty"`
}

// imageUse is where an image is used.
type imageUse struct {
	Image string `json:"image"`
	// OperatorVersion is empty for a chart.
	OperatorVersion string `json:"operatorVersion,omitempty"`
	Task            string `json:"task"`
	Kind            string `json:"kind"`
	Name            string `json:"name"`
	Container       string `json:"container,omitempty"`
	Field           string `json:"field"`
}

// images returns the images of a package and its children, or of a chart, with their registries replaced.
func imagesOf(b *bundle.Bundle, ofChart bool, registries []kudo.ImageRegistry) (imagesData, error) {
	data := imagesData{Images: []string{}, Uses: []imageUse{}}
	for _, m := range b.Distinct() {
		version := bundle.VersionName(m.Pkg)
		if ofChart { // the package around it exists only here
			version = ""
		}
		if err := data.addMember(m, version, registries); err != nil {
			return data, err
		}
	}
	for _, name := range b.NotLookedFor() {
		data.note("", "child package %s is not known here", text.Quote(name))
	}
	for _, use := range data.Uses {
		data.Images = append(data.Images, use.Image)
	}
	slices.Sort(data.Images)
	data.Images = slices.Compact(data.Images)
	return data, nil
}

// Images returns the container images of the package and its children, and what is not known about them.
func (l *Loaded) Images() (images, unknown []string, err error) {
	data, err := imagesOf(l.bundle, false, nil)
	return data.Images, data.Unknown, err
}

// note adds what is not known of a version, which may be empty, once.
func (d *imagesData) note(version, format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if version != "" {
		note = version + ": " + note
	}
	if !slices.Contains(d.Unknown, note) {
		d.Unknown = append(d.Unknown, note)
	}
}

// variableImage matches an image that a template prints.
var variableImage = regexp.MustCompile(`(?m)^[^#\n]*image["']?:.*\{\{.*\.Params\b`)

// addMember adds the images of one package.
func (d *imagesData) addMember(m *bundle.Member, version string, registries []kudo.ImageRegistry) error {
	for _, t := range m.Pkg.TaskObjects() {
		switch {
		case t.Err != nil:
			d.note(version, "template %s does not render with the default parameters", text.Quote(t.Template))
		case variableImage.MatchString(m.Pkg.Version.Templates[t.Template]):
			d.note(version, "images of template %s depend on parameters: those of the defaults are listed", text.Quote(t.Template))
		}
		images := image.NewOverride(registries)
		for _, object := range t.Objects {
			object = object.DeepCopy()
			if err := images.Apply(object); err != nil {
				return fmt.Errorf("task %s: %w", text.Quote(t.Task), err)
			}
			found, notes := image.Of(object)
			for _, note := range notes {
				d.note(version, "%s %s: %s", object.GetKind(), text.Word(object.GetName()), note)
			}
			for _, f := range found {
				d.add(imageUse{
					Image: f.Image, OperatorVersion: version, Task: t.Task, Kind: object.GetKind(), Name: object.GetName(), Container: f.Container, Field: f.Path,
				})
			}
		}
	}
	d.addTasks(m, version, registries)
	return nil
}

// add adds a use, once: a chart is rendered at an install and at an upgrade.
func (d *imagesData) add(use imageUse) {
	if !slices.Contains(d.Uses, use) {
		d.Uses = append(d.Uses, use)
	}
}

// addTasks adds what is known of tasks besides the objects that they apply.
func (d *imagesData) addTasks(m *bundle.Member, version string, registries []kudo.ImageRegistry) {
	for _, task := range m.Pkg.Version.Tasks {
		switch task.Kind {
		case kudo.TaskHelm:
			d.note(version, "chart %s is rendered with the default parameters and without a cluster: images with others are not listed", text.Quote(task.Spec.Chart))
		case kudo.TaskPipe:
			d.note(version, "pods of Pipe tasks also run the image of the agent's flag --pipe-image, %s by default", image.Mirrored(registries, pipe.DefaultImage))
		}
	}
}

// text returns a table by object, and what is not known.
func (d imagesData) text() string {
	var out strings.Builder
	if len(d.Uses) == 0 {
		out.WriteString("# No images were found.\n")
	} else {
		out.WriteString(d.table())
	}
	for i, note := range d.Unknown {
		if i == 0 {
			out.WriteString("# Not known before the package runs:\n")
		}
		fmt.Fprintf(&out, "# - %s\n", text.JoinMessage(note))
	}
	return out.String()
}

// table returns a row for each use, with the package if there are several.
func (d imagesData) table() string {
	several := slices.ContainsFunc(d.Uses, func(u imageUse) bool { return u.OperatorVersion != d.Uses[0].OperatorVersion })
	header, rows := []string{"TASK", "OBJECT", "CONTAINER", "IMAGE"}, [][]string{}
	if several {
		header = append([]string{"PACKAGE"}, header...)
	}
	for _, use := range d.Uses {
		row := []string{use.Task, use.Kind + "/" + use.Name, cmp.Or(use.Container, use.Field), use.Image}
		if several {
			row = append([]string{use.OperatorVersion}, row...)
		}
		rows = append(rows, row)
	}
	return terminal.Table(header, rows)
}
