package inspect

import (
	"fmt"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/check"
	"github.com/tandem-addons/tandem/pkg/text"
)

// checkMarks are the marks of the levels.
var checkMarks = map[check.Level]string{check.OK: "✓", check.Warning: "!", check.Unknown: "?", check.Failed: "✗"}

// CheckText returns the findings as a table with the commands, and their numbers.
func CheckText(report check.Report) string {
	var rows [][]string
	for _, finding := range report.Findings {
		rows = append(rows, []string{checkMarks[finding.Level], finding.Subject, finding.Message})
		if finding.Command != "" {
			rows = append(rows, []string{"", "", "  " + finding.Command})
		}
	}
	passed := len(report.Findings) - report.Failed - report.Warnings - report.Unknown
	return terminal.Table([]string{"", "CHECK", "RESULT"}, rows) +
		fmt.Sprintf("\n%d passed, %d failed, %s, %d unknown\n", passed, report.Failed, text.Plural(report.Warnings, "warning"), report.Unknown)
}
