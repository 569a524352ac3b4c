package change

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/text"
)

// String returns the name as kubectl prints it: of the add-on, or else of the Instance.
func (i installed) String() string { return change.Removal(i).Object() }

// impactTexts lists the affected dependents, and the detached clusters; required reports whether a dependent becomes unavailable.
func impactTexts(found []installed, detached sets.Set[string]) (texts []string, required bool) {
	suffers := terminal.ClusterTexts{}
	for _, cluster := range clustersOf(found) {
		if detached.Has(cluster) {
			suffers.Add(cluster, detachedText)
		}
	}
	for _, i := range found {
		affected, requires := change.Removal(i).Effects()
		required = required || requires
		for _, text := range affected {
			suffers.Add(i.Namespace, text)
		}
	}
	return suffers.Texts(), required
}

// keptTexts states that parameters of the found add-ons stay on the hub.
func keptTexts(found []installed) []string {
	texts := terminal.ClusterTexts{}
	for _, i := range found {
		if kept := change.Removal(i).KeptConfig(); kept != "" {
			texts.Add(i.Namespace, kept)
		}
	}
	return texts.Texts()
}

// lossTexts states what the removal of the found objects deletes besides them, and what it keeps. instances are those of the clusters, by cluster.
func lossTexts(found []installed, instances map[string][]kudo.Instance) []string {
	known := map[string]int{}
	for _, i := range found {
		for _, loss := range change.Removal(i).Losses(instances[i.Namespace]) {
			known[loss.Text] += loss.Known
		}
	}
	texts := terminal.ClusterTexts{}
	for _, i := range found {
		for _, loss := range change.Removal(i).Losses(instances[i.Namespace]) {
			loss.Known = known[loss.Text] // of all these clusters
			texts.Add(i.Namespace, loss.String())
		}
	}
	return texts.Texts()
}

// leftText lists the objects that a force-released Instance leaves behind, according to its agent's last report.
func leftText(instance *kudo.Instance) string {
	cluster := text.Word(instance.Namespace)
	if len(instance.Status.Inventory) == 0 {
		return fmt.Sprintf("Releasing Instance %s: none of its objects are known to remain on cluster %s.\n",
			text.Word(instance.Name), cluster)
	}
	return fmt.Sprintf("Releasing Instance %s. Objects that are not removed yet stay on cluster %s:\n%s",
		text.Word(instance.Name), cluster, objectLines(instance.Status.Inventory))
}

// detachedText is the warning about a removal from a detached cluster.
const detachedText = "the cluster is detached, so its objects stay"

// objects lists the objects of the Instance and its descendants, according to their agent's last report.
func (i installed) objects() []kudo.InventoryEntry {
	if i.Instance == nil {
		return nil
	}
	all := slices.Clone(i.Instance.Status.Inventory)
	for _, below := range i.Below {
		all = append(all, below.Status.Inventory...)
	}
	return all
}

func objectLines(objects []kudo.InventoryEntry) string {
	var lines strings.Builder
	for _, entry := range objects {
		fmt.Fprintf(&lines, "  %s\n", entry)
	}
	return lines.String()
}

// objectCount returns the number of objects that an Instance has.
func objectCount(objects int, of installed) string {
	if objects == 1 {
		return fmt.Sprintf("1 object of Instance %s", text.Word(of.Name))
	}
	return fmt.Sprintf("%d objects of Instance %s", objects, text.Word(of.Name))
}

// waitText states why the object is not removed yet.
func (i installed) waitText() string { return progress.RemovalText(i.AddOn, i.Instance, i.Below) }
