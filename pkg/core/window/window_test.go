package window_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/window"
)

// waitAt returns when executions may start according to these texts, and the message; both empty if they may at that time.
func waitAt(t *testing.T, now time.Time, texts ...string) string {
	t.Helper()
	var sides []window.Side
	for i, text := range texts {
		parsed, err := window.Parse(text)
		side := window.Side{Name: fmt.Sprintf("side %d", i+1), Windows: parsed}
		if err != nil {
			side.Problem = err.Error()
		}
		sides = append(sides, side)
	}
	wait := window.Judge(sides, now)
	if wait == nil {
		return ""
	}
	return strings.TrimPrefix(wait.Message, "closed by ")
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	found, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const night = `allow: [{from: "22:00", to: "04:00", timeZone: Europe/Berlin}]`

func TestJudge(t *testing.T) {
	const (
		weekend  = `allow: [{days: [Sat, Sun], from: "00:00", to: "24:00"}]`
		yearEnd  = night + "\nfreeze: [{from: 2026-12-20T00:00, to: 2027-01-04T08:00, timeZone: Europe/Berlin, reason: year end}]"
		skipped  = `allow: [{from: "02:15", to: "02:45", timeZone: Europe/Berlin}]`
		gap      = `freeze: [{from: 2026-03-29T02:30, to: 2026-03-30, timeZone: Europe/Berlin}]`
		repeated = `freeze: [{from: 2026-10-25T02:30, to: 2026-10-25T02:45, timeZone: Europe/Berlin}]`
	)
	for name, test := range map[string]struct {
		texts []string
		now   string
		want  string
	}{
		"no windows":                           {nil, "2026-11-30T12:00:00Z", ""},
		"outside":                              {[]string{night}, "2026-11-30T12:00:00Z", "side 1: opens at 2026-11-30T22:00:00+01:00"},
		"the first second":                     {[]string{night}, "2026-11-30T21:00:00Z", ""},
		"after midnight":                       {[]string{night}, "2026-12-01T02:59:59Z", ""},
		"the first second after":               {[]string{night}, "2026-12-01T03:00:00Z", "side 1: opens at 2026-12-01T22:00:00+01:00"},
		"a day, on the day before":             {[]string{weekend}, "2026-12-04T23:59:59Z", "side 1: opens at 2026-12-05T00:00:00Z"},
		"a whole day":                          {[]string{weekend}, "2026-12-06T23:59:59Z", ""},
		"24 hours that pass midnight":          {[]string{`allow: [{days: [Sat], from: "12:00", to: "12:00"}]`}, "2026-12-06T11:59:00Z", ""},
		"24 hours, a minute later":             {[]string{`allow: [{days: [Sat], from: "12:00", to: "12:00"}]`}, "2026-12-06T12:00:00Z", "side 1: opens at 2026-12-12T12:00:00Z"},
		"the night after the day of a window":  {[]string{`allow: [{days: [Mon], from: "22:00", to: "04:00"}]`}, "2026-12-01T03:00:00Z", ""},
		"the night before it":                  {[]string{`allow: [{days: [Mon], from: "22:00", to: "04:00"}]`}, "2026-11-30T03:00:00Z", "side 1: opens at 2026-11-30T22:00:00Z"},
		"adjacent windows are one":             {[]string{`allow: [{from: "01:00", to: "02:00"}, {from: "02:00", to: "03:00"}]`}, "2026-12-01T02:00:00Z", ""},
		"a freeze ends in a window":            {[]string{`freeze: [{from: 2026-12-01, to: 2026-12-02T03:00}]` + "\n" + `allow: [{from: "02:00", to: "04:00"}]`}, "2026-12-01T12:00:00Z", "side 1: opens at 2026-12-02T03:00:00Z"},
		"the end of the year":                  {[]string{yearEnd}, "2026-12-31T23:00:00Z", `side 1, freeze "year end": opens at 2027-01-04T22:00:00+01:00`},
		"adjacent freezes":                     {[]string{`freeze: [{from: 2026-12-01, to: 2026-12-02}, {from: 2026-12-02, to: 2026-12-03}]`}, "2026-12-01T12:00:00Z", "side 1: opens at 2026-12-03T00:00:00Z"},
		"freezes that overlap":                 {[]string{`freeze: [{from: 2026-12-01, to: 2026-12-02}, {from: 2026-11-01, to: 2026-12-03}]`}, "2026-12-01T12:00:00Z", "side 1: opens at 2026-12-03T00:00:00Z"},
		"a leap day":                           {[]string{`freeze: [{from: 2028-02-29, to: 2028-03-01}]`}, "2028-02-29T12:00:00Z", "side 1: opens at 2028-03-01T00:00:00Z"},
		"a window that the clocks leave out":   {[]string{skipped}, "2026-03-29T00:00:00Z", "side 1: opens at 2026-03-30T02:15:00+02:00"},
		"a window that opens twice":            {[]string{skipped}, "2026-10-25T01:20:00Z", ""},
		"between the two":                      {[]string{skipped}, "2026-10-25T00:50:00Z", "side 1: opens at 2026-10-25T02:15:00+01:00"},
		"clocks are set into a window":         {[]string{`allow: [{from: "02:30", to: "05:00", timeZone: Europe/Berlin}]`}, "2026-03-29T00:59:00Z", "side 1: opens at 2026-03-29T03:00:00+02:00"},
		"clocks leave out the start of freeze": {[]string{gap}, "2026-03-29T01:00:00Z", "side 1: opens at 2026-03-30T00:00:00+02:00"},
		"a minute earlier":                     {[]string{gap}, "2026-03-29T00:59:00Z", ""},
		"a freeze includes the repeated hour":  {[]string{repeated}, "2026-10-25T01:10:00Z", "side 1: opens at 2026-10-25T02:45:00+01:00"},
		"both sides have to be open":           {[]string{night, `allow: [{from: "23:00", to: "23:30"}]`}, "2026-11-30T12:00:00Z", "side 1, and by side 2: opens at 2026-11-30T23:00:00Z"},
		"only the second is closed":            {[]string{night, `allow: [{from: "23:00", to: "23:30"}]`}, "2026-11-30T22:30:00Z", "side 2: opens at 2026-11-30T23:00:00Z"},
		"sides that are never open together": {[]string{`allow: [{days: [Mon], from: "00:00", to: "24:00"}]`, `allow: [{days: [Tue], from: "00:00", to: "24:00"}]`},
			"2026-12-01T12:00:00Z", "side 1: no time was found at which all windows are open"},
		"a malformed side is closed": {[]string{night, "allow: all"}, "2026-11-30T22:00:00Z",
			"side 2, unmarshal errors: line 1: cannot unmarshal !!str `all`"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, waitAt(t, moment(t, test.now), test.texts...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMalformedWindowsAreRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no entries":                            {"{}", "it has neither allow nor freeze"},
		"a comment":                             {"# none", "it has neither allow nor freeze"},
		"a second document that is malformed":   {night + "\n---\nfreeze: [{from: 2026-12-20, until: 2027-01-04}]", "it has more than one document"},
		"a name without a list":                 {night + "\nfreeze:", "line 2: a value is missing: add it, or remove its name"},
		"a text that is cut within a character": {window.Bound(night + "\n#" + strings.Repeat("–", window.MaxBytes)), "it has more than 16384 bytes"},
		"an empty list":                         {"allow: []", "allow is empty, and would never open: add a window, or remove allow"},
		"no days":                               {`allow: [{days: [], from: "22:00", to: "04:00"}]`, "allow[0]: days is empty, and would never open: add a day, or remove days"},
		"an unknown field":                      {"allow: [{from: 22:00, to: 04:00, zone: UTC}]", "unmarshal errors: line 1: field zone not found"},
		"an unknown day":                        {`allow: [{days: [Monday], from: "22:00", to: "04:00"}]`, `allow[0]: day "Monday" is unknown: write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		"no end":                                {`allow: [{from: "22:00"}]`, "allow[0]: to is missing"},
		"a time of day":                         {`allow: [{from: "22", to: "04:00"}]`, `allow[0]: from is "22": write a time of day such as "22:00"`},
		"after 24 hours":                        {`allow: [{from: "22:00", to: "24:01"}]`, `allow[0]: to is "24:01": write a time of day such as "22:00"`},
		"from 24:00":                            {`allow: [{from: "24:00", to: "04:00"}]`, `allow[0]: from is "24:00": write "00:00", and the next day`},
		"a time zone":                           {`allow: [{from: "22:00", to: "04:00", timeZone: Berlin}]`, `allow[0]: time zone "Berlin" is unknown: write a name of the IANA database, such as Europe/Berlin`},
		"the local zone":                        {`allow: [{from: "22:00", to: "04:00", timeZone: Local}]`, `allow[0]: time zone "Local" is unknown: write a name of the IANA database, such as Europe/Berlin`},
		"a path":                                {`allow: [{from: "22:00", to: "04:00", timeZone: ../../etc/passwd}]`, `allow[0]: time zone "../../etc/passwd" is unknown: write a name of the IANA database, such as Europe/Berlin`},
		"a freeze backwards":                    {"freeze: [{from: 2026-12-02, to: 2026-12-01}]", `freeze[0]: to "2026-12-01" is not after from "2026-12-02"`},
		"a freeze for years":                    {"freeze: [{from: 2026-12-02, to: 2062-12-01}]", `freeze[0]: it lasts longer than 366 days, from "2026-12-02" to "2062-12-01"`},
		"a freeze with zone":                    {"freeze: [{from: 2026-12-02T00:00Z, to: 2026-12-03}]", `freeze[0]: from is "2026-12-02T00:00Z": write a time such as 2026-12-20T08:00, without a zone`},
		"no such day":                           {"freeze: [{from: 2027-02-29, to: 2027-03-03}]", `freeze[0]: from is "2027-02-29": write a time such as 2026-12-20T08:00, without a zone`},
		"a long reason":                         {"freeze: [{from: 2026-12-02, to: 2026-12-03, reason: " + strings.Repeat("x", 300) + "}]", "freeze[0]: reason has 300 bytes: at most 200 are allowed"},
		"two documents":                         {night + "\n---\n" + night, "it has more than one document"},
		"too many entries":                      {"allow:" + strings.Repeat("\n- {from: 01:00, to: 02:00}", 51), "it has 51 entries: at most 50 are allowed"},
		"too long":                              {window.Bound("#" + strings.Repeat("ü", window.MaxBytes)), "it has more than 16384 bytes"},
		"blank":                                 {window.Bound("\n"), "it has neither allow nor freeze"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := window.Parse(test.text)
			if err == nil || err.Error() != test.want {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// Every minute of the weeks in which clocks change, Judge agrees with what a clock on the wall shows.
func TestJudgeAgreesWithAClock(t *testing.T) {
	clocks := map[string]func(day time.Weekday, clock string) bool{
		`allow: [{days: [Sun, Wed], from: "02:15", to: "02:45", timeZone: ZONE}]`: func(day time.Weekday, clock string) bool {
			return (day == time.Sunday || day == time.Wednesday) && clock >= "02:15" && clock < "02:45"
		},
		`allow: [{days: [Sat, Thu], from: "22:00", to: "02:30", timeZone: ZONE}]`: func(day time.Weekday, clock string) bool {
			return (day == time.Saturday || day == time.Thursday) && clock >= "22:00" || (day == time.Sunday || day == time.Friday) && clock < "02:30"
		},
		`allow: [{days: [Sun], from: "02:00", to: "02:00", timeZone: ZONE}]`: func(day time.Weekday, clock string) bool {
			return day == time.Sunday && clock >= "02:00" || day == time.Monday && clock < "02:00"
		},
	}
	weeks := map[string]string{
		"Europe/Berlin": "2026-03-26T00:00:00Z", "America/New_York": "2026-10-30T00:00:00Z", "Australia/Lord_Howe": "2026-04-02T00:00:00Z", "Asia/Kolkata": "2026-12-29T00:00:00Z",
		"Pacific/Auckland": "2026-09-24T00:00:00Z",
	}
	for zoneName, from := range weeks {
		zone, err := time.LoadLocation(zoneName)
		if err != nil {
			t.Fatal(err)
		}
		for text, isOpen := range clocks {
			parsed, err := window.Parse(strings.ReplaceAll(text, "ZONE", zoneName))
			if err != nil {
				t.Fatal(err)
			}
			compareMinutes(t, window.Side{Name: zoneName, Windows: parsed}, moment(t, from).In(zone), isOpen)
		}
	}
}

// compareMinutes compares what Judge says about each minute of the week from now with a clock.
func compareMinutes(t *testing.T, side window.Side, now time.Time, isOpen func(time.Weekday, string) bool) {
	t.Helper()
	const minutes = 8 * 24 * 60
	open := make([]bool, minutes)
	for i := range open {
		at := now.Add(time.Duration(i) * time.Minute)
		open[i] = isOpen(at.Weekday(), at.Format("15:04"))
	}
	next := time.Time{} // the next minute that is open
	for i := minutes - 1; i >= 0; i-- {
		at := now.Add(time.Duration(i) * time.Minute)
		if open[i] {
			next = at
		}
		wait := window.Judge([]window.Side{side}, at)
		if (wait == nil) != open[i] {
			t.Fatalf("%s at %s: got %+v, want open %t", side.Name, at, wait, open[i])
		}
		if wait != nil && !next.IsZero() && !wait.Again.Equal(next) {
			t.Fatalf("%s at %s: opens at %s, want %s", side.Name, at, wait.Again, next)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		night, "freeze: [{from: 2026-12-20T00:00, to: 2027-01-04T08:00, timeZone: Europe/Berlin, reason: year end}]", "{}", "allow: []", "a: &a [*a]", "\x00", "---\n---",
	} {
		f.Add(seed)
	}
	now := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := window.Parse(window.Bound(text))
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		side := window.Side{Name: "side", Windows: parsed}
		wait := window.Judge([]window.Side{side}, now)
		if wait == nil {
			return
		}
		if wait.Again.IsZero() || !wait.Again.After(now) {
			t.Fatalf("never opens: %+v", wait)
		}
		if later := window.Judge([]window.Side{side}, wait.Again); later != nil {
			t.Errorf("closed at %s, when it opens: %+v", wait.Again, later)
		}
	})
}
