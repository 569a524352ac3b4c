package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// progress is a line about how something goes on, which depends on when it is looked at.
	progress = regexp.MustCompile(`^\S+ on cluster\d+: |^waiting(: | for )`)
	cluster  = regexp.MustCompile(`cluster\d+`)
)

// unstable is what no two runs print alike, and what stands for it.
var unstable = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2026-01-02T03:04:05Z"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
	// Pods and ReplicaSets of a Deployment.
	{regexp.MustCompile(`-[0-9a-f]{8,10}-[0-9a-z]{5}\b`), "-0123456789-abcde"},
}

// age is a cell of a table that says how long ago something was, or how long it took.
var age = regexp.MustCompile(`(?m)( {2})(\d{1,3}s|\d{1,2}m(?:\d{1,2}s)?)(  |$)`)

// stable is an output without what differs from run to run.
func stable(output string) string {
	lines := slices.DeleteFunc(strings.Split(output, "\n"), progress.MatchString)
	inOrder(lines)
	output = strings.Join(lines, "\n")
	for _, u := range unstable {
		output = u.pattern.ReplaceAllString(output, u.instead)
	}
	return age.ReplaceAllStringFunc(output, func(cell string) string {
		found := age.FindStringSubmatch(cell)
		if found[3] == "" {
			return found[1] + "9s"
		}
		return found[1] + "9s" + strings.Repeat(" ", len(found[2])-2) + found[3]
	})
}

// inOrder sorts lines that follow one another and say the same of several clusters, which are worked on side by side.
func inOrder(lines []string) {
	for first := 0; first < len(lines); {
		said, next := cluster.ReplaceAllString(lines[first], ""), first+1
		for next < len(lines) && cluster.ReplaceAllString(lines[next], "") == said {
			next++
		}
		slices.Sort(lines[first:next])
		first = next
	}
}
