package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/releases"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/record"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// FromReleaseOptions holds the arguments and flags of the command.
type FromReleaseOptions struct {
	*hubclient.Factory
	release, folder, name string
	revision              int
	// chart is the chart of --chart; its place is empty without that flag.
	chart             chartArgument
	values, sensitive []string
	allowSensitive    bool
	fetcher           bundle.ChartFetcher
	output            *terminal.Output
}

// NewCmdFromRelease returns the command. If runF is set, it replaces runFromRelease.
func NewCmdFromRelease(f *hubclient.Factory, runF func(context.Context, *FromReleaseOptions) error) *cobra.Command {
	o := &FromReleaseOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runFromRelease
	}
	cmd := &cobra.Command{
		Use:   "from-release RELEASE [DIR]",
		Short: "Create a package that deploys what a release of Helm runs",
		Long: "Create a package that deploys what a release of Helm runs on a cluster: its chart, with its values and its name. It is written to DIR,\n" +
			"or to a folder with the name of the package, as by from-chart. Existing files are never changed.\n\n" +
			"Helm's record of the release is read, in a Secret or a ConfigMap of --namespace, on the cluster of --context. Nothing on the cluster\n" +
			"changes. The record contains the chart without its subcharts: name a chart that has some with --chart, in any form that from-chart\n" +
			"accepts. It must have the name and the version of that of the release.\n\n" +
			"A value becomes a parameter with --param PATH=NAME; its default is the value of the release. Other values of the release are written to\n" +
			"templates/values.yaml. Values that look like secrets are refused: make each a sensitive parameter with --sensitive PATH=NAME, which the\n" +
			"package does not contain, or write them all with --allow-sensitive-values.\n\n" +
			"The new package is verified and rendered, and compared with what the release runs. An Instance does not take over the objects of a\n" +
			"release by itself: the output says how to hand them over.",
		Example: "  kubectl addon package from-release web --namespace shops --context cluster1 --param replicaCount=REPLICAS\n" +
			"  kubectl addon package from-release web ./packages/web -n shops --sensitive auth.password=PASSWORD\n" +
			"  kubectl addon package from-release web -n shops --revision 3 --chart oci://registry.example.com/charts/web",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "expected RELEASE [DIR], got %s", text.Plural(len(args), "argument"))
			}
			return o.check(cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.release = args[0]
			if len(args) == 2 {
				o.folder = args[1]
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "Name of the package. Defaults to the name of the chart.")
	cmd.Flags().IntVar(&o.revision, "revision", 0, "Revision of the release. Defaults to the latest one that is deployed. With it, permission to get its record is enough.")
	cmd.Flags().StringArrayVar(&o.values, "param", nil,
		"Value that becomes a parameter: PATH=NAME or PATH, such as image.tag=TAG. A dot in a key has a backslash before it. Can be repeated.")
	cmd.Flags().StringArrayVar(&o.sensitive, "sensitive", nil,
		"Value that becomes a sensitive parameter, as with --param; the package does not contain it. Can be repeated.")
	cmd.Flags().BoolVar(&o.allowSensitive, "allow-sensitive-values", false, "Write values that look like secrets into the package.")
	cmd.Flags().StringVar(&o.chart.place, "chart", "", "Chart of the release: a folder, an archive, or a chart in a repository or registry.")
	cmd.Flags().StringVar(&o.chart.reference.Repository, "repo", "", "URL of the repository or registry (oci://) of the chart, if --chart is only its name.")
	cmd.Flags().StringVar(&o.chart.reference.Digest, "digest", "",
		"SHA-256 that the archive of the chart, or its manifest in a registry, must have: sha256:HEX.")
	o.output.AddFlag(cmd)
	return cmd
}

// check checks the flags.
func (o *FromReleaseOptions) check(cmd *cobra.Command) error {
	switch {
	case o.revision < 0:
		return terminal.Usagef(cmd, "invalid argument \"%d\" for \"--revision\" flag: must be greater than 0", o.revision)
	case o.chart.place == "" && (o.chart.reference.Repository != "" || o.chart.reference.Digest != ""):
		return terminal.Usagef(cmd, "--repo and --digest are for --chart: set it, too")
	}
	return nil
}

func runFromRelease(ctx context.Context, o *FromReleaseOptions) error {
	choices, err := o.choices()
	if err != nil {
		return err
	}
	cluster, err := releases.Connect(o.Factory)
	if err != nil {
		return err
	}
	recorded, err := cluster.Find(ctx, o.release, o.revision)
	if err != nil {
		return err
	}
	p, err := o.wrap(ctx, recorded, choices)
	if err != nil {
		return err
	}
	created, err := writePackage(p.folder, p.files)
	if err != nil {
		return err
	}
	b, err := o.printCreated(ctx, p, created)
	if err != nil {
		return err
	}
	compared, err := p.compare(ctx, cluster, b)
	if err != nil {
		return err
	}
	return o.output.Print(o.Out, terminal.Shown{Text: compared.text() + p.nextText(), Data: p.data(created, b, compared)})
}

// choices returns the values that become parameters.
func (o *FromReleaseOptions) choices() ([]wrap.Choice, error) {
	choices, err := wrap.ParseChoices(append(o.values[:len(o.values):len(o.values)], o.sensitive...))
	for i := range choices {
		choices[i].Sensitive = i >= len(o.values)
	}
	return choices, err
}

// releasePackage is a package around the chart of a release.
type releasePackage struct {
	release *record.Record
	archive []byte
	// from is where the chart was fetched from; nil if it was restored, or on disk.
	from         *registry.Chart
	folder, name string
	files        map[string]string
	// secrets has the values of sensitive parameters, and suspects are the values in the package that look like secrets.
	secrets  map[string]string
	suspects []wrap.Path
	notes    []string
}

// wrap creates a package around the chart of a release.
func (o *FromReleaseOptions) wrap(ctx context.Context, recorded *record.Record, choices []wrap.Choice) (*releasePackage, error) {
	p := &releasePackage{release: recorded}
	if err := o.findChart(ctx, p); err != nil {
		return nil, err
	}
	described, err := chart.Describe(ctx, p.archive)
	if err != nil {
		return nil, err
	}
	if described.Name != recorded.Chart.Name || !catalog.IsSame(described.Version, recorded.Chart.Version) {
		return nil, fmt.Errorf("--chart %s is chart %s %s, but release %s has chart %s %s: name this one",
			text.Quote(o.chart.place), text.Quote(described.Name), text.Escape(described.Version), text.Quote(recorded.Release),
			text.Quote(recorded.Chart.Name), text.Escape(recorded.Chart.Version))
	}
	if p.from != nil {
		described.Source = wrap.Source{Repository: p.from.Repository, From: p.from.From, Digest: p.from.Digest}
	}
	if p.name, p.folder, err = placeOf(o.name, o.folder, described.Name); err != nil {
		return nil, err
	}
	from := wrap.Release{Name: recorded.Release, Namespace: recorded.Namespace, Revision: recorded.Number, Values: recorded.Values}
	packed := fmt.Sprintf("%s-%s.tgz", described.Name, described.Version)
	if p.files, p.secrets, err = wrap.ReleaseFiles(p.name, packed, described, choices, from); err != nil {
		return nil, err
	}
	p.files[packed] = string(p.archive)
	if p.suspects = from.Suspects(choices); len(p.suspects) > 0 && !o.allowSensitive {
		return nil, suspectsError(recorded.Release, p.suspects)
	}
	return p, nil
}

// suspectsError returns the error for values that look like secrets. It does not contain them.
func suspectsError(release string, suspects []wrap.Path) error {
	const shown = 20
	var flags []string
	for _, path := range suspects {
		flags = append(flags, "--sensitive "+text.ShellWord(path.String()))
	}
	return fmt.Errorf("%s of release %s may be secret, and everyone who reads the package could read them: keep each out of it with %s; "+
		"or write them with --allow-sensitive-values", text.Plural(len(suspects), "value"), text.Quote(release), text.List(flags, shown))
}

// findChart finds the archive of the chart: that of --chart, or the one in the record.
func (o *FromReleaseOptions) findChart(ctx context.Context, p *releasePackage) (err error) {
	recorded := p.release
	if o.chart.place != "" {
		if ref, err := catalog.ParseReference(o.chart.place, o.chart.reference.Repository); err == nil && ref.Version == "" && !o.chart.isLocal() {
			o.chart.reference.Version = recorded.Chart.Version
		}
		p.archive, p.from, err = o.chart.read(ctx, &o.fetcher)
		return err
	}
	if missing := recorded.Missing(); missing != "" {
		return fmt.Errorf("chart %s %s of release %s has %s: name the chart with --chart: a folder, an archive, or a chart in a repository or registry",
			text.Quote(recorded.Chart.Name), text.Escape(recorded.Chart.Version), text.Quote(recorded.Release), missing)
	}
	if recorded.Disables() {
		p.notes = append(p.notes, "the chart has dependencies, which the release disables, and its record does not contain: with --chart, the package could enable them")
	}
	p.archive, err = chart.Restore(&recorded.Chart)
	return err
}

// printCreated prints the release and the files of the package, and its problems and permissions. It returns the verified package.
func (o *FromReleaseOptions) printCreated(ctx context.Context, p *releasePackage, created []string) (*bundle.Bundle, error) {
	r := p.release
	shown := fmt.Sprintf("release %s, revision %d (%s), in namespace %s: chart %s %s\n", r.Release, r.Number, r.Status, r.Namespace, r.Chart.Name, r.Chart.Version)
	if p.from != nil {
		shown += bundle.SourceText(bundle.FetchedChart{Chart: p.from.Name, Version: p.from.Version, From: p.from.From, Digest: p.from.Digest})
	}
	warnings := ""
	for _, note := range p.notes {
		warnings += "warning: " + note + "\n"
	}
	if len(p.suspects) > 0 {
		var paths []string
		for _, path := range p.suspects {
			paths = append(paths, path.String())
		}
		warnings += "warning: the package contains values that may be secret: " + text.ListOrNone(paths) + "\n"
	}
	if err := printers.WriteEscaped(o.ErrOut, warnings); err != nil {
		return nil, err
	}
	f := *o.Factory
	if !o.output.IsText() {
		f.Out = io.Discard // it is part of the data
	}
	return printPackage(ctx, &f, p.folder, shown, created)
}

// compare compares what the package renders with what the release runs. A difference is no error: a chart may render random values.
func (p *releasePackage) compare(ctx context.Context, cluster *releases.Cluster, b *bundle.Bundle) (comparison, error) {
	changes, objects, err := p.differences(ctx, cluster, b)
	if ctx.Err() != nil {
		return comparison{}, ctx.Err()
	}
	compared := comparison{Objects: objects, Changes: changes}
	if err != nil {
		compared.NotCompared = err.Error()
	}
	return compared, nil
}

// differences returns how what the package renders differs from what the release runs, and how many objects the release has, with hooks.
func (p *releasePackage) differences(ctx context.Context, cluster *releases.Cluster, b *bundle.Bundle) ([]wrap.Change, int, error) {
	before, err := chart.Recorded(p.release)
	if err != nil {
		return nil, 0, fmt.Errorf("the record is invalid: %w", err)
	}
	pkg := b.Root().Pkg
	values, known := pkg.ChartValuesWith(pkg.Version.Tasks[0], p.secrets)
	if !known {
		return nil, 0, errors.New("its values do not render")
	}
	capabilities, err := cluster.Capabilities()
	if err != nil {
		return nil, 0, err
	}
	renderer, err := chart.NewRenderer()
	if err != nil {
		return nil, 0, err
	}
	of := chart.Release{Name: p.release.Release, Namespace: p.release.Namespace, Revision: p.release.Number, Upgrade: p.release.Number > 1}
	after, err := renderer.Render(ctx, chart.Input{Archive: p.archive, Values: []byte(values), Release: of, Capabilities: capabilities, AssumeDefinitions: true}, cluster.Lookup)
	switch {
	case err != nil && len(p.secrets) > 0: // the message may contain a sensitive value
		return nil, 0, errors.New("the chart does not render with the values of the sensitive parameters")
	case err != nil:
		return nil, 0, err
	}
	after.Definitions = nil // records do not contain them
	changes, _ := wrap.CompareRenderings(before, *after)
	return changes, len(before.Objects) + len(before.Hooks), nil
}

// fromReleaseData is the output of `package from-release`, for programs.
type fromReleaseData struct {
	Release   string `json:"release"`
	Namespace string `json:"namespace"`
	Revision  int    `json:"revision"`
	// Status is the status that Helm has recorded.
	Status string `json:"status"`
	// Chart is the chart of the release.
	Chart   releaseChart `json:"chart"`
	Package string       `json:"package"`
	Folder  string       `json:"folder"`
	// Files lists the files that were created.
	Files []string `json:"files"`
	// Suspects lists the paths of values in the package that look like secrets.
	Suspects []string   `json:"suspects,omitempty"`
	Notes    []string   `json:"notes,omitempty"`
	Rights   rightsData `json:"rights"`
	Compared comparison `json:"compared"`
	// Commands lists what is left to do: on the managed cluster, then on the hub.
	Commands releaseCommands `json:"commands"`
}

// releaseChart is a chart, and where it was fetched from, unless it was restored from the record or is on disk.
type releaseChart struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository,omitempty"`
	From       string `json:"from,omitempty"`
	Digest     string `json:"digest,omitempty"`
}

// comparison is how what a package renders differs from what a release runs.
type comparison struct {
	// NotCompared is the reason if the two could not be compared.
	NotCompared string        `json:"notCompared,omitempty"`
	Objects     int           `json:"objects"`
	Changes     []wrap.Change `json:"changes,omitempty"`
}

// text returns the comparison for people.
func (c comparison) text() string {
	switch {
	case c.NotCompared != "":
		return fmt.Sprintf("What the package renders was not compared with the release: %s\n", c.NotCompared)
	case len(c.Changes) == 0:
		return fmt.Sprintf("The package renders exactly what the release runs: %s.\n", text.Plural(c.Objects, "object"))
	}
	const shown = 30
	lines := make([]string, 0, len(c.Changes))
	for _, change := range c.Changes {
		lines = append(lines, strings.TrimSuffix(changeText(change), "\n"))
	}
	return "The package does not render exactly what the release runs, because of random values, look-ups, a post-renderer, or another\n" +
		"chart (- the release only, + the package only, ~ different):\n" + strings.Join(text.Limit(lines, shown, "more"), "\n") + "\n"
}

// data returns the output for programs.
func (p *releasePackage) data(created []string, b *bundle.Bundle, compared comparison) fromReleaseData {
	r := p.release
	data := fromReleaseData{
		Release: r.Release, Namespace: r.Namespace, Revision: r.Number, Status: r.Status, Package: p.name, Folder: p.folder, Files: created, Notes: p.notes,
		Chart: releaseChart{Name: r.Chart.Name, Version: r.Chart.Version}, Rights: rightsOf(b), Compared: compared, Commands: p.commands(" "),
	}
	if p.from != nil {
		data.Chart.Repository, data.Chart.From, data.Chart.Digest = p.from.Repository, p.from.From, p.from.Digest
	}
	for _, path := range p.suspects {
		data.Suspects = append(data.Suspects, path.String())
	}
	return data
}

// releaseCommands are the commands that hand the objects of a release over to an Instance.
type releaseCommands struct {
	OnCluster []string `json:"onCluster"`
	OnHub     []string `json:"onHub"`
}

// commands returns the commands that are left to run, with a separator before the arguments that continue a long one.
func (p *releasePackage) commands(next string) releaseCommands {
	r := p.release
	records := "secret"
	if r.Kind == "ConfigMap" {
		records = "configmap"
	}
	release, namespace := text.ShellWord(r.Release), text.ShellWord(r.Namespace)
	given := ""
	for _, name := range slices.Sorted(maps.Keys(p.secrets)) {
		given += fmt.Sprintf("%s-p %s=secret:SECRET/KEY", next, name)
	}
	return releaseCommands{
		OnCluster: []string{
			fmt.Sprintf("helm get manifest %s -n %s | kubectl annotate -n %s --overwrite -f -%skudo.dev/released-by=%s/%s meta.helm.sh/release-name- "+
				"meta.helm.sh/release-namespace-", release, namespace, namespace, next, namespace, p.name),
			fmt.Sprintf("kubectl delete %s -n %s -l owner=helm,name=%s", records, namespace, release),
		},
		OnHub: []string{
			"kubectl addon package push " + text.ShellWord(p.folder),
			fmt.Sprintf("kubectl addon install %s --cluster CLUSTER --namespace %s%s", p.name, namespace, given),
		},
	}
}

// nextText says what is left to do.
func (p *releasePackage) nextText() string {
	commands := p.commands(" \\\n    ")
	return fmt.Sprintf("\nTo hand the running objects over to Instance %s, without deleting them, run on the cluster:\n\n  %s\n\nThen, on the hub:\n\n  %s\n",
		p.name, strings.Join(commands.OnCluster, "\n  "), strings.Join(commands.OnHub, "\n  "))
}
