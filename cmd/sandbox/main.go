// Command sandbox runs a hub and managed clusters on this machine, with Tandem and, optionally, OCM.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/pkg/sandbox/story"
)

// version is set by the linker (see the Makefile).
var version = "devel"

// defaultHome is the sandbox's home directory unless --home is set.
const defaultHome = ".sandbox"

// Exit codes other than 0.
const (
	exitFailure = 1
	// exitInterrupted is the exit code that a shell reports for a program terminated by SIGINT.
	exitInterrupted = 130
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends this process immediately
	f := &flags{}
	err := newCommand(f).ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "interrupted: %s\n", f.interruptionText())
		return exitInterrupted
	default:
		fmt.Fprintln(os.Stderr, "Error:", err)
		return exitFailure
	}
}

// flags holds the values of the flags of all commands.
type flags struct {
	home          string
	assets        string
	clusters      int
	withoutTandem bool
	ocm           bool
	deliverAgents bool
	images        string
	namespaces    string
	forPID        int
}

// newCommand returns the root command. It parses flags into f.
func newCommand(f *flags) *cobra.Command {
	root := &cobra.Command{
		Use:           "sandbox",
		Short:         "Run a hub and managed clusters with Tandem on this machine",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; run `%s --help` for a list of commands", args[0], os.Args[0])
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.PersistentFlags().StringVar(&f.home, "home", defaultHome, "Folder of the sandbox's data, logs and kubeconfigs.")
	root.AddCommand(newUp(f), newSupervise(f), newDown(f), newStatus(f), newEnv(f), newDemo(f), newStop(f), newStart(f))
	return root
}

// call returns the command line that runs another command of this program on the same home, as the user would type it.
func (f *flags) call(command string) string {
	if f.home != defaultHome {
		command += " --home " + f.home
	}
	return os.Args[0] + " " + command
}

// interruptionText returns a message that states what keeps running after an interruption, and how to stop it.
func (f *flags) interruptionText() string {
	state, err := sandbox.Read(f.home)
	switch {
	case err != nil:
		return err.Error()
	case state.Phase == sandbox.Stopped || state.Phase == sandbox.Failed:
		return fmt.Sprintf("no sandbox is running in %s", f.home)
	default:
		return fmt.Sprintf("the sandbox in %s is still running (process %d); run `%s` to stop it", f.home, state.PID, f.call("down"))
	}
}

// bind adds the flags that select what to run.
func (f *flags) bind(command *cobra.Command) {
	command.Flags().IntVar(&f.clusters, "clusters", 2, "Number of managed clusters.")
	command.Flags().StringVar(&f.assets, "assets", "",
		"Folder of the control plane programs. Defaults to TANDEM_ASSETS, or KUBEBUILDER_ASSETS if it contains all of them, "+
			"or the cache of \"make controlplane\".")
	command.Flags().BoolVar(&f.withoutTandem, "without-tandem", false, "Run the clusters without addon-manager and agents.")
	command.Flags().BoolVar(&f.ocm, "ocm", false,
		"Run OCM too, with its own programs from TANDEM_OCM_ASSETS, or from the cache of \"make ocm\".")
	command.Flags().BoolVar(&f.deliverAgents, "deliver-agents", false,
		"With --ocm, let addon-manager deliver the agents as an OCM add-on instead of starting them.")
	command.Flags().StringVar(&f.images, "images", "",
		"Folder with one folder for each image, such as hack/ocm/addons/build.sh creates. Run their programs in pods of these images.")
	command.Flags().StringVar(&f.namespaces, "allow-namespaces", "",
		"Comma-separated reserved namespaces, such as kube-system, in which packages may be installed, and to which they may apply objects.")
	command.Flags().IntVar(&f.forPID, "for-pid", 0, "Stop when the process with this id ends.")
}

func (f *flags) options(progress func(string)) (sandbox.Options, error) {
	options := sandbox.Options{
		Home: f.home, Clusters: f.clusters, Assets: f.assets, DeliverAgents: f.deliverAgents, Images: f.images,
		AllowedNamespaces: f.namespaces, Progress: progress, DownCommand: f.call("down"),
	}
	var err error
	if f.ocm {
		if options.OCM, err = sandbox.FindOCM(os.Getenv); err != nil {
			return options, err
		}
	}
	if !f.withoutTandem {
		options.Tandem, err = programsFolder()
	}
	return options, err
}

// supervise returns the arguments of the process that runs the sandbox.
func (f *flags) supervise() []string {
	return []string{
		"supervise", "--home=" + f.home, "--assets=" + f.assets, "--clusters=" + strconv.Itoa(f.clusters),
		"--without-tandem=" + strconv.FormatBool(f.withoutTandem), "--ocm=" + strconv.FormatBool(f.ocm),
		"--deliver-agents=" + strconv.FormatBool(f.deliverAgents), "--images=" + f.images, "--allow-namespaces=" + f.namespaces,
		"--for-pid=" + strconv.Itoa(f.forPID),
	}
}

// programsFolder returns the folder of this executable, which also holds Tandem's other programs.
func programsFolder() (string, error) {
	executable, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the folder of Tandem's programs: %w", err)
	}
	return filepath.Dir(executable), nil
}

func newUp(f *flags) *cobra.Command {
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox unless it is running, and wait until it is ready",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := f.up(command.Context(), command.OutOrStdout()); err != nil {
				return err
			}
			f.whatNext(command.OutOrStdout())
			return nil
		},
	}
	f.bind(command)
	return command
}

// up starts the sandbox, or attaches to a running one, and prints its progress.
func (f *flags) up(ctx context.Context, out io.Writer) (sandbox.State, error) {
	started := time.Now()
	options, err := f.options(func(line string) {
		fmt.Fprintf(out, "%4.0fs  %s\n", time.Since(started).Seconds(), line)
	})
	if err != nil {
		return sandbox.State{}, err
	}
	state, found, err := sandbox.Up(ctx, options, f.supervise())
	if err != nil {
		return state, err
	}
	if found {
		fmt.Fprintf(out, "The sandbox is already running (process %d).\n", state.PID)
	} else {
		fmt.Fprintf(out, "The sandbox is ready after %.0f s: a hub and %s.\n",
			time.Since(started).Seconds(), sandbox.ManagedClusters(f.clusters))
	}
	return state, nil
}

func (f *flags) whatNext(out io.Writer) {
	fmt.Fprintf(out, "To use it:   eval \"$(%s)\"; kubectl config get-contexts\n"+
		"To stop it:  %s\n", f.call("env"), f.call("down"))
}

func newDemo(f *flags) *cobra.Command {
	var check bool
	var packages string
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run a demo of Tandem on the sandbox; fail if an act does not have the expected result",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			out := command.OutOrStdout()
			programs, err := programsFolder()
			if err != nil {
				return err
			}
			options := story.Options{Plugin: filepath.Join(programs, "kubectl-addon"), Packages: packages, Check: check, Out: out}
			if err := options.Validate(); err != nil {
				return err
			}
			state, err := f.up(command.Context(), out)
			if err != nil {
				return err
			}
			options.UseSandbox(state)
			if err := story.Run(command.Context(), options); err != nil {
				return err
			}
			fmt.Fprintln(out, "\nThe sandbox is still running.")
			f.whatNext(out)
			return nil
		},
	}
	f.bind(command)
	command.Flags().BoolVar(&check, "check", false, "Also check the owners of conditions, and that nothing is written at rest.")
	command.Flags().StringVar(&packages, "packages", "examples/packages", "Folder with the packages zookeeper, kafka and streaming.")
	return command
}

func newSupervise(f *flags) *cobra.Command {
	command := &cobra.Command{
		Use:    "supervise",
		Short:  "Run the sandbox in this process until it is stopped",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			options, err := f.options(nil)
			if err != nil {
				return err
			}
			return sandbox.Supervise(command.Context(), options, f.forPID)
		},
	}
	f.bind(command)
	return command
}

func newDown(f *flags) *cobra.Command {
	var keep bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox and delete its data",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			stopped, err := sandbox.Down(command.Context(), f.home, keep)
			if err != nil {
				return err
			}
			said, left := "No sandbox is running in", "no data remains"
			if stopped {
				said = "Stopped the sandbox in"
			}
			if keep {
				left = "its data is kept"
			}
			fmt.Fprintf(command.OutOrStdout(), "%s %s; %s.\n", said, f.home, left)
			return nil
		},
	}
	command.Flags().BoolVar(&keep, "keep", false, "Keep the data for the next start.")
	return command
}

func newStop(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:     "stop CLUSTER PROGRAM",
		Short:   "Stop a program of the sandbox until `start` or the next `up`",
		Example: "  sandbox stop hub addon-manager",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := sandbox.StopProgram(command.Context(), f.home, args[0], args[1]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Stopped %s of %s.\nTo start it again:  %s\n", args[1], args[0],
				f.call("start "+args[0]+" "+args[1]))
			return nil
		},
	}
}

func newStart(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:     "start CLUSTER PROGRAM",
		Short:   "Start a program of the sandbox that was stopped with `stop`",
		Example: "  sandbox start hub addon-manager",
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if err := sandbox.StartProgram(command.Context(), f.home, args[0], args[1]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "Started %s of %s.\n", args[1], args[0])
			return nil
		},
	}
}

func newStatus(f *flags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the sandbox's programs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			state, err := sandbox.Read(f.home)
			if err != nil {
				return err
			}
			switch output {
			case "":
				return sandbox.WriteTable(command.OutOrStdout(), state, time.Now())
			case "json":
				encoder := json.NewEncoder(command.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(state)
			default:
				return fmt.Errorf("unknown output format %q: must be json", output)
			}
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "Output format. Must be json.")
	return command
}

func newEnv(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print shell commands that configure kubectl for the sandbox's clusters",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			state, err := sandbox.Read(f.home)
			if err != nil {
				return err
			}
			if state.Phase == sandbox.Stopped || state.Phase == sandbox.Failed {
				return fmt.Errorf("no sandbox is running in %s; run `%s` to start one", f.home, f.call("up"))
			}
			programs, err := programsFolder()
			if err != nil {
				return err
			}
			fmt.Fprint(command.OutOrStdout(), sandbox.Environment(state, programs))
			return nil
		},
	}
}
