// Command releases installs or uninstalls many Helm releases of one chart by Helm's SDK, for `make bench-charts`. It waits for each as
// `helm install --wait` does. KUBECONFIG names the cluster, and HELM_QPS and HELM_BURST_LIMIT limit its requests, as with Helm's own command.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/klog/v2"
)

// options are the values of the flags.
type options struct {
	chart, namespace, prefix string
	count, concurrency       int
	uninstall                bool
	timeout                  time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.chart, "chart", "", "folder of the chart")
	flag.StringVar(&o.namespace, "namespace", "default", "namespace of the releases")
	flag.StringVar(&o.prefix, "prefix", "bench-", "beginning of the names of the releases; a number of three digits follows")
	flag.IntVar(&o.count, "count", 100, "number of releases")
	flag.IntVar(&o.concurrency, "concurrency", 1, "how many releases to install at a time")
	flag.BoolVar(&o.uninstall, "uninstall", false, "uninstall the releases")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long to wait for each release")
	flag.Parse()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "releases:", err)
		os.Exit(1)
	}
}

// run handles all releases. They share the client's settings, and with them what it has discovered.
func (o options) run(ctx context.Context) error {
	settings := cli.New()
	settings.SetNamespace(o.namespace)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.concurrency)
	for i := range o.count {
		group.Go(func() error {
			name := fmt.Sprintf("%s%03d", o.prefix, i)
			act := o.installOne
			if o.uninstall {
				act = o.uninstallOne
			}
			configuration := action.NewConfiguration()
			if err := configuration.Init(settings.RESTClientGetter(), o.namespace, "secret"); err != nil {
				return err
			}
			if err := act(ctx, configuration, name); err != nil {
				return fmt.Errorf("release %q: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (o options) installOne(ctx context.Context, configuration *action.Configuration, name string) error {
	loaded, err := loader.Load(o.chart)
	if err != nil {
		return err
	}
	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace = name, o.namespace
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, o.timeout
	_, err = install.RunWithContext(ctx, loaded, map[string]any{})
	return err
}

func (o options) uninstallOne(_ context.Context, configuration *action.Configuration, name string) error {
	uninstall := action.NewUninstall(configuration)
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, o.timeout
	_, err := uninstall.Run(name)
	return err
}
