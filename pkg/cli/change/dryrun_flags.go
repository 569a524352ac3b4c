package change

import (
	"cmp"
	"errors"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/core/preview"
)

// dryRunFlags holds --dry-run and its output format.
type dryRunFlags struct {
	dryRun bool
	output *terminal.Output
}

func (f *dryRunFlags) addDryRun(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "Only print the plans that would run and their changes, without writing anything.")
	f.output = terminal.NewOutput(terminal.FormatWide)
	f.output.AddFlag(cmd)
}

// checkDryRun rejects an output format without --dry-run.
func (f *dryRunFlags) checkDryRun(cmd *cobra.Command) error {
	if cmd.Flags().Changed("output") && !f.dryRun {
		return terminal.Usagef(cmd, "--output requires --dry-run")
	}
	return nil
}

// refusalFlags holds the flags that make a change although a plan would fail.
type refusalFlags struct {
	force      bool
	validation validationFlag
}

func (f *refusalFlags) addRefusal(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.force, "force", false, "Make the change even if one of its plans would fail.")
	cmd.Flags().Var(&f.validation, "validate", "How to treat unknown fields and invalid values of Kubernetes' own kinds: strict (or true) "+
		"refuses the change, warn prints them, ignore (or false) does not check.")
	cmd.Flags().Lookup("validate").NoOptDefVal = "strict"
	utilruntime.Must(cmd.RegisterFlagCompletionFunc("validate",
		cobra.FixedCompletions([]string{"strict", "warn", "ignore"}, cobra.ShellCompDirectiveNoFileComp)))
}

// refuse sets the validation of the change, and returns an error if one of its plans would fail, unless the change is forced or only shown.
func (f *refusalFlags) refuse(c *change.Change, isShown bool) error {
	c.Validation = preview.Validation(f.validation)
	if f.force || isShown {
		return nil
	}
	return c.Validate()
}

// validationFlag is the value of --validate, with the names of kubectl.
type validationFlag preview.Validation

// validations are the values of --validate.
var validations = map[string]preview.Validation{
	"strict": "", "true": "", "warn": preview.ValidationWarn, "ignore": preview.ValidationIgnore, "false": preview.ValidationIgnore,
}

// String returns the name of the validation.
func (v *validationFlag) String() string { return cmp.Or(string(*v), "strict") }

// Type returns the placeholder of the flag's value in help texts.
func (v *validationFlag) Type() string { return "string" }

// Set sets the flag's value.
func (v *validationFlag) Set(given string) error {
	known, isKnown := validations[given]
	if !isKnown {
		return errors.New("must be one of strict, warn, ignore")
	}
	*v = validationFlag(known)
	return nil
}

// refuseNamespace rejects --namespace if the namespace of the changed object is fixed.
func refuseNamespace(cmd *cobra.Command) error {
	if cmd.Flags().Changed("namespace") {
		return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects the managed cluster and its namespace on the hub")
	}
	return nil
}
