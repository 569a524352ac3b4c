package stacks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/packages"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/stack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// CreateOptions holds the arguments and flags of the command.
type CreateOptions struct {
	*hubclient.Factory
	name, pkg    string
	dependencies []addonv1alpha1.AddonDependency
	dryRun       bool
	output       *terminal.Output
}

// NewCmdCreate returns the command. If runF is set, it replaces runCreate.
func NewCmdCreate(f *hubclient.Factory, runF func(context.Context, *CreateOptions) error) *cobra.Command {
	o := &CreateOptions{Factory: f, output: terminal.NewOutput()}
	if runF == nil {
		runF = runCreate
	}
	var requires, optional, messages []string
	cmd := &cobra.Command{
		Use:   "create NAME --package PACKAGE[@VERSION]",
		Short: "Create an add-on that runs a package",
		Long: "Create the ClusterManagementAddOn of an add-on that runs a package on the hub. The package is the name of an operator, for its highest\n" +
			"version or that after @, or the name of an OperatorVersion, in namespace " + kudo.DefaultPackagesNamespace + " or the one given with -n.\n\n" +
			"The dependencies are checked first: an add-on that is required has to exist, and no dependency may close a cycle. On a hub with OCM's\n" +
			"resource definitions they are declared in an annotation.\n\n" +
			"An add-on that exists is not changed. It is an error if it runs another package, or has other dependencies. The new add-on runs on no\n" +
			"cluster until it is enabled. With --dry-run or -o the object is printed, and nothing is written.",
		Example: "  kubectl addon create zookeeper --package zookeeper\n" +
			"  kubectl addon create kafka --package kafka@1.0.0 --requires zookeeper --optional monitoring --dry-run",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if err := o.check(cmd, requires, optional, messages); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&o.pkg, "package", "", "Package that the add-on runs: NAME or NAME@VERSION.")
	cmd.Flags().StringSliceVar(&requires, "requires", nil, "Comma-separated names of add-ons without which the add-on does not work, each alone, with alternatives, or with a constraint on its version: kafka, 'kafka|redpanda', 'kafka@>=3.8 <5'.")
	cmd.Flags().StringSliceVar(&optional, "optional", nil, "Comma-separated names of add-ons without which it works with reduced function, as in --requires.")
	cmd.Flags().StringArrayVar(&messages, "message", nil,
		"What is lost without a dependency, as ADDON=TEXT, or as TEXT if there is only one. Can be repeated.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print the object, without writing it.")
	o.output.AddFlag(cmd)
	return cmd
}

// check validates the arguments and flags.
func (o *CreateOptions) check(cmd *cobra.Command, requires, optional, messages []string) error {
	if len(validation.IsDNS1123Subdomain(o.name)) > 0 {
		return terminal.Usagef(cmd, "add-on name %s is not valid: names consist of lowercase letters, digits, '-' and '.'", text.Quote(o.name))
	}
	if o.pkg == "" {
		return terminal.Usagef(cmd, "--package is required: the name of a package on the hub ('kubectl addon package list')")
	}
	if packages.IsPlace(o.pkg) {
		return terminal.Usagef(cmd, "--package %s is not a name: push the package first ('kubectl addon package push'), and use the name of its operator",
			text.Quote(o.pkg))
	}
	o.dryRun = o.dryRun || cmd.Flags().Changed("output")
	for _, name := range requires {
		o.dependencies = append(o.dependencies, dependencyOn(name, addonv1alpha1.DependencyTypeRequired))
	}
	for _, name := range optional {
		o.dependencies = append(o.dependencies, dependencyOn(name, addonv1alpha1.DependencyTypeOptional))
	}
	for _, message := range messages {
		if err := o.setMessage(cmd, message); err != nil {
			return err
		}
	}
	return nil
}

// dependencyOn returns a dependency that is given as NAME[|ALTERNATIVE...][@CONSTRAINT].
func dependencyOn(given string, of addonv1alpha1.DependencyType) addonv1alpha1.AddonDependency {
	names, constraint, _ := strings.Cut(given, "@")
	candidates := strings.Split(names, "|")
	need := addonv1alpha1.AddonDependency{Name: candidates[0], Type: of, Version: constraint}
	if len(candidates) > 1 {
		need.Alternatives = candidates[1:]
	}
	return need
}

// setMessage sets the message of a dependency.
func (o *CreateOptions) setMessage(cmd *cobra.Command, message string) error {
	name, rest, _ := strings.Cut(message, "=")
	at := slices.IndexFunc(o.dependencies, func(d addonv1alpha1.AddonDependency) bool { return d.Name == name })
	if at < 0 && len(o.dependencies) == 1 {
		at, rest = 0, message
	}
	if at < 0 {
		return terminal.Usagef(cmd, "--message %s does not begin with the name of a dependency, such as kafka=TEXT: --requires and --optional name %s",
			text.Quote(message), text.ListOrNone(dependencyNames(o.dependencies)))
	}
	o.dependencies[at].Message = rest
	return nil
}

func dependencyNames(dependencies []addonv1alpha1.AddonDependency) []string {
	names := make([]string, 0, len(dependencies))
	for _, need := range dependencies {
		names = append(names, need.Name)
	}
	return names
}

func runCreate(ctx context.Context, o *CreateOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	return hubclient.Advise(create(ctx, h, o), o.namespace())
}

// namespace returns the namespace of packages.
func (o *CreateOptions) namespace() string {
	return cmp.Or(*o.Flags.Namespace, kudo.DefaultPackagesNamespace)
}

// create checks the add-on and creates it, or prints it.
func create(ctx context.Context, h hubclient.Hub, o *CreateOptions) error {
	versions, err := read.StoredVersions(ctx, h, o.namespace())
	if err != nil {
		return err
	}
	version, err := stack.FindVersion(o.pkg, versions)
	if err != nil {
		return err
	}
	existing, err := definitions(ctx, h)
	if err != nil {
		return err
	}
	addOn := stack.AddOn{Name: o.name, Version: types.NamespacedName{Namespace: version.Namespace, Name: version.Name}, Dependencies: o.dependencies}
	definition := addOn.Definition()
	if err := checkAlone(h, definition, existing); err != nil {
		return err
	}
	if current := existing[o.name]; current != nil && !o.dryRun {
		return o.keep(current, definition)
	}
	created, err := createDefinition(ctx, h, definition, o.dryRun)
	if err != nil {
		return err
	}
	if o.dryRun {
		return printObjects(o.Out, o.output, created)
	}
	return printers.WriteEscaped(o.Out, text.ObjectName(addonv1alpha1.GroupVersion.Group, "ClusterManagementAddOn", o.name)+" created\n")
}

// checkAlone checks the dependencies of one add-on.
func checkAlone(h hubclient.Hub, definition *addonv1alpha1.ClusterManagementAddOn, existing stack.Definitions) error {
	refused, warnings := stack.CheckDependencies([]*addonv1alpha1.ClusterManagementAddOn{definition}, existing)
	for _, warning := range warnings {
		warn(h, fmt.Sprintf("spec.dependencies[%d]: %s", warning.Index, warning.Message))
	}
	problems := make([]error, 0, len(refused))
	for _, found := range refused {
		problems = append(problems, fmt.Errorf("add-on %q: %s", definition.Name, found.Message))
	}
	return errors.Join(problems...)
}

// keep returns an error unless an existing add-on has what would be created.
func (o *CreateOptions) keep(current, wanted *addonv1alpha1.ClusterManagementAddOn) error {
	declared, err := dependency.DeclaredBy(current)
	if err != nil {
		return err
	}
	var other []string
	if !equality.Semantic.DeepEqual(current.Spec.SupportedConfigs, wanted.Spec.SupportedConfigs) {
		other = append(other, "spec.supportedConfigs")
	}
	if !equality.Semantic.DeepEqual(declared, wanted.Spec.Dependencies) {
		other = append(other, "spec.dependencies")
	}
	if len(other) > 0 {
		return fmt.Errorf("ClusterManagementAddOn %q already exists with other %s: change it with 'kubectl edit clustermanagementaddon %[1]s', "+
			"or see what would be created with --dry-run", o.name, strings.Join(other, " and "))
	}
	return printers.WriteEscaped(o.Out, text.ObjectName(addonv1alpha1.GroupVersion.Group, "ClusterManagementAddOn", o.name)+" unchanged\n")
}

// createDefinition creates a ClusterManagementAddOn, unless shown is set, and returns it as the hub accepts it.
func createDefinition(
	ctx context.Context, h hubclient.Hub, definition *addonv1alpha1.ClusterManagementAddOn, shown bool,
) (client.Object, error) {
	options := []client.CreateOption{client.FieldOwner(hubclient.FieldManager), client.FieldValidation("Strict")}
	if shown {
		options = append(options, client.DryRunAll)
	}
	write := func(definition *addonv1alpha1.ClusterManagementAddOn) (client.Object, error) {
		object, err := stack.Manifest(definition)
		if err != nil {
			return nil, err
		}
		return object, h.Create(ctx, object.DeepCopy(), options...)
	}
	object, err := write(definition)
	if isUndeclared(err) {
		if definition, err = stack.Annotated(definition); err != nil {
			return nil, err
		}
		object, err = write(definition)
	}
	if err != nil && !(shown && isAccepted(err)) {
		return nil, fmt.Errorf("creating ClusterManagementAddOn %q: %w", definition.Name, err)
	}
	return object, nil
}
