package main

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// progress matches a progress line, which depends on when the state is observed.
	progress = regexp.MustCompile(`^\S+ on cluster\d+: |^waiting(: | for )`)
	cluster  = regexp.MustCompile(`cluster\d+`)
)

// unstable lists patterns of output that differ between runs, with their replacements.
var unstable = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "2026-01-02T03:04:05Z"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "00000000-0000-0000-0000-000000000000"},
	// How long a sandbox took to start.
	{regexp.MustCompile(`is ready after \d+ s:`), "is ready after 9 s:"},
	// The URL that starts a session of the dashboard.
	{regexp.MustCompile(`127\.0\.0\.1:\d+/session/open\?key=\w+`), "127.0.0.1:40000/session/open?key=KEY"},
	// Pods and ReplicaSets of a Deployment.
	{regexp.MustCompile(`-[0-9a-f]{8,10}-[0-9a-z]{5}(_|\b)`), "-0123456789-abcde$1"},
	{regexp.MustCompile(`(ReplicaSet "[a-z0-9-]+)-[0-9a-f]{8,10}"`), `${1}-0123456789"`},
	// The identity of a leader, which is shortened.
	{regexp.MustCompile(`(-abcde)_[0-9a-f-]+"`), `${1}_00000000-0000-0000-0000-00000"`},
	// How long a plan has been running.
	{regexp.MustCompile(`  \d\ds so far `), "  9s so far  "},
}

// age matches a table cell with an age or a duration.
var age = regexp.MustCompile(`(?m)( {2})(\d{1,3}s|\d{1,2}m(?:\d{1,2}s)?)(  |$)`)

// stable returns the output with replacements for everything that differs between runs.
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

// inOrder sorts consecutive lines that report the same for several clusters, which are processed concurrently.
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
