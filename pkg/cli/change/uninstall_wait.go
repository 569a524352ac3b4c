package change

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/text"
)

// goneWait waits for the removal of the found objects.
type goneWait struct {
	hub      client.Reader
	progress *terminal.Progress
	// going lists the remaining objects; waiting states what the first of them waits for.
	going   []installed
	waiting string
}

// await waits for the removal and shows progress.
func (w *goneWait) await(ctx context.Context, h hubclient.Hub, timeout time.Duration) error {
	return h.Await(ctx, clustersOf(w.going), timeout, w.look, w.timeoutError)
}

// timeoutError returns an error that states what the removal waits for.
func (w *goneWait) timeoutError(after string) error {
	return fmt.Errorf("the removal of %s is still in progress%s%s (see 'kubectl addon uninstall --help' for --release)",
		w.names(), after, strings.TrimSuffix(": "+w.waiting, ": "))
}

func (w *goneWait) look(ctx context.Context, reader client.Reader) (bool, error) {
	lines, err := w.updateRemaining(ctx, reader, len(w.going) > 1)
	if err != nil {
		return false, err
	}
	return len(w.going) == 0, w.progress.Show(lines...)
}

// updateRemaining forgets the objects that are gone, and returns what each of the others waits for, with its name if named is set.
func (w *goneWait) updateRemaining(ctx context.Context, reader client.Reader, named bool) ([]terminal.Node, error) {
	var lines []terminal.Node
	var still []installed
	for _, i := range w.going {
		left, err := i.findLeft(ctx, reader)
		if err == nil && left.isGone() {
			left, err = i.findLeft(ctx, w.hub) // the watch cache may be stale
		}
		if err != nil {
			return nil, err
		}
		if left.isGone() {
			continue
		}
		line := terminal.Node{Part: "waiting", Message: left.waitText()}
		if named {
			line.Part = fmt.Sprintf("waiting for %s on %s", text.Word(i.Name), text.Word(i.Namespace))
		}
		line.Text = line.Part + ": " + line.Message
		lines, still = append(lines, line), append(still, i)
	}
	if w.going = still; len(lines) > 0 {
		w.waiting = lines[0].Message
	}
	return lines, nil
}

// names returns the names of the remaining objects.
func (w *goneWait) names() string {
	if len(w.going) == 1 {
		return w.going[0].String()
	}
	return fmt.Sprintf("%s on %s", w.going[0], terminal.OnClusters(clustersOf(w.going)))
}
