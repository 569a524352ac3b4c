package packages

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// FromChartOptions holds the arguments and flags of the command.
type FromChartOptions struct {
	*hubclient.Factory
	chart        chartArgument
	folder, name string
	values       []string
	fetcher      bundle.ChartFetcher
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
		Long: "Create a package that deploys a Helm chart. It is written to DIR, or to a folder with the name of the package: operator.yaml with\n" +
			"one Helm task, and the archive of the chart. Existing files are never changed.\n\n" +
			"CHART is a folder or an archive; oci://HOST/PATH/NAME; REPOSITORY/NAME, with a repository that Helm knows; https://HOST/PATH/NAME, the\n" +
			"URL of a repository and the name of a chart; the URL of an archive; or a name, with --repo. The credentials are those of Helm and\n" +
			"docker. " + registry.MirrorsVariable + " names mirrors: FROM=TO, two URLs, separated by spaces. The digest of the archive is written to operator.yaml.\n\n" +
			"A value of the chart that differs between clusters becomes a parameter with --param PATH=NAME; its type, default and\n" +
			"description are those of the chart, or of a subchart. Without a name, the parameter is called like the path: IMAGE_TAG for image.tag.\n\n" +
			"The new package is verified, and the permissions that its plans need are printed; they are not written to operator.yaml. No\n" +
			"cluster is needed. Dependencies that a folder lacks are fetched in the versions of its Chart.lock.",
		Example: "  kubectl addon package from-chart ./web-1.2.3.tgz --param replicaCount=REPLICAS --param image.tag\n" +
			"  kubectl addon package from-chart ./charts/web ./packages/shop --name shop\n" +
			"  kubectl addon package from-chart oci://registry.example.com/charts/web --version 1.2.3\n" +
			"  kubectl addon package from-chart web --repo https://charts.example.com --version '~1.2'",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "expected CHART [DIR], got %s", text.Plural(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.chart.place = args[0]
			if len(args) == 2 {
				o.folder = args[1]
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "Name of the package. Defaults to the name of the chart.")
	cmd.Flags().StringArrayVar(&o.values, "param", nil,
		"Value of the chart that becomes a parameter: PATH=NAME or PATH, such as image.tag=TAG. A dot in a key has a backslash before it. Can be repeated.")
	o.chart.addFlags(cmd)
	return cmd
}

func runFromChart(ctx context.Context, o *FromChartOptions) error {
	choices, err := wrap.ParseChoices(o.values)
	if err != nil {
		return err
	}
	archive, from, err := o.chart.read(ctx, &o.fetcher)
	if err != nil {
		return err
	}
	files, folder, err := o.files(ctx, archive, from, choices)
	if err != nil {
		return err
	}
	created, err := writePackage(folder, files)
	if err != nil {
		return err
	}
	shown := ""
	if from != nil {
		shown = bundle.SourceText(bundle.FetchedChart{Chart: from.Name, Version: from.Version, From: from.From, Digest: from.Digest})
	}
	if _, err := printPackage(ctx, o.Factory, folder, shown, created); err != nil {
		return err
	}
	return printers.WriteEscaped(o.Out, fmt.Sprintf("  kubectl addon package push %s\n", text.Word(folder)))
}

// files returns the files of the package by path, and its folder.
func (o *FromChartOptions) files(ctx context.Context, archive []byte, from *registry.Chart, choices []wrap.Choice) (map[string]string, string, error) {
	described, err := chart.Describe(ctx, archive)
	if err != nil {
		return nil, "", err
	}
	name, folder, err := placeOf(o.name, o.folder, described.Name)
	if err != nil {
		return nil, "", err
	}
	if from != nil {
		described.Source = wrap.Source{Repository: from.Repository, From: from.From, Digest: from.Digest}
	}
	packed := fmt.Sprintf("%s-%s.tgz", described.Name, described.Version)
	files, err := wrap.Files(name, packed, described, choices)
	if err != nil {
		return nil, "", err
	}
	files[packed] = string(archive)
	return files, folder, nil
}

// placeOf returns the name of a package around a chart, and its folder.
func placeOf(name, folder, chart string) (string, string, error) {
	name = cmp.Or(name, chart)
	if err := pack.CheckName(name); err != nil {
		return "", "", fmt.Errorf("%w: name another one with --name", err)
	}
	return name, cmp.Or(folder, name), nil
}

// printPackage prints what a new package is made of, its files, problems and permissions, and returns it.
func printPackage(ctx context.Context, f *hubclient.Factory, folder, from string, created []string) (*bundle.Bundle, error) {
	for _, file := range created {
		from += fmt.Sprintf("%s created\n", file)
	}
	if err := printers.WriteEscaped(f.Out, from+"\n"); err != nil {
		return nil, err
	}
	b, err := verifiedBundle(ctx, &loader{}, f.ErrOut, folder)
	if err != nil {
		return nil, err
	}
	needed, err := rightsOf(b).text()
	if err != nil {
		return nil, err
	}
	return b, printers.WriteEscaped(f.Out, needed+"\n")
}
