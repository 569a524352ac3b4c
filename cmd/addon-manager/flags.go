package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// version is set by the linker (see the Makefile).
var version = "devel"

// names is a flag value: a comma-separated list of names.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(value string) error {
	*n = nil
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name == "" {
			return errors.New("names must not be empty")
		}
		*n = append(*n, name)
	}
	return nil
}

// parse parses the flags, and prints the version if that is requested. It reports whether nothing is left to do. accepted describes the
// valid arguments.
func parse(fs *flag.FlagSet, arguments []string, printVersion *bool, accepted string, out io.Writer) (done bool, err error) {
	switch err := fs.Parse(arguments); {
	case errors.Is(err, flag.ErrHelp):
		return true, nil
	case err != nil:
		return true, err
	case fs.NArg() > 0:
		return true, fmt.Errorf("unexpected argument %q: %s", fs.Arg(0), accepted)
	case *printVersion:
		_, err := fmt.Fprintln(out, "addon-manager", version)
		return true, err
	}
	return false, nil
}

// connection returns the configuration of the connection to the hub, with the limits of its request rate.
func connection(limit *controller.Limit) (*rest.Config, error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the hub (set its kubeconfig with --kubeconfig): %w", err)
	}
	limit.ApplyTo(cfg)
	return cfg, nil
}
