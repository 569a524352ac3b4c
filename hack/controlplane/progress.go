package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// output understands what go list and go build print on standard error. What is neither a compiled package nor a downloaded module is
// kept for the report of a failure.
type output struct {
	packages   map[string]bool // those that the build consists of
	compiled   int
	downloaded int
	others     []string // the last lines of what else was printed
	unfinished []byte   // what was written of the next line
}

// tail is how many lines a report of a failure repeats.
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

// failure returns what is to be shown of a command that failed.
func (o *output) failure() string {
	lines := o.others
	if len(o.unfinished) > 0 {
		lines = append(lines[:len(lines):len(lines)], string(o.unfinished))
	}
	return strings.Join(lines, "\n")
}

// listing reports the progress of go list, which downloads modules that the module cache lacks.
func (o *output) listing(took time.Duration) string {
	return fmt.Sprintf("%s Go modules downloaded (%s)", count(o.downloaded), whole(took))
}

// compiling reports the progress of go build. It does not print packages that Go's build cache has, so the total is only an upper limit.
func (o *output) compiling(unlinked []string, took time.Duration) string {
	text := fmt.Sprintf("%s of at most %s packages compiled (%s)", count(o.compiled), count(len(o.packages)), whole(took))
	if len(unlinked) > 0 {
		text += "; still to be linked: " + strings.Join(unlinked, ", ")
	}
	return text
}

// built reports what go build did.
func (o *output) built(programs []string, took time.Duration) string {
	return fmt.Sprintf("built %s in %s: %s packages compiled, %s taken from Go's build cache",
		strings.Join(programs, ", "), whole(took), count(o.compiled), count(len(o.packages)-o.compiled))
}

// receiving reports the progress of downloads.
func receiving(received int64, left []string, took time.Duration) string {
	return fmt.Sprintf("%s downloaded (%s); not complete yet: %s", megabytes(received), whole(took), strings.Join(left, ", "))
}

// costs is how long the parts of a run took, and how much was downloaded.
type costs struct {
	download, build, all time.Duration
	bytes                int64
}

// summary reports where the programs come from. It is empty if the folder had them all.
func summary(items []*item, cost costs) string {
	if len(those(items, fromCache)) == len(items) {
		return ""
	}
	var parts []string
	for _, part := range []struct {
		from       origin
		what, much string
	}{
		{fromCache, "already there", ""},
		{fromGiven, "linked from KUBEBUILDER_ASSETS", ""},
		{fromPath, "linked from PATH", ""},
		{fromRelease, "downloaded", fmt.Sprintf(" (%s in %s)", megabytes(cost.bytes), whole(cost.download))},
		{fromModules, "built", fmt.Sprintf(" (in %s)", whole(cost.build))},
	} {
		if found := those(items, part.from); len(found) > 0 {
			parts = append(parts, part.what+": "+strings.Join(names(found), ", ")+part.much)
		}
	}
	return strings.Join(parts, "; ") + "; " + whole(cost.all) + " in all"
}

// versioned returns the items' names with their versions, each version once: "kubectl, kube-scheduler v1.36.3, kwok v0.8.0".
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

// count writes a number with commas: 2,310.
func count(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
