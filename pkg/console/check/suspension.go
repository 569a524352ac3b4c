package check

import (
	"fmt"

	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// suspensions lists what is suspended, by kind, so that the number of findings does not depend on the number of clusters.
func suspensions(o Observations) []Finding {
	const subject = "suspensions"
	byKind := map[suspension.Kind][]suspension.Origin{}
	for _, origin := range suspension.Sort(o.Suspensions.Origins) {
		byKind[origin.Kind] = append(byKind[origin.Kind], origin)
	}
	var findings []Finding
	for _, kind := range []struct {
		kind suspension.Kind
		what func(number int) string
	}{
		{suspension.KindEverything, func(int) string { return "everything is" }},
		{suspension.KindCluster, func(number int) string { return countText(number, "cluster") }},
		{suspension.KindAddOn, func(number int) string { return countText(number, "add-on") }},
	} {
		found := byKind[kind.kind]
		if len(found) == 0 {
			continue
		}
		named := make([]string, len(found))
		for i, origin := range found {
			named[i] = text.Escape(origin.String())
		}
		findings = append(findings, warning(subject, fmt.Sprintf("%s suspended by %s: no plan starts", kind.what(len(found)), list(named)), found[0].ResumeCommand())...)
	}
	if names := o.Suspensions.Instances; len(names) > 0 {
		first := o.Suspensions.First
		findings = append(findings, warning(subject, fmt.Sprintf("%s suspended by spec.suspend: %s", countText(len(names), "Instance"), text.Escape(list(names))),
			text.Command("kubectl addon resume %s --cluster %s", first.Name, first.Cluster))...)
	}
	for _, problem := range o.Suspensions.Problems {
		findings = append(findings, unreadable(subject, problem.What, problem.Err))
	}
	if len(findings) == 0 {
		return ok(subject, "nothing is suspended")
	}
	return findings
}

// countText returns a number with a noun and its verb.
func countText(number int, noun string) string {
	if number == 1 {
		return text.Plural(number, noun) + " is"
	}
	return text.Plural(number, noun) + " are"
}
