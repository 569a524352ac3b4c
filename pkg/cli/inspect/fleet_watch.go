package inspect

import (
	"context"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

// watchFleet shows the summary of the selected clusters whenever it changes, until the user interrupts the command.
func watchFleet(ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, where hubclient.Selection, wide bool) error {
	clusters, err := namedClusters(ctx, h, where)
	if err != nil {
		return err
	}
	w := fleetWatch{out: streams.Out, progress: h.Progress(streams.Out)}
	if !w.progress.Live() {
		w.progress = h.Progress(lineWriter{streams.ErrOut}) // reports a hub that does not respond
	}
	followed := clusters
	if where.IsAll() {
		followed = nil
	}
	return followFleet(ctx, h, followed, func(ctx context.Context, from source) error {
		if names, err := namedClusters(ctx, h, where); err == nil && where.IsAll() {
			clusters = names
		}
		found, err := glanceFrom(ctx, from, where, clusters, unreadTo(streams.ErrOut))
		if err != nil {
			return err
		}
		return w.show(SummaryText(found.Sum(), wide))
	})
}

// fleetWatch shows a text that changes: on a terminal it is redrawn, elsewhere each text is printed.
type fleetWatch struct {
	out      io.Writer
	progress *terminal.Progress
	last     string
}

func (w *fleetWatch) show(text string) error {
	if w.progress.Live() {
		var lines []terminal.Node
		for line := range strings.Lines(text) {
			lines = append(lines, terminal.Node{Text: strings.TrimSuffix(line, "\n")})
		}
		return w.progress.Show(lines...)
	}
	if text == w.last {
		return nil
	}
	separator := ""
	if w.last != "" {
		separator = "\n"
	}
	w.last = text
	return printers.WriteEscaped(w.out, separator+text)
}
