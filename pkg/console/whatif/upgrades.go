package whatif

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Upgrades is the output of `what-if upgrade`: what an upgrade of an add-on does on a fleet.
type Upgrades struct {
	AddOn string `json:"addOn"`
	// Version is the version as it was given.
	Version string `json:"version"`
	// Groups lists the effects, the worst first, each with its clusters.
	Groups []UpgradeGroup `json:"groups"`
	// Without lists the selected clusters that do not have the add-on.
	Without []string `json:"notEnabledOn,omitempty"`
}

// UpgradesOf groups the effects of upgrades of an add-on on clusters, which are sorted by name.
func UpgradesOf(addOn, version string, upgrades []Upgrade) Upgrades {
	data := Upgrades{AddOn: addOn, Version: version, Groups: []UpgradeGroup{}}
	at := map[string]int{}
	for _, upgrade := range upgrades {
		group := upgrade.Effect()
		key := group.key()
		i, known := at[key]
		if !known {
			at[key], data.Groups = len(data.Groups), append(data.Groups, group)
			continue
		}
		data.Groups[i].Clusters = append(data.Groups[i].Clusters, upgrade.Name)
	}
	slices.SortStableFunc(data.Groups, func(a, b UpgradeGroup) int {
		return cmp.Or(
			cmp.Compare(slices.Index(outcomes, a.Outcome), slices.Index(outcomes, b.Outcome)),
			cmp.Compare(a.worst(), b.worst()),
			-cmp.Compare(len(a.Clusters), len(b.Clusters)),
		)
	})
	return data
}

// key returns what groups of clusters with the same effect have in common: all but the name of the only cluster, which texts contain.
func (g UpgradeGroup) key() string {
	cluster := g.Clusters[0]
	anywhere := func(texts []string) []string {
		var replaced []string
		for _, text := range texts {
			replaced = append(replaced, strings.ReplaceAll(text, cluster, "\x00"))
		}
		return replaced
	}
	g.Clusters = nil
	g.Problem, g.Warnings, g.NotRead = strings.ReplaceAll(g.Problem, cluster, "\x00"), anywhere(g.Warnings), anywhere(g.NotRead)
	encoded, err := json.Marshal(g)
	if err != nil { // it has strings only
		return cluster
	}
	return string(encoded)
}

// worst returns the rank of the worst effect on a dependent or on the add-on itself.
func (g UpgradeGroup) worst() int {
	rank := len(effects)
	for _, row := range g.Dependents {
		rank = min(rank, slices.Index(effects, row.Effect))
	}
	if len(g.Requires) > 0 {
		rank = min(rank, slices.Index(effects, Degraded))
	}
	return rank
}

// texts of the outcomes and effects.
var (
	outcomeTexts = map[Outcome]string{
		Refused: "cannot change", Waits: "waits", NotKnown: "outcome unknown", Starts: "starts", Changing: "is already changing", Runs: "already runs it",
	}
	effectTexts = map[Effect]string{
		HoldsBack: "blocks the upgrade", Unavailable: "becomes unavailable", Degraded: "becomes degraded", Met: "becomes satisfied",
	}
)

// Text returns the outcome in words.
func (o Outcome) Text() string { return outcomeTexts[o] }

// Text returns the effect in words.
func (e Effect) Text() string { return effectTexts[e] }
