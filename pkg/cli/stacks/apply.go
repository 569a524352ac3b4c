package stacks

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// ApplyOptions holds the flags of the command.
type ApplyOptions struct {
	applyFlags
	// annotate declares dependencies in annotations of printed objects.
	annotate bool
	output   *terminal.Output
}

// NewCmdApply returns the command. If runF is set, it replaces runApply.
func NewCmdApply(f *hubclient.Factory, runF func(context.Context, *ApplyOptions) error) *cobra.Command {
	o := &ApplyOptions{applyFlags: applyFlags{Factory: f}, output: terminal.NewOutput()}
	if runF == nil {
		runF = runApply
	}
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create and change the add-ons of a stack file",
		Long: "Create and change on the hub what a stack file lists: packages and charts, the add-ons that run them, their dependencies and\n" +
			"parameters, and the clusters or Placements that they are installed on. Paths in the file are relative to it.\n\n" +
			"The whole file is checked first, and nothing is written unless it is valid and the hub accepts it: unknown fields, parameters and\n" +
			"values, wrong types, violated schemas of charts, missing add-ons and cycles are reported with line and column. Applying the same file\n" +
			"again writes nothing.\n\n" +
			"With --prune, what an earlier apply of the stack has made and the file no longer lists is deleted; its add-ons are removed from their\n" +
			"clusters with all their objects. The command lists it and prompts for confirmation. Without a terminal, --yes is required. Packages\n" +
			"that are in use stay, and so do definitions of add-ons until no cluster has them: repeat the command.\n\n" +
			"With -o the objects are printed, for a repository that another program applies, and nothing is written. The hub is only read for\n" +
			"packages and required add-ons that are not in the file.",
		Example: "  kubectl addon apply -f stack.yaml --dry-run\n" +
			"  kubectl addon apply -f stack.yaml --prune --yes\n" +
			"  kubectl addon apply -f stack.yaml -o yaml",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "Stack file; - is the standard input.")
	cmd.Flags().BoolVar(&o.prune, "prune", false, "Delete what an earlier apply of the stack has made and the file no longer lists.")
	cmd.Flags().BoolVarP(&o.yes, "yes", "y", false, "Do not prompt for confirmation.")
	cmd.Flags().BoolVar(&o.force, "force-conflicts", false, "Take over fields that another writer has set.")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "Only print what would be written and deleted.")
	cmd.Flags().BoolVar(&o.annotate, "annotate-dependencies", false,
		"With -o, declare dependencies in annotations, for a hub with OCM's resource definitions. Otherwise the hub decides it.")
	o.output.AddFlag(cmd)
	return cmd
}

// check validates the flags.
func (o *ApplyOptions) check(cmd *cobra.Command) error {
	o.printed = cmd.Flags().Changed("output")
	switch {
	case o.file == "":
		return terminal.Usagef(cmd, "--filename is required: a stack file, or - for the standard input")
	case o.printed && (o.prune || o.dryRun):
		return terminal.Usagef(cmd, "--output writes nothing: it excludes --prune and --dry-run")
	case o.annotate && !o.printed:
		return terminal.Usagef(cmd, "--annotate-dependencies requires --output: the hub decides where dependencies are declared")
	}
	return nil
}

func runApply(ctx context.Context, o *ApplyOptions) error {
	read, err := o.readFile()
	if err != nil {
		return err
	}
	if o.printed && !read.needsHub() {
		return o.print(ctx, &resolver{applyFlags: &o.applyFlags, stackFile: read})
	}
	h, err := o.Hub()
	if err != nil {
		return err
	}
	r := &resolver{applyFlags: &o.applyFlags, stackFile: read, hub: &h}
	if o.printed {
		err = o.print(ctx, r)
	} else {
		err = apply(ctx, h, r)
	}
	return hubclient.Advise(err, o.namespace())
}

// print prints the objects of the stack.
func (o *ApplyOptions) print(ctx context.Context, r *resolver) error {
	found, err := r.resolve(ctx)
	if err != nil {
		return err
	}
	if o.annotate {
		if err := found.annotate(); err != nil {
			return err
		}
	}
	var all []client.Object
	for _, p := range found.packages {
		all = append(all, p.Objects(o.namespace())...)
	}
	manifests, err := found.objects.Manifests()
	if err != nil {
		return err
	}
	for _, object := range manifests {
		all = append(all, object)
	}
	return printObjects(o.Out, o.output, all...)
}

// apply writes the stack, and deletes what it no longer has.
func apply(ctx context.Context, h hubclient.Hub, r *resolver) error {
	found, err := r.resolve(ctx)
	if err != nil {
		return err
	}
	w := &writer{applyFlags: r.applyFlags, hub: h, stack: r.stack.Name, resolved: found}
	if err := w.check(ctx); err != nil {
		return err
	}
	pruned, err := w.pruned(ctx)
	if err != nil {
		return err
	}
	if err := w.agree(pruned); err != nil {
		return err
	}
	if err := w.write(ctx); err != nil {
		return err
	}
	return errors.Join(w.delete(ctx, pruned), w.summarize(pruned))
}
