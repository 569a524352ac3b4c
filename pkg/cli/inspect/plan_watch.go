package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// watchStatus shows the status of an Instance or add-on and its changes, until the user interrupts it or the object is deleted.
func watchStatus(ctx context.Context, h hubclient.Hub, out io.Writer, key client.ObjectKey, withChildren bool) error {
	w := statusWatch{ObjectKey: key, withChildren: withChildren, out: out, progress: h.Progress(out)}
	err := h.Follow(ctx, []string{key.Namespace}, w.look)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type statusWatch struct {
	client.ObjectKey
	withChildren bool
	out          io.Writer
	progress     *terminal.Progress
	// seen is set once an Instance or add-on was observed; wasInstance is set if it was an Instance. Without a terminal an Instance is
	// first printed completely.
	seen, wasInstance bool
}

func (w *statusWatch) look(ctx context.Context, reader client.Reader) (bool, error) {
	instance, addOn := &kudo.Instance{}, &addonv1alpha1.ManagedClusterAddOn{}
	err := reader.Get(ctx, w.ObjectKey, instance)
	if err == nil {
		view := read.View(ctx, reader, instance)
		if w.withChildren {
			err = read.Children(ctx, reader, &view)
		}
		if err != nil {
			return false, err
		}
		return false, w.showInstance(view)
	}
	if apierrors.IsNotFound(err) {
		err = reader.Get(ctx, w.ObjectKey, addOn)
	}
	switch {
	case err == nil:
		w.seen = true
		return false, w.progress.Show(planstatus.AddOnProgress(addOn))
	case !apierrors.IsNotFound(err):
		return false, fmt.Errorf("reading Instance %q of cluster %q: %w", w.Name, w.Namespace, err)
	case w.seen:
		return true, printers.WriteEscaped(w.out, fmt.Sprintf("%s on %s is gone\n", text.Word(w.Name), text.Word(w.Namespace)))
	default:
		return false, nil // the watch cache is stale
	}
}

// showInstance draws the output of `plan status` on a terminal. Without a terminal it prints the output once, and then changes.
func (w *statusWatch) showInstance(view progress.View) error {
	first := !w.wasInstance
	w.seen, w.wasInstance = true, true
	trees := append(w.header(view), planstatus.Tree(view, progress.PlanNames(view)))
	if w.progress.Live() || !first {
		return w.progress.Show(trees...)
	}
	w.progress.MarkReported(trees)
	return printers.WriteEscaped(w.out, planstatus.Text(view))
}

// header returns the lines above the tree of plans.
func (w *statusWatch) header(view progress.View) []terminal.Node {
	above, _, _ := strings.Cut(planstatus.Text(view), "\n\n")
	var lines []terminal.Node
	for line := range strings.SplitSeq(above, "\n") {
		name, value, _ := strings.Cut(line, ":")
		lines = append(lines, terminal.Node{Text: line, Part: name, Message: strings.TrimSpace(value)})
	}
	return append(lines, terminal.Node{})
}
