package change

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/text"
)

// defaultData is the output of `set-version --dry-run`, for programs.
type defaultData struct {
	AddOn string `json:"addOn"`
	// From and To are the names of OperatorVersions.
	From string `json:"from"`
	To   string `json:"to"`
	// Following lists the clusters that follow, and Keeping those that keep their version.
	Following []string         `json:"following"`
	Keeping   []change.Keeping `json:"keeping"`
	change.DryRun
}

// defaultDataOf returns the output for programs.
func defaultDataOf(next change.Default) defaultData {
	return defaultData{
		AddOn: next.Current.Name, From: next.From, To: next.To, Following: followingOf(next), Keeping: append([]change.Keeping{}, next.Keeping...),
		DryRun: change.DryRunOf(next.Changes, next.Refused),
	}
}

// followingOf returns the sorted clusters that follow the default, including those on which a plan would fail.
func followingOf(next change.Default) []string {
	clusters := slices.AppendSeq([]string{}, maps.Keys(next.Refused))
	for _, c := range next.Changes {
		clusters = append(clusters, c.Cluster)
	}
	slices.Sort(clusters)
	return clusters
}

// defaultText states the versions, which clusters follow, and which keep their version; wide names all of them.
func defaultText(next change.Default, wide bool) string {
	if next.From == next.To {
		return fmt.Sprintf("add-on %s: %s is the default version already\n", text.Word(next.Current.Name), next.To)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "add-on %s: default version %s -> %s\n", text.Word(next.Current.Name), next.From, next.To)
	if following := followingOf(next); len(following) > 0 {
		fmt.Fprintf(&b, "  follow: %s\n", clustersHeading(following, wide))
	} else {
		b.WriteString("  no cluster follows the default\n")
	}
	byVersion := map[string][]string{}
	for _, kept := range next.Keeping {
		byVersion[kept.OperatorVersion] = append(byVersion[kept.OperatorVersion], kept.Cluster)
	}
	for _, version := range slices.Sorted(maps.Keys(byVersion)) {
		fmt.Fprintf(&b, "  keep %s: %s\n", version, clustersHeading(byVersion[version], wide))
	}
	return b.String()
}
