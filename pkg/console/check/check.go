// Package check judges what `kubectl addon check` observes of a hub: the API server, the CRDs, the admission rules, addon-manager, the agents,
// what is suspended, the PackageSources, and the permissions of the user. It is pure and touches no cluster.
package check

import (
	"slices"
)

// Report is the result of all checks, in the order in which they depend on each other.
type Report struct {
	Findings []Finding `json:"findings"`
	Failed   int       `json:"failed"`
	Warnings int       `json:"warnings"`
	// Unknown is the number of checks without a result, for example because the user may not read an object.
	Unknown int `json:"unknown"`
}

// Judge judges the observations. If the hub does not respond, that is the only finding.
func Judge(o Observations) Report {
	findings := hub(o)
	if findings[0].Level != Failed {
		for _, judge := range []func(Observations) []Finding{clock, definitions, admission, leader, version, agents, suspensions, sources, permissions} {
			findings = append(findings, judge(o)...)
		}
	}
	count := func(level Level) int {
		return len(slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return f.Level != level }))
	}
	return Report{Findings: findings, Failed: count(Failed), Warnings: count(Warning), Unknown: count(Unknown)}
}
