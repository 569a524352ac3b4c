package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// output parses the standard error of go list and go build. Lines that name neither a compiled package nor a downloaded module are kept for
// failure reports.
type output struct {
	packages   map[string]bool // packages that are part of the build
	compiled   int
	downloaded int
	others     []string // the last of the other lines
	unfinished []byte   // the incomplete last line
}

// tail is the number of lines repeated in a failure report.
const tail = 40

func (o *output) Write(text []byte) (int, error) {
	o.unfinished = append(o.unfinished, text...)
	for {
		line, rest, whole := bytes.Cut(o.unfinished, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		o.line(string(line))
		o.unfinished = rest
	}
}

func (o *output) line(line string) {
	switch {
	case o.packages[line]:
		o.compiled++
	case strings.HasPrefix(line, "go: downloading "):
		o.downloaded++
	default:
		o.others = append(o.others, line)
		o.others = o.others[max(0, len(o.others)-tail):]
	}
}

// failure returns the text to show for a failed command.
func (o *output) failure() string {
	lines := o.others
	if len(o.unfinished) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(o.unfinished))
	}
	return strings.Join(lines, "\n")
}

// listing returns the progress of go list, which downloads modules that the module cache lacks.
func (o *output) listing(took time.Duration) string {
	return fmt.Sprintf("%s Go modules downloaded (%s)", count(o.downloaded), whole(took))
}

// compiling returns the progress of go build. go build does not print packages that are in its build cache, so the total is an upper limit.
func (o *output) compiling(unlinked []string, took time.Duration) string {
	text := fmt.Sprintf("%s of at most %s packages compiled (%s)", count(o.compiled), count(len(o.packages)), whole(took))
	if len(unlinked) > 0 {
		text += "; not linked yet: " + strings.Join(unlinked, ", ")
	}
	return text
}

// built returns a summary of go build.
func (o *output) built(programs []string, took time.Duration) string {
	return fmt.Sprintf("built %s in %s: %s packages compiled, %s taken from Go's build cache",
		strings.Join(programs, ", "), whole(took), count(o.compiled), count(len(o.packages)-o.compiled))
}

// receiving returns the progress of downloads.
func receiving(received int64, left []string, took time.Duration) string {
	return fmt.Sprintf("%s downloaded (%s); not complete yet: %s", megabytes(received), whole(took), strings.Join(left, ", "))
}

// costs holds the duration of each part of a run and the number of downloaded bytes.
type costs struct {
	download, build, all time.Duration
	bytes                int64
}

// summary returns the origins of the programs, or an empty string if the folder had all of them.
func summary(items []*item, cost costs) string {
	if len(those(items, fromCache)) == len(items) {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		from       origin
		what, much string
	}{
		{fromCache, "already installed", ""},
		{fromGiven, "linked from KUBEBUILDER_ASSETS", ""},
		{fromPath, "linked from PATH", ""},
		{fromRelease, "downloaded", fmt.Sprintf(" (%s in %s)", megabytes(cost.bytes), whole(cost.download))},
		{fromModules, "built", fmt.Sprintf(" (in %s)", whole(cost.build))},
	} {
		if found := those(items, part.from); len(found) > 0 {
			parts = append(parts, part.what+": "+strings.Join(names(found), ", ")+part.much)
		}
	}
	return strings.Join(parts, "; ") + "; " + whole(cost.all) + " in total"
}

// versioned returns the names of the items with their versions, each version once: "kubectl, kube-scheduler v1.36.3, kwok v0.8.0".
func versioned(items []*item) string {
	var text strings.Builder
	for n, i := range items {
		text.WriteString(i.name)
		last := n == len(items)-1
		if last || items[n+1].version != i.version {
			text.WriteString(" " + i.version)
		}
		if !last {
			text.WriteString(", ")
		}
	}
	return text.String()
}

func whole(took time.Duration) string { return took.Round(time.Second).String() }

func megabytes(n int64) string { return fmt.Sprintf("%d MB", (n+500_000)/1_000_000) }

// count formats a number with commas: 2,310.
func count(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
