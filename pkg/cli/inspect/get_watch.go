package inspect

import (
	"context"
	"io"
	"maps"
	"slices"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// watchInterval is the minimum time between two looks at the add-ons of a fleet: many of them may change at the same time.
const watchInterval = time.Second / 2

// pauseWatch waits until the next look.
func pauseWatch(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(watchInterval):
	}
}

// followFleet calls look initially and whenever an add-on or Instance of the clusters changes, with nil for all, until the user interrupts
// the command.
func followFleet(ctx context.Context, h hubclient.Hub, clusters []string, look func(context.Context, source) error) error {
	err := h.Follow(ctx, clusters, func(ctx context.Context, reader client.Reader) (bool, error) {
		err := look(ctx, hubclient.Listed{Reader: reader})
		pauseWatch(ctx)
		return false, err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listWatch prints the rows of add-ons and Instances, and then a row for each that changes.
type listWatch struct {
	out               io.Writer
	layout            layout
	addOns, instances watchedTable
	// last is the table of the row that was printed last.
	last *watchedTable
}

// watchAddOns shows the list and its changes, until the user interrupts the command.
func watchAddOns(
	ctx context.Context, h hubclient.Hub, streams genericiooptions.IOStreams, as layout, of listing, first addOnList,
) error {
	w := &listWatch{out: streams.Out, layout: as}
	if err := w.print(first, time.Now()); err != nil {
		return err
	}
	h.Progress(lineWriter{streams.ErrOut}) // reports a hub that does not respond
	return followFleet(ctx, h, of.clusters, func(ctx context.Context, from source) error {
		of.definitions = latestDefinitions(ctx, h, of.definitions)
		list, _, err := of.list(ctx, from, unreadTo(streams.ErrOut))
		if err != nil {
			return err
		}
		return w.print(list, time.Now())
	})
}

// lineWriter hides a terminal from a progress, which then prints lines.
type lineWriter struct{ io.Writer }

// latestDefinitions returns the definitions of the hub; the last ones if the hub does not respond.
func latestDefinitions(ctx context.Context, h hubclient.Hub, last map[string]fleet.Definition) map[string]fleet.Definition {
	if definitions, err := read.Definitions(ctx, h); err == nil {
		return definitions
	}
	return last
}

// print prints the rows that have changed, below a header if the last row was one of the other table.
func (w *listWatch) print(list addOnList, now time.Time) error {
	w.layout.now = now
	shown := w.changesText(&w.addOns, w.layout.addOnHeader(), list.addOnRows(w.layout)) +
		w.changesText(&w.instances, w.layout.instanceHeader(), list.instanceRows(w.layout))
	return printers.WriteEscaped(w.out, shown)
}

func (w *listWatch) changesText(table *watchedTable, header []string, rows [][]string) string {
	changed := table.changes(w.layout, rows)
	if len(changed) == 0 {
		return ""
	}
	above := ""
	if w.last != table && header != nil {
		if w.last != nil {
			above = "\n"
		}
		changed = slices.Insert(changed, 0, header)
	}
	w.last = table
	return above + table.Rows(changed...)
}

// watchedTable is a table of objects that are watched.
type watchedTable struct {
	terminal.GrowingTable
	// printed holds the last row of each object by its cluster and name.
	printed map[string][]string
}

// changes returns the rows that have changed, apart from the age, and one for each object that is gone.
func (t *watchedTable) changes(as layout, rows [][]string) [][]string {
	last := t.printed
	t.printed = make(map[string][]string, len(rows))
	var changed [][]string
	for _, row := range rows {
		key := row[0] + "/" + row[1]
		if before, known := last[key]; !known || !slices.Equal(as.withoutAge(before), as.withoutAge(row)) {
			changed = append(changed, row)
		}
		t.printed[key] = row
		delete(last, key)
	}
	for _, key := range slices.Sorted(maps.Keys(last)) {
		row := slices.Clone(last[key])
		row[stateColumn] = "deleted"
		changed = append(changed, row)
	}
	return changed
}
