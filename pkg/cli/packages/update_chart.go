package packages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
	"github.com/tandem-addons/tandem/pkg/text"
)

// UpdateChartOptions holds the arguments and flags of the command.
type UpdateChartOptions struct {
	*hubclient.Factory
	folder, task, operatorVersion string
	// newChart says which chart replaces the one in the package.
	newChart          chartArgument
	allowGone, dryRun bool
	loader            loader
	output            *terminal.Output
}

// NewCmdUpdateChart returns the command. If runF is set, it replaces runUpdateChart.
func NewCmdUpdateChart(f *hubclient.Factory, runF func(context.Context, *UpdateChartOptions) error) *cobra.Command {
	o := &UpdateChartOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runUpdateChart
	}
	cmd := &cobra.Command{
		Use:   "update-chart DIR [CHART]",
		Short: "Replace the Helm chart of a package by another version",
		Long: "Replace the Helm chart of the package in DIR by another version of it, and show what changes: values of the chart with their defaults,\n" +
			"objects, definitions, hooks, and the permissions that the plans need, all with the default parameters.\n\n" +
			"With --version, the chart is fetched from the repository that its task names. CHART is another place, as for from-chart: a folder, an\n" +
			"archive, or a chart in a repository or registry.\n\n" +
			"The archive is replaced, and chart, version, repository and digest of the task; everything else in the package, with comments, stays\n" +
			"as it is. It is an error if the package sets a value that the chart no longer has. No cluster is needed.",
		Example: "  kubectl addon package update-chart ./web --version 1.3.0 --dry-run\n" +
			"  kubectl addon package update-chart ./web --version 1.3.0 --operator-version 1.3.0\n" +
			"  kubectl addon package update-chart ./web ./web-1.3.0.tgz",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return terminal.Usagef(cmd, "expected DIR [CHART], got %s", text.Plural(len(args), "argument"))
			}
			if len(args) == 1 && o.newChart.reference.Version == "" {
				return terminal.Usagef(cmd, "set --version, or name the new CHART")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.folder = args[0]
			if len(args) == 2 {
				o.newChart.place = args[1]
			}
			return runF(cmd.Context(), o)
		},
	}
	o.newChart.addFlags(cmd)
	cmd.Flags().StringVar(&o.task, "task", "", "Name of the Helm task, if the package has several.")
	cmd.Flags().StringVar(&o.operatorVersion, "operator-version", "", "New operatorVersion of the package. By default, it stays as it is.")
	cmd.Flags().BoolVar(&o.allowGone, "allow-gone-values", false, "Replace the chart even if the package sets values that the new one does not have.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Show what changes, and write nothing.")
	o.output.AddFlag(cmd)
	return cmd
}

func runUpdateChart(ctx context.Context, o *UpdateChartOptions) error {
	before, err := o.loadAlone(ctx, o.folder)
	if err != nil {
		return err
	}
	u := &chartUpdate{before: before}
	if u.task, err = helmTask(before.Pkg, o.task); err != nil {
		return fmt.Errorf("package %s: %w", o.folder, err)
	}
	if err := o.find(ctx, u); err != nil {
		return err
	}
	if err := o.checkGone(u); err != nil {
		return err
	}
	if err := o.edit(u); err != nil {
		return err
	}
	if u.after, err = o.load(ctx, u); err != nil {
		return err
	}
	if err := printers.WriteEscaped(o.ErrOut, (&bundle.Bundle{Members: []*bundle.Member{u.after}}).ProblemsText()); err != nil {
		return err
	}
	data, err := u.data()
	if err != nil {
		return err
	}
	if !o.dryRun {
		if data.Written, err = u.write(o.folder); err != nil {
			return err
		}
	}
	return o.output.Print(o.Out, terminal.Shown{Text: data.text(o.folder), Data: data})
}

// chartUpdate is the replacement of the chart of a task.
type chartUpdate struct {
	before, after *bundle.Member
	// task is the index of the task.
	task int
	from found
	to   found
	// operator is the new operator.yaml, and archive the path of the archive in the package, which was called replaced; empty if it has none.
	operator          []byte
	archive, replaced string
}

// found is the archive of a chart, and what it is.
type found struct {
	archive   []byte
	described wrap.Chart
}

func (u *chartUpdate) spec() *kudo.HelmTaskSpec {
	return &u.before.Pkg.Version.Tasks[u.task].Spec.HelmTaskSpec
}

// loadAlone loads the package in a folder without those that it depends on, and prints its problems. It must be valid.
func (o *UpdateChartOptions) loadAlone(ctx context.Context, folder string) (*bundle.Member, error) {
	o.loader.Begin()
	from, err := o.loader.OpenSource(ctx, folder)
	if err != nil {
		return nil, err
	}
	if from.Archive != nil {
		return nil, fmt.Errorf("%s is not a folder: unpack it first", folder)
	}
	from.Name = o.folder
	m, err := o.loader.LoadAlone(ctx, from)
	if err != nil {
		return nil, err
	}
	b := &bundle.Bundle{Members: []*bundle.Member{m}}
	if err := b.CheckValid(o.folder); err != nil {
		return nil, errors.Join(printers.WriteEscaped(o.ErrOut, b.ProblemsText()), err)
	}
	return m, nil
}

// helmTask returns the index of the Helm task of that name, or of the only one.
func helmTask(p *pack.Package, name string) (int, error) {
	var at []int
	var names []string
	for i, task := range p.Version.Tasks {
		if task.Kind == kudo.TaskHelm {
			at, names = append(at, i), append(names, task.Name)
		}
	}
	switch i := slices.Index(names, name); {
	case i >= 0:
		return at[i], nil
	case name != "":
		return 0, fmt.Errorf("no task of kind Helm is called %s%s: %s", text.Quote(name), text.DidYouMean(name, names), text.ListOrNone(names))
	case len(at) == 0:
		return 0, errors.New("it has no task of kind Helm")
	case len(at) > 1:
		return 0, fmt.Errorf("it has several tasks of kind Helm: choose one with --task: %s", text.ListOrNone(names))
	}
	return at[0], nil
}

// find reads the old and the new chart.
func (o *UpdateChartOptions) find(ctx context.Context, u *chartUpdate) (err error) {
	if err := o.findOld(ctx, u); err != nil {
		return err
	}
	if repository := cmp.Or(u.spec().Repository, u.from.described.Source.Repository); o.newChart.place == "" {
		if repository == "" {
			return fmt.Errorf("task %s does not say which repository its chart is from: name the new chart as CHART",
				text.Quote(u.before.Pkg.Version.Tasks[u.task].Name))
		}
		o.newChart.place, o.newChart.reference.Repository = u.from.described.Name, repository
	}
	archive, from, err := o.newChart.read(ctx, &o.loader.Fetcher)
	if err != nil {
		return err
	}
	u.to.archive = archive
	if u.to.described, err = chart.Describe(ctx, archive); err != nil {
		return err
	}
	if from != nil {
		u.to.described.Source = wrap.Source{Repository: from.Repository, From: from.From, Digest: from.Digest}
	}
	return u.checkSame()
}

// findOld reads the chart of the package.
func (o *UpdateChartOptions) findOld(ctx context.Context, u *chartUpdate) error {
	name, archive, err := u.before.ChartOf(ctx, u.task, u.before.Pkg.Version.Tasks[u.task])
	if err != nil {
		return err
	}
	u.from.archive = archive
	if u.from.described, err = chart.Describe(ctx, archive); err != nil {
		return err
	}
	if ref, elsewhere := pack.ChartReference(u.spec()); elsewhere {
		u.from.described.Source = wrap.Source{Repository: ref.Repository}
		return nil
	}
	if info, err := os.Stat(filepath.Join(o.folder, filepath.FromSlash(name))); err == nil && info.IsDir() {
		return fmt.Errorf("chart %s is a folder in the package: replace its content, or the folder by an archive", text.Quote(name))
	}
	return nil
}

// checkSame returns an error unless both are versions of one chart.
func (u *chartUpdate) checkSame() error {
	from, to := u.from.described, u.to.described
	_, elsewhere := pack.ChartReference(u.spec())
	switch {
	case from.Name != to.Name:
		return fmt.Errorf("the new chart is called %s, and that of the package %s: create a package with 'kubectl addon package from-chart'",
			text.Quote(to.Name), text.Quote(from.Name))
	case elsewhere && to.Source.Repository == "":
		return errors.New("the package contains no chart, only its place: name the new one by --version, or by a place in a repository or registry")
	case elsewhere && !catalog.IsExact(to.Version):
		return fmt.Errorf("version %s of the new chart is not one such as 1.2.3", text.Quote(to.Version))
	}
	return nil
}

// checkGone returns an error if the package sets values that the new chart does not have.
func (o *UpdateChartOptions) checkGone(u *chartUpdate) error {
	task := u.before.Pkg.Version.Tasks[u.task]
	values, _, known := u.before.Pkg.ChartValues(task)
	if !known || o.allowGone {
		return nil
	}
	gone, err := wrap.Gone(u.from.described, u.to.described, values)
	if err != nil || len(gone) == 0 {
		return err
	}
	return fmt.Errorf("chart %s %s does not have values that templates/%s sets: %s: remove or rename them there, or set --allow-gone-values",
		u.to.described.Name, text.Escape(u.to.described.Version), task.Spec.ValuesFile, text.ListOrNone(gone))
}

// edit decides the new operator.yaml, and the path of the archive.
func (o *UpdateChartOptions) edit(u *chartUpdate) error {
	operator, err := os.ReadFile(filepath.Join(o.folder, "operator.yaml"))
	if err != nil {
		return fmt.Errorf("reading the package: %w", err)
	}
	var top []wrap.Field
	if o.operatorVersion != "" {
		top = append(top, wrap.Field{Name: "operatorVersion", Value: o.operatorVersion})
	}
	var fields []wrap.Field
	if _, elsewhere := pack.ChartReference(u.spec()); elsewhere {
		fields = u.fieldsElsewhere()
	} else {
		u.replaced = path.Clean(u.spec().Chart)
		u.archive = u.replaced
		if folder, base := path.Split(u.replaced); base == fmt.Sprintf("%s-%s.tgz", u.from.described.Name, u.from.described.Version) {
			u.archive = folder + fmt.Sprintf("%s-%s.tgz", u.to.described.Name, u.to.described.Version)
		}
		fields = append([]wrap.Field{{Name: "chart", Value: u.archive}}, u.sourceFields()...)
	}
	u.operator, err = wrap.Edit(operator, u.task, fields, top)
	return err
}

// fieldsElsewhere returns the fields of a task whose chart is not in the package.
func (u *chartUpdate) fieldsElsewhere() []wrap.Field {
	spec, to := u.spec(), u.to.described
	fields := []wrap.Field{{Name: "version", Value: to.Version}}
	if spec.Digest != "" {
		fields = append(fields, wrap.Field{Name: "digest", Value: to.Source.Digest})
	}
	switch {
	case spec.Repository == "":
		fields = append(fields, wrap.Field{Name: "chart", Value: to.Source.Repository + "/" + to.Name})
	case spec.Repository != to.Source.Repository:
		fields = append(fields, wrap.Field{Name: "repository", Value: to.Source.Repository})
	}
	return fields
}

// sourceFields returns the fields that say where an archive in the package is from.
func (u *chartUpdate) sourceFields() []wrap.Field {
	spec, to := u.spec(), u.to.described
	repository := cmp.Or(to.Source.Repository, spec.Repository)
	if repository == "" || !catalog.IsExact(to.Version) {
		return nil
	}
	fields := []wrap.Field{{Name: "version", Value: to.Version}, {Name: "repository", Value: repository}}
	if to.Source.Repository != "" || spec.Digest != "" {
		fields = append(fields, wrap.Field{Name: "digest", Value: content.DigestOf(u.to.archive)})
	}
	return fields
}

// load loads the package with the new chart, from a copy of its files.
func (o *UpdateChartOptions) load(ctx context.Context, u *chartUpdate) (*bundle.Member, error) {
	copied, err := os.MkdirTemp("", "kubectl-addon-")
	if err != nil {
		return nil, fmt.Errorf("copying the package: %w", err)
	}
	defer os.RemoveAll(copied)
	files, done, err := u.before.Open()
	if err != nil {
		return nil, err
	}
	defer done()
	names, err := u.before.OwnFiles(files)
	if err != nil {
		return nil, err
	}
	if err := copyFiles(copied, files, names); err != nil {
		return nil, err
	}
	if _, err := u.write(copied); err != nil {
		return nil, err
	}
	return o.loadAlone(ctx, copied)
}

// write writes what is new to a folder of the package, and returns what it did.
func (u *chartUpdate) write(folder string) ([]string, error) {
	var did []string
	place := func(name string) string { return filepath.Join(folder, filepath.FromSlash(name)) }
	if u.archive != "" {
		if err := ReplaceFile(place(u.archive), u.to.archive); err != nil {
			return nil, err
		}
		did = append(did, u.archive+" written")
	}
	if err := ReplaceFile(place("operator.yaml"), u.operator); err != nil {
		return nil, err
	}
	did = append(did, "operator.yaml changed")
	shared := slices.ContainsFunc(u.before.Pkg.Version.Tasks, func(t kudo.Task) bool {
		return t.Name != u.before.Pkg.Version.Tasks[u.task].Name && path.Clean(t.Spec.Chart) == u.replaced
	})
	if u.replaced != "" && u.replaced != u.archive && !shared {
		if err := os.Remove(place(u.replaced)); err != nil {
			return nil, fmt.Errorf("deleting the old archive: %w", err)
		}
		did = append(did, u.replaced+" deleted")
	}
	return did, nil
}

// updateData is the output of the command.
type updateData struct {
	Chart    string        `json:"chart"`
	From     string        `json:"from"`
	To       string        `json:"to"`
	Digest   string        `json:"digest"`
	Changes  []wrap.Change `json:"changes"`
	Warnings []string      `json:"warnings,omitempty"`
	// Written lists the files that were changed; none in a dry run.
	Written []string `json:"written,omitempty"`
	// Notes lists what is left to do.
	Notes []string `json:"notes,omitempty"`
}

// data compares the package before and after.
func (u *chartUpdate) data() (updateData, error) {
	from, to := u.from.described, u.to.described
	data := updateData{Chart: from.Name, From: from.Version, To: to.Version, Digest: content.DigestOf(u.to.archive), Changes: []wrap.Change{}}
	values, err := wrap.CompareValues(from, to)
	if err != nil {
		return data, err
	}
	name := u.before.Pkg.Version.Tasks[u.task].Name
	old, next := u.before.Rendered[name].Renderings, u.after.Rendered[name].Renderings
	data.Changes = append(data.Changes, values...)
	if len(old) > 0 && len(next) > 0 {
		changes, warnings := wrap.CompareRenderings(old[0], next[0])
		data.Changes, data.Warnings = append(data.Changes, changes...), warnings
	} else {
		data.Warnings = []string{"the chart does not render with the default parameters: objects, definitions and hooks are not compared"}
	}
	data.Changes = append(data.Changes, wrap.Compare(wrap.InPermissions, permissionLines(u.before), permissionLines(u.after))...)
	version := &u.after.Pkg.Version
	if version.Version == u.before.Pkg.Version.Version {
		data.Notes = append(data.Notes, fmt.Sprintf("operatorVersion is still %s: raise it if this version was pushed", version.Version))
	}
	if _, appVersion := wrap.Versions(to); appVersion != "" && version.AppVersion != "" && version.AppVersion != appVersion {
		data.Notes = append(data.Notes, fmt.Sprintf("appVersion is still %s, and that of the chart %s", version.AppVersion, appVersion))
	}
	return data, nil
}

// permissionLines returns the permissions that the plans of a package need, by what they are for.
func permissionLines(m *bundle.Member) map[string]string {
	lines := map[string]string{}
	needed, _ := m.Pkg.Rights()
	if needed == nil {
		return lines
	}
	rows := rulesText("install namespace", needed.Rules)
	for _, n := range needed.Namespaces {
		rows = append(rows, rulesText("namespace "+n.Name, n.Rules)...)
	}
	for _, row := range append(rows, rulesText("whole cluster", needed.ClusterRules)...) {
		name := fmt.Sprintf("%s in %s", row[1], row[0])
		if row[2] != "any" {
			name += ", " + row[2]
		}
		lines[name] = strings.TrimPrefix(lines[name]+", "+row[3], ", ")
	}
	return lines
}

func (d updateData) text(folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "chart %s %s -> %s (%s)\n", d.Chart, d.From, d.To, d.Digest)
	var section wrap.Section
	const shown = 60
	count := 0
	for _, c := range d.Changes {
		if c.Section != section {
			section, count = c.Section, 0
			fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(string(section)))
		}
		if count++; count <= shown {
			b.WriteString(changeText(c))
		} else if count == shown+1 {
			b.WriteString("  … more with -o json\n")
		}
	}
	if len(d.Changes) == 0 {
		b.WriteString("\nNeither values nor objects, definitions, hooks or permissions change.\n")
	}
	b.WriteString("\n")
	for _, warning := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	for _, did := range d.Written {
		fmt.Fprintf(&b, "%s\n", filepath.Join(folder, did))
	}
	if len(d.Written) == 0 {
		b.WriteString("Nothing was written (dry run).\n")
	}
	for _, note := range d.Notes {
		fmt.Fprintf(&b, "%s\n", note)
	}
	return b.String()
}

func changeText(c wrap.Change) string {
	const limit = 80
	from, to := text.Truncate(c.From, limit), text.Truncate(c.To, limit)
	line := fmt.Sprintf("  %s %s", changeMarks[pack.ChangeKind(c.Kind)], c.Name)
	switch {
	case from != "" && to != "":
		return line + fmt.Sprintf(": %s -> %s\n", from, to)
	case from != "" || to != "":
		return line + ": " + from + to + "\n"
	}
	return line + "\n"
}
