// Package window decides when executions may start on a cluster: it reads maintenance windows and freezes, and finds the time at which all of them are
// open. It touches no cluster and reads no clock.
//
// The text is YAML (DESIGN §11.5):
//
//	allow:                        # executions start only inside of one of these; without a list always, except during a freeze
//	- days: [Mon, Tue, Wed, Thu]  # on which a window opens; every day by default
//	  from: "22:00"
//	  to: "04:00"                 # on the next day if it is not after from
//	  timeZone: Europe/Berlin     # of the IANA database; UTC by default
//	freeze:                       # no execution starts inside of one of these
//	- from: 2026-12-20T00:00
//	  to: 2027-01-04T08:00
//	  timeZone: Europe/Berlin
//	  reason: year end
//
// A window is open while the clocks of its time zone show a time in it: one in the hour that clocks repeat opens twice, and one in the hour that they leave
// out does not open on that day. A freeze includes all of a repeated hour.
package window

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/tandem-addons/tandem/pkg/text"
)

// The limits of a text, because any of its writers may be less trusted than its reader.
const (
	MaxBytes   = 16 << 10
	maxEntries = 50
	maxReason  = 200
)

// maxFreeze is the longest time of a freeze: a longer one is a mistake in a year.
const maxFreeze = 366 * 24 * time.Hour

// Windows are parsed maintenance windows and freezes. The zero value is always open.
type Windows struct {
	allowed []recurrence
	freezes []freeze
}

// recurrence is a window that opens on days of the week.
type recurrence struct {
	days     [7]bool // by time.Weekday
	from, to int     // in minutes of the day
	zone     *time.Location
}

// freeze is a time in which no execution starts.
type freeze struct {
	from, to time.Time
	reason   string
}

// Bound returns the text as far as Parse needs it: one that is too long remains so. A blank text, which a program may write by mistake, is not dropped.
func Bound(source string) string {
	switch {
	case strings.TrimSpace(source) == "":
		return "{}"
	case len(source) > MaxBytes:
		return strings.ToValidUTF8(source[:MaxBytes+utf8.UTFMax], "?")
	default:
		return source
	}
}

// document is the structure of a text.
type document struct {
	Allow  []allowEntry  `yaml:"allow"`
	Freeze []freezeEntry `yaml:"freeze"`
}

type allowEntry struct {
	Days     []string `yaml:"days"`
	From     string   `yaml:"from"`
	To       string   `yaml:"to"`
	TimeZone string   `yaml:"timeZone"`
}

type freezeEntry struct {
	From     string `yaml:"from"`
	To       string `yaml:"to"`
	TimeZone string `yaml:"timeZone"`
	Reason   string `yaml:"reason"`
}

// Parse returns the windows in a text. Its errors name the entry and how to correct it.
func Parse(source string) (Windows, error) {
	found, err := decode(source)
	if err != nil {
		return Windows{}, err
	}
	var w Windows
	for i, entry := range found.Allow {
		parsed, err := parseAllow(entry)
		if err != nil {
			return Windows{}, fmt.Errorf("allow[%d]: %w", i, err)
		}
		w.allowed = append(w.allowed, parsed)
	}
	for i, entry := range found.Freeze {
		parsed, err := parseFreeze(entry)
		if err != nil {
			return Windows{}, fmt.Errorf("freeze[%d]: %w", i, err)
		}
		w.freezes = append(w.freezes, parsed)
	}
	return w, nil
}

// inType matches the part of an error that names a type of this program.
var inType = regexp.MustCompile(` in(to| type) \S+`)

// decode returns the structure of a text.
func decode(source string) (document, error) {
	var found document
	if len(source) > MaxBytes {
		return found, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(source)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&found); err != nil && !errors.Is(err, io.EOF) {
		return found, errors.New(text.OneLine(inType.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")))
	}
	if at := lineOfNull(source); at > 0 {
		return found, fmt.Errorf("line %d: a value is missing: add it, or remove its name", at)
	}
	switch entries := len(found.Allow) + len(found.Freeze); {
	case !errors.Is(decoder.Decode(&document{}), io.EOF):
		return found, errors.New("it has more than one document")
	case found.Allow != nil && len(found.Allow) == 0:
		return found, errors.New("allow is empty, and would never open: add a window, or remove allow")
	case entries == 0:
		return found, errors.New("it has neither allow nor freeze")
	case entries > maxEntries:
		return found, fmt.Errorf("it has %d entries: at most %d are allowed", entries, maxEntries)
	default:
		return found, nil
	}
}

// lineOfNull returns the line of the first name without a value in a text, which would be taken for one that is absent; zero if there is none.
func lineOfNull(source string) int {
	var root yaml.Node
	if yaml.Unmarshal([]byte(source), &root) != nil || len(root.Content) == 0 || root.Content[0].Kind == yaml.ScalarNode {
		return 0
	}
	nodes := []*yaml.Node{&root}
	for len(nodes) > 0 {
		node := nodes[0]
		if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
			return node.Line
		}
		nodes = append(nodes[1:], node.Content...)
	}
	return 0
}

func parseAllow(entry allowEntry) (r recurrence, err error) {
	if r.zone, err = parseZone(entry.TimeZone); err != nil {
		return r, err
	}
	if r.from, err = parseClock("from", entry.From); err != nil {
		return r, err
	}
	if r.to, err = parseClock("to", entry.To); err != nil {
		return r, err
	}
	if r.from == minutesOfDay {
		return r, errors.New(`from is "24:00": write "00:00", and the next day`)
	}
	if entry.Days != nil && len(entry.Days) == 0 {
		return r, errors.New("days is empty, and would never open: add a day, or remove days")
	}
	for day := range r.days {
		r.days[day] = entry.Days == nil
	}
	for _, name := range entry.Days {
		day, known := weekdays[name]
		if !known {
			return r, fmt.Errorf("day %q is unknown: write Mon, Tue, Wed, Thu, Fri, Sat or Sun", text.Prefix(name, maxShown))
		}
		r.days[day] = true
	}
	return r, nil
}

// maxShown is the number of bytes of a value that an error quotes.
const maxShown = 40

func parseFreeze(entry freezeEntry) (f freeze, err error) {
	zone, err := parseZone(entry.TimeZone)
	if err != nil {
		return f, err
	}
	from, err := parseTime("from", entry.From)
	if err != nil {
		return f, err
	}
	to, err := parseTime("to", entry.To)
	if err != nil {
		return f, err
	}
	begins, ends := instantsOf(from, zone), instantsOf(to, zone)
	f = freeze{from: begins[0], to: ends[len(ends)-1], reason: text.OneLine(entry.Reason)}
	switch {
	case !f.from.Before(f.to):
		return f, fmt.Errorf("to %q is not after from %q", entry.To, entry.From)
	case f.to.Sub(f.from) > maxFreeze:
		return f, fmt.Errorf("it lasts longer than 366 days, from %q to %q", entry.From, entry.To)
	case len(f.reason) > maxReason:
		return f, fmt.Errorf("reason has %d bytes: at most %d are allowed", len(f.reason), maxReason)
	}
	return f, nil
}

// parseZone returns the time zone of that name; UTC if it is empty.
func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("time zone %q is unknown: write a name of the IANA database, such as Europe/Berlin", text.Prefix(name, maxShown))
	}
	return zone, nil
}

// weekdays are the names of days.
var weekdays = map[string]time.Weekday{
	"Mon": time.Monday, "Tue": time.Tuesday, "Wed": time.Wednesday, "Thu": time.Thursday, "Fri": time.Friday, "Sat": time.Saturday, "Sun": time.Sunday,
}

const minutesOfDay = 24 * 60

// clock matches a time of day.
var clock = regexp.MustCompile(`^([01][0-9]|2[0-4]):[0-5][0-9]$`)

// parseClock returns a time of day in minutes.
func parseClock(field, value string) (int, error) {
	if value == "" {
		return 0, fmt.Errorf("%s is missing", field)
	}
	if !clock.MatchString(value) || value > "24:00" {
		return 0, fmt.Errorf(`%s is %q: write a time of day such as "22:00"`, field, text.Prefix(value, maxShown))
	}
	number := func(at int) int { return int(value[at]-'0')*10 + int(value[at+1]-'0') }
	return number(0)*60 + number(3), nil
}

// parseTime returns what a clock and a calendar show, as a time in UTC.
func parseTime(field, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, fmt.Errorf("%s is missing", field)
	}
	for _, format := range []string{"2006-01-02T15:04", time.DateOnly} {
		if found, err := time.Parse(format, value); err == nil {
			return found, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is %q: write a time such as 2026-12-20T08:00, without a zone", field, text.Prefix(value, maxShown))
}

// instantsOf returns the times at which the clocks of a zone show a reading, which is given as a time in UTC: two, the first one first, if they are set
// back then. If they leave it out, it returns the time at which they do.
func instantsOf(reading time.Time, zone *time.Location) []time.Time {
	const day = 24 * time.Hour
	var found []time.Time
	for _, near := range []time.Time{reading.Add(-day), reading.Add(day)} {
		_, offset := near.In(zone).Zone()
		at := reading.Add(-time.Duration(offset) * time.Second).In(zone)
		if isShown := at.Format(time.DateTime) == reading.Format(time.DateTime); isShown && (len(found) == 0 || !found[0].Equal(at)) {
			found = append(found, at)
		}
	}
	if len(found) > 0 {
		return found
	}
	_, before := reading.Add(-day).In(zone).Zone()
	change, _ := reading.Add(-time.Duration(before) * time.Second).In(zone).ZoneBounds()
	return []time.Time{change.In(zone)}
}
