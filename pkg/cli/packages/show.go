package packages

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// packageData is the output of `package show`.
type packageData struct {
	OperatorVersion string `json:"operatorVersion"`
	// Place is the location of the package.
	Place      string `json:"source"`
	Operator   string `json:"operator"`
	Version    string `json:"version"`
	AppVersion string `json:"appVersion,omitempty"`
	kudo.OperatorSpec
	Parameters []kudo.Parameter     `json:"parameters"`
	Plans      map[string]kudo.Plan `json:"plans"`
	Tasks      []kudo.Task          `json:"tasks"`
	// Permissions are those that the package declares; nil if it declares none.
	Permissions *kudo.Permissions `json:"permissions,omitempty"`
	// Health are the rules for the health of custom kinds.
	Health []kudo.HealthRule `json:"health,omitempty"`
	// Templates lists the names of the templates.
	Templates []string `json:"templates"`
	// Content lists the files that are too large for the OperatorVersion.
	Content      []kudo.ContentFile `json:"content,omitempty"`
	Dependencies []packageNode      `json:"dependencies"`
	// Problem states why the dependencies are unknown.
	Problem string `json:"problem,omitempty"`
}

func (v packageView) data() packageData {
	spec := v.version.Spec
	data := packageData{
		OperatorVersion: v.version.Name, Place: v.place,
		Operator: spec.Operator.Name, Version: spec.Version, AppVersion: spec.AppVersion, OperatorSpec: v.operator,
		Parameters: append([]kudo.Parameter{}, spec.Parameters...), Plans: spec.Plans, Tasks: append([]kudo.Task{}, spec.Tasks...),
		Permissions:  spec.Permissions,
		Health:       spec.Health,
		Templates:    templatesOf(&spec),
		Content:      spec.Content,
		Dependencies: append([]packageNode{}, v.tree.Children...),
	}
	if v.problem != nil {
		data.Problem = v.problem.Error()
	}
	return data
}

// templatesOf returns the names of all templates, also of those that the content stores.
func templatesOf(spec *kudo.OperatorVersionSpec) []string {
	names, resources := append([]string{}, slices.Collect(maps.Keys(spec.Templates))...), content.Resources(spec)
	for _, file := range spec.Content {
		if resources[file.File] {
			names = append(names, file.File)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (v packageView) names() []string {
	return []string{text.ObjectName(kudo.GroupVersion.Group, "OperatorVersion", v.version.Name)}
}

// showSection is a section of the output of `package show` that also has its own command.
type showSection struct {
	name, of string
	text     func(view packageView, wide bool) string
	data     func(packageData) any
}

var showSections = []showSection{
	{"parameters", "parameters of a package, their defaults and the plans that changes trigger", parametersText,
		func(d packageData) any { return map[string]any{"parameters": d.Parameters} }},
	{"plans", "plans of a package, with their phases and steps", func(view packageView, _ bool) string { return plansText(view) },
		func(d packageData) any { return map[string]any{"plans": d.Plans} }},
	{"tasks", "tasks of a package, and the plans that run them", func(view packageView, _ bool) string { return tasksText(view) },
		func(d packageData) any { return map[string]any{"tasks": d.Tasks} }},
	{"permissions", "permissions that a package declares for its plans", func(view packageView, _ bool) string { return permissionsText(view) },
		func(d packageData) any { return map[string]any{"permissions": d.Permissions} }},
	{"dependencies", "child Instances of a package", func(view packageView, _ bool) string { return dependenciesText(view) },
		func(d packageData) any { return map[string]any{"dependencies": d.Dependencies, "problem": d.Problem} }},
}

// ShowOptions holds the arguments and flags of the command.
type ShowOptions struct {
	*hubclient.Factory
	name    string
	section showSection
	finder  *Finder
	output  *terminal.Output
}

// NewCmdShow returns the command, with a subcommand for each section. If runF is set, it replaces runShow.
func NewCmdShow(f *hubclient.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	if runF == nil {
		runF = runShow
	}
	cmd := newCmdShowing(f, runF, showSection{
		text: packageText, data: func(d packageData) any { return d },
	})
	cmd.Use, cmd.Short = "show PACKAGE", "Show the parameters, plans, tasks, permissions and dependencies of a package"
	cmd.Long = "Show the details of a package before it is installed. Use 'show PART PACKAGE' to show a single part.\n\n" + naming
	cmd.Example = "  kubectl addon package show kafka\n  kubectl addon package show ./kafka -o wide"
	for _, section := range showSections {
		part := newCmdShowing(f, runF, section)
		part.Use, part.Short = section.name+" PACKAGE", "Show the "+section.of
		part.Long = part.Short + ".\n\n" + naming
		part.Example = "  kubectl addon package show " + section.name + " ./kafka"
		cmd.AddCommand(part)
	}
	return cmd
}

// newCmdShowing returns a command that shows one section of a package.
func newCmdShowing(f *hubclient.Factory, runF func(context.Context, *ShowOptions) error, section showSection) *cobra.Command {
	o := &ShowOptions{Factory: f, section: section, finder: &Finder{Factory: f}, output: terminal.NewOutput(terminal.FormatWide, terminal.FormatName)}
	cmd := &cobra.Command{
		Args: terminal.Exactly("PACKAGE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.output.AddFlag(cmd)
	o.finder.addFlag(cmd)
	return cmd
}

func runShow(ctx context.Context, o *ShowOptions) error {
	view, err := o.finder.find(ctx, o.name)
	if err != nil {
		return err
	}
	return o.output.Print(o.Out, terminal.Shown{
		Text: o.section.text(view, o.output.Format == terminal.FormatWide), Data: o.section.data(view.data()), Names: view.names(),
	})
}

// addFlag adds the flag that selects the repository.
func (f *Finder) addFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.repository, "repository", "",
		"URL or folder of a repository of KUDO packages, in which packages are looked up instead of on the hub.")
	f.flags.AddTo(cmd)
}

// packageText returns all sections.
func packageText(view packageView, wide bool) string {
	var b strings.Builder
	spec := view.version.Spec
	for _, field := range []struct{ name, value string }{
		{"Operator", spec.Operator.Name},
		{"OperatorVersion", view.version.Name},
		{"Version", spec.Version},
		{"App version", spec.AppVersion},
		{"For dependencies", spec.DependencyVersion},
		{"Requires", constraintsText(spec.Dependencies)},
		{"Description", text.JoinMessage(view.operator.Description)},
		{"Home page", view.operator.URL},
		{"Maintainers", maintainersText(view.operator.Maintainers)},
		{"Source", view.place},
	} {
		if field.value != "" {
			terminal.WriteField(&b, field.name, field.value)
		}
	}
	for _, section := range showSections {
		fmt.Fprintf(&b, "\n%s\n%s", strings.ToUpper(section.name), section.text(view, wide))
	}
	if len(spec.Health) > 0 {
		fmt.Fprintf(&b, "\nHEALTH\n%s", healthText(spec.Health, wide))
	}
	return b.String()
}

// constraintsText lists the constraints on the versions of other add-ons.
func constraintsText(constraints []kudo.DependencyConstraint) string {
	var all []string
	for _, c := range constraints {
		all = append(all, c.Name+" "+c.Version)
	}
	return strings.Join(all, ", ")
}

func maintainersText(maintainers []kudo.Maintainer) string {
	var names []string
	for _, m := range maintainers {
		if m.Email != "" {
			m.Name += " <" + m.Email + ">"
		}
		names = append(names, strings.TrimSpace(m.Name))
	}
	return strings.Join(names, ", ")
}
