package cli

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/ui"
)

// UIOptions holds the flags of the command.
type UIOptions struct {
	*hubclient.Factory
	port      int
	noBrowser bool
	clusters  []string
	readOnly  bool
}

// newCmdUI returns the command. If runF is set, it replaces runUI.
func newCmdUI(f *hubclient.Factory, runF func(context.Context, *UIOptions) error) *cobra.Command {
	o := &UIOptions{Factory: f}
	if runF == nil {
		runF = runUI
	}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the fleet in a browser",
		Long: "Serve a dashboard on this machine and open it in a browser: the fleet, add-ons, clusters, Instances with their plans, and the\n" +
			"reasons of problems. Pages are kept up to date. Buttons run and cancel plans, enable and disable add-ons, and change\n" +
			"parameters, after a preview. The dashboard has the permissions of the kubeconfig, and is reachable only from this machine,\n" +
			"at a URL that works once.\n\n" +
			"The command runs until it is interrupted. It contacts only the hub.",
		Example: "  kubectl addon ui\n" +
			"  kubectl addon ui --cluster cluster1,cluster2 --port 8080 --no-browser",
		Args: terminal.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return runF(cmd.Context(), o)
		},
	}
	cmd.Flags().IntVar(&o.port, "port", 0, "Port on 127.0.0.1 that serves the dashboard; 0 selects a free one.")
	cmd.Flags().BoolVar(&o.readOnly, "read-only", false, "Omit all actions.")
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "Only print the URL.")
	cmd.Flags().StringSliceVar(&o.clusters, "cluster", nil,
		"Comma-separated names of managed clusters to show. Defaults to all, which requires permission to list add-ons in all namespaces.")
	return cmd
}

func (o *UIOptions) check(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("namespace"):
		return terminal.Usagef(cmd, "--namespace is not supported: --cluster selects managed clusters and their namespaces on the hub")
	case o.port < 0 || o.port > 65535:
		return terminal.Usagef(cmd, "invalid argument \"%d\" for \"--port\" flag: must be between 0 and 65535", o.port)
	case slices.Contains(o.clusters, ""):
		return terminal.Usagef(cmd, "invalid argument for \"--cluster\" flag: names must not be empty")
	}
	return nil
}

func runUI(ctx context.Context, o *UIOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	cached, err := o.newHub(ctx, h)
	if err != nil {
		return hubclient.Advise(err, "")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("listening on port %d: %w; select another port with --port", o.port, err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	gate := ui.NewLocal("tandem-" + port)
	server, err := ui.New(ui.Options{Hub: cached, Gate: gate, Hosts: []string{"127.0.0.1", "localhost"}, Version: o.Version, ReadOnly: o.readOnly})
	if err != nil {
		return err
	}
	address := "http://" + net.JoinHostPort("127.0.0.1", port) + gate.Path()
	if err := printers.WriteEscaped(o.Out, introduction(address)); err != nil {
		return err
	}
	if !o.noBrowser {
		if err := browse(ctx, address); err != nil {
			fmt.Fprintf(o.ErrOut, "Warning: no browser was opened: %v\n", err)
		}
	}
	return server.Serve(ctx, listener)
}

// newHub returns a cache of the clusters to show. It returns an error if one of them does not exist.
func (o *UIOptions) newHub(ctx context.Context, h hubclient.Hub) (*ui.Hub, error) {
	if len(o.clusters) > 0 {
		named := hubclient.Selection{Names: o.clusters}
		if _, err := named.Clusters(ctx, h); err != nil {
			return nil, err
		}
	}
	cached, err := ui.NewHub(ctx, h.Config, o.clusters)
	if apierrors.IsForbidden(err) && o.clusters == nil {
		err = fmt.Errorf("%w; select clusters with --cluster", err)
	}
	return cached, err
}

func introduction(address string) string {
	return fmt.Sprintf("The dashboard is at\n\n  %s\n\nThe URL works once. Press Ctrl-C to stop.\n", address)
}

// browse opens an address in the user's browser.
func browse(ctx context.Context, address string) error {
	opener := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), opener[0], append(opener[1:], address)...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the result of the opener says nothing about the browser
	return nil
}
