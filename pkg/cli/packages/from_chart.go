package packages

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// FromChartOptions holds the arguments and flags of the command.
type FromChartOptions struct {
	*hubclient.Factory
	chart, folder, name string
	values              []string
	// reference has the repository, version and digest of the flags.
	reference catalog.Reference
	fetcher   chartFetcher
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
			"description are those of the chart. Without a name, the parameter is called like the path: IMAGE_TAG for image.tag.\n\n" +
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
	cmd.Flags().StringVar(&o.reference.Repository, "repo", "", "URL of the repository or registry (oci://) of the chart, if CHART is only its name.")
	cmd.Flags().StringVar(&o.reference.Version, "version", "", "Version of the chart, or a constraint such as ~1.2. Defaults to the highest release.")
	cmd.Flags().StringVar(&o.reference.Digest, "digest", "",
		"SHA-256 that the archive of the chart, or its manifest in a registry, must have: sha256:HEX.")
	return cmd
}

func runFromChart(ctx context.Context, o *FromChartOptions) error {
	choices, err := wrap.ParseChoices(o.values)
	if err != nil {
		return err
	}
	archive, from, err := o.readChart(ctx)
	if err != nil {
		return err
	}
	files, folder, err := o.files(archive, from, choices)
	if err != nil {
		return err
	}
	created, err := writePackage(folder, files)
	if err != nil {
		return err
	}
	shown := ""
	if from != nil {
		shown = sourceText(fetchedChart{Chart: from.Name, Version: from.Version, From: from.From, Digest: from.Digest})
	}
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
func (o *FromChartOptions) files(archive []byte, from *registry.Chart, choices []wrap.Choice) (files map[string]string, folder string, err error) {
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
	if from != nil {
		described.Source = wrap.Source{Repository: from.Repository, From: from.From, Digest: from.Digest}
	}
	packed := fmt.Sprintf("%s-%s.tgz", described.Name, described.Version)
	if files, err = wrap.Files(name, packed, described, choices); err != nil {
		return nil, "", err
	}
	files[packed] = string(archive)
	return files, folder, nil
}

// readChart returns the archive of a chart: in a folder or a file, or else in a repository or a registry, with where it is from.
func (o *FromChartOptions) readChart(ctx context.Context) (archive []byte, from *registry.Chart, err error) {
	if info, err := os.Stat(o.chart); o.reference.Repository == "" && err == nil {
		if o.reference.Version != "" || o.reference.Digest != "" {
			return nil, nil, errLocal
		}
		archive, err := o.fetcher.read(ctx, o.chart, info)
		return archive, nil, err
	}
	if o.reference.Repository != "" {
		if err := catalog.CheckRepository(o.reference.Repository); err != nil {
			return nil, nil, fmt.Errorf("--repo: %w", err)
		}
	}
	ref, err := catalog.ParseReference(o.chart, o.reference.Repository)
	if err != nil {
		return nil, nil, err
	}
	if err := o.refine(&ref); err != nil {
		return nil, nil, err
	}
	if from, err = o.fetcher.fetch(ctx, ref); err != nil {
		return nil, nil, err
	}
	return from.Archive, from, nil
}

// refine adds the version and the digest of the flags to a reference.
func (o *FromChartOptions) refine(ref *catalog.Reference) error {
	if o.reference.Version != "" && ref.Version != "" && ref.Version != o.reference.Version {
		return fmt.Errorf("chart %s has a version, and --version says %s: give one of them", text.Quote(o.chart), text.Quote(o.reference.Version))
	}
	if o.reference.Digest != "" && !catalog.IsDigest(o.reference.Digest) {
		return fmt.Errorf("--digest %s is not sha256: and 64 hexadecimal digits", text.Quote(o.reference.Digest))
	}
	ref.Version, ref.Digest = cmp.Or(o.reference.Version, ref.Version), o.reference.Digest
	return nil
}
