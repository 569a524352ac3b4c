// Command template prints what a Helm chart installs into a namespace, its resource definitions first, as `helm template --include-crds`
// does.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "template:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("template", flag.ContinueOnError)
	namespace := flags.String("namespace", "default", "the `name` of the namespace")
	set := flags.String("set", "", "`values` of the chart, as NAME=VALUE,NAME=VALUE")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("name the folder of one chart")
	}
	chart, err := loader.Load(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	given, err := strvals.Parse(*set)
	if err != nil {
		return fmt.Errorf("reading the values: %w", err)
	}
	release := chartutil.ReleaseOptions{Name: chart.Name(), Namespace: *namespace, IsInstall: true}
	values, err := chartutil.ToRenderValues(chart, given, release, nil)
	if err != nil {
		return fmt.Errorf("completing the values: %w", err)
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		return fmt.Errorf("rendering the chart: %w", err)
	}
	var documents []string
	for _, definition := range chart.CRDObjects() {
		documents = append(documents, string(definition.File.Data))
	}
	for _, file := range slices.Sorted(maps.Keys(rendered)) {
		documents = append(documents, rendered[file])
	}
	_, err = io.WriteString(out, strings.Join(documents, "\n---\n"))
	return err
}
