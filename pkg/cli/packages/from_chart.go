package packages

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// FromChartOptions holds the arguments and flags of the command.
type FromChartOptions struct {
	*hubclient.Factory
	chart, folder, name string
	values              []string
}

// NewCmdFromChart returns the command. If runF is set, it replaces runFromChart.
func NewCmdFromChart(f *hubclient.Factory, runF func(context.Context, *FromChartOptions) error) *cobra.Command {
	o := &FromChartOptions{Factory: f}
	if runF == nil {
		runF = runFromChart
	}
	cmd := &cobra.Command{
		Use:   "from-chart CHART [DIR]",
		Short: "Create a package that deploys a Helm chart",
		Long: "Create a package that deploys the Helm chart in folder or archive CHART. It is written to DIR, or to a folder with the name of the\n" +
			"package: operator.yaml with one Helm task, and the archive of the chart. Existing files are never changed.\n\n" +
			"A value of the chart that differs between clusters becomes a parameter with --param PATH=NAME; its type, default and\n" +
			"description are those of the chart. Without a name, the parameter is called like the path: IMAGE_TAG for image.tag.\n\n" +
			"The new package is verified, and the permissions that its plans need are printed; they are not written to operator.yaml. No\n" +
			"cluster is needed.",
		Example: "  kubectl addon package from-chart ./web-1.2.3.tgz --param replicaCount=REPLICAS --param image.tag\n" +
			"  kubectl addon package from-chart ./charts/web ./packages/shop --name shop",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "expected CHART [DIR], got %s", text.Plural(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.chart = args[0]
			if len(args) == 2 {
				o.folder = args[1]
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "Name of the package. Defaults to the name of the chart.")
	cmd.Flags().StringArrayVar(&o.values, "param", nil,
		"Value of the chart that becomes a parameter: PATH=NAME or PATH, such as image.tag=TAG. A dot in a key has a backslash before it. Can be repeated.")
	return cmd
}

func runFromChart(ctx context.Context, o *FromChartOptions) error {
	choices, err := wrap.ParseChoices(o.values)
	if err != nil {
		return err
	}
	archive, err := readChart(o.chart)
	if err != nil {
		return err
	}
	files, folder, err := o.files(archive, choices)
	if err != nil {
		return err
	}
	created, err := writePackage(folder, files)
	if err != nil {
		return err
	}
	shown := ""
	for _, file := range created {
		shown += fmt.Sprintf("%s created\n", file)
	}
	if err := printers.WriteEscaped(o.Out, shown+"\n"); err != nil {
		return err
	}
	b, err := verifiedBundle(ctx, &loader{}, o.ErrOut, folder)
	if err != nil {
		return err
	}
	needed, err := b.rights().text()
	if err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, needed+fmt.Sprintf("\n  kubectl addon package push %s\n", text.Word(folder)))
}

// files returns the files of the package by path, and its folder.
func (o *FromChartOptions) files(archive []byte, choices []wrap.Choice) (files map[string]string, folder string, err error) {
	described, err := chart.Describe(archive)
	if err != nil {
		return nil, "", err
	}
	name := o.name
	if name == "" {
		name = described.Name
	}
	if err := pack.CheckName(name); err != nil {
		return nil, "", fmt.Errorf("%w: name another one with --name", err)
	}
	if folder = o.folder; folder == "" {
		folder = name
	}
	packed := fmt.Sprintf("%s-%s.tgz", described.Name, described.Version)
	if files, err = wrap.Files(name, packed, described, choices); err != nil {
		return nil, "", err
	}
	files[packed] = string(archive)
	return files, folder, nil
}

// readChart returns the archive of a chart in a folder or a file.
func readChart(place string) ([]byte, error) {
	info, err := os.Stat(place)
	if errors.Is(err, fs.ErrNotExist) && isElsewhere(place) {
		return nil, fmt.Errorf("%s is no folder and no archive: get the archive of the chart with 'helm pull'", text.Quote(place))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	if info.IsDir() {
		return chart.Pack(os.DirFS(place))
	}
	if info.Size() > chart.MaxArchiveBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d for the archive of a chart", place, info.Size(), chart.MaxArchiveBytes)
	}
	archive, err := os.ReadFile(place)
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	return archive, nil
}

// isElsewhere reports whether a name may be that of a chart in a repository or a registry.
func isElsewhere(place string) bool {
	at, err := url.Parse(place)
	return err == nil && at.Scheme != "" || len(strings.Split(filepath.ToSlash(place), "/")) == 2
}
