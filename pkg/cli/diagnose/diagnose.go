package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// Options holds the arguments and flags of the command.
type Options struct {
	*hubclient.Factory
	hubclient.Selection
	managed hubclient.ManagedFlags
	file    string
	timeout time.Duration
}

// NewCmdDiagnose returns the command. If runF is set, it replaces runDiagnose.
func NewCmdDiagnose(f *hubclient.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	if runF == nil {
		runF = runDiagnose
	}
	cmd := &cobra.Command{
		Use:   "diagnose",
		Short: "Collect diagnostic data for a bug report, without secrets",
		Long: "Write an archive of Tandem's objects on the hub, with Events, logs, metrics, versions, and explanations of the status of\n" +
			"add-ons. Start with summary.txt in it, which also lists what could not be read and what was omitted. Details are collected\n" +
			"for the selected clusters in the worst state.\n\n" +
			"With --cluster-context or --cluster-kubeconfig, the managed cluster is read, too. --namespace is the namespace of\n" +
			"addon-manager and addon-agent.\n\n" +
			"Secrets are never read. Values of ConfigMaps and parameters, and all other possible secrets, are replaced by\n" +
			terminal.Redacted + ". The command changes nothing. Review the archive before sharing it.",
		Example: "  kubectl addon diagnose\n" +
			"  kubectl addon diagnose --cluster cluster1 --cluster-context cluster1 -o cluster1.tar.gz",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	o.AddFlags(cmd, "are diagnosed")
	o.managed.AddFlags(cmd)
	cmd.Flags().StringVarP(&o.file, "output", "o", "",
		"File to write, or - for standard output. The default is tandem-diagnosis-TIME.tar.gz in the working directory.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Minute, "Time limit for reading. Data read by then is written.")
	return cmd
}

func (o *Options) check(cmd *cobra.Command) error {
	switch {
	case o.managed.IsSet() && len(o.Names) != 1:
		return terminal.Usagef(cmd, "--cluster-context and --cluster-kubeconfig require --cluster with the name of that one managed cluster")
	case o.timeout <= 0:
		return terminal.Usagef(cmd, "invalid argument %q for \"--timeout\" flag: must be greater than 0", o.timeout)
	default:
		return o.Selection.Check(cmd)
	}
}

func runDiagnose(ctx context.Context, o *Options) error {
	return hubclient.Advise(diagnose(ctx, o), "")
}

// diagnose collects as much as possible and writes it. It fails only if not even a summary can be written.
func diagnose(ctx context.Context, o *Options) error {
	now := time.Now()
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not read within %s", o.timeout))
	defer cancel()
	h, err := o.Hub()
	if err != nil {
		return err
	}
	d := newDiagnosis(o.Version, o.ManagerNamespace())
	if err := d.hub(limited, h, o.Factory, o.Selection); err != nil {
		return err
	}
	if o.managed.IsSet() {
		config, err := o.managed.Config(o.Flags)
		if err != nil {
			return err
		}
		d.gatherManaged(limited, o.Names[0], config)
	}
	if ctx.Err() != nil { // interrupted
		return context.Cause(ctx)
	}
	file := cmp.Or(o.file, "tandem-diagnosis-"+now.UTC().Format("20060102T150405Z")+".tar.gz")
	if file == "-" {
		return d.write(terminal.Raw(o.Out), now)
	}
	if err := writeNew(file, func(out io.Writer) error { return d.write(out, now) }); err != nil {
		return err
	}
	for _, gap := range d.gaps() {
		fmt.Fprintf(o.ErrOut, "Warning: %s\n", gap)
	}
	_, err = fmt.Fprintf(o.Out, "%s written: start with summary.txt in it, and review the archive before sharing it\n", file)
	return err
}

// writeNew writes a new file that only the user can read. A file that could not be written completely is removed.
func writeNew(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("creating the archive: %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}
