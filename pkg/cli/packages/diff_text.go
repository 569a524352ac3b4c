package packages

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// text returns a line for each change, by section; wide includes complete values and the lines of templates.
func (d diffData) text(wide bool) string {
	if len(d.Changes) == 0 {
		return fmt.Sprintf("No differences between %s and %s.\n", d.From, d.To)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s -> %s\n", d.From, d.To)
	var section pack.Section
	for _, change := range d.Changes {
		if change.Section != section {
			section = change.Section
			fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(string(section)))
		}
		b.WriteString(change.line(wide) + "\n")
		if wide {
			b.WriteString(change.Diff)
		}
	}
	b.WriteString("\n" + d.Upgrade.text())
	return b.String()
}

// changeMarks are the prefixes of added, removed and changed items.
var changeMarks = map[pack.ChangeKind]string{pack.Added: "+", pack.Removed: "-", pack.Changed: "~"}

// line returns the change on one line.
func (c diffChange) line(wide bool) string {
	text := fmt.Sprintf("  %s %s", changeMarks[c.Kind], c.Name)
	switch {
	case c.Section == pack.InTemplates:
		return text + c.countText()
	case c.Kind == pack.Changed:
		if c.Field != "" {
			text += " " + c.Field
		}
		return fmt.Sprintf("%s: %s -> %s", text, valueText(c.From, wide), valueText(c.To, wide))
	case c.Section == pack.InParameters:
		return text + parameterText(c, wide)
	default:
		return text
	}
}

// countText returns the number of added and removed lines of a template.
func (c diffChange) countText() string {
	var added, removed int
	_, hunks, _ := strings.Cut(c.Diff, "\n@@") // after the file names
	for line := range strings.Lines(hunks) {
		switch line[0] {
		case '+':
			added++
		case '-':
			removed++
		}
	}
	return fmt.Sprintf(": +%d -%d lines", added, removed)
}

// parameterText returns the type and default of an added or removed parameter.
func parameterText(c diffChange, wide bool) string {
	fields, isThere := c.To.(map[string]any)
	if !isThere {
		fields, _ = c.From.(map[string]any)
	}
	text := fmt.Sprintf(": %v", fields["value-type"])
	if value, given := fields["default"]; given {
		return text + ", default " + valueText(value, wide)
	}
	if fields["required"] == true {
		return text + ", required"
	}
	return text
}

// valueText formats the value of a field.
func valueText(value any, wide bool) string {
	switch v := value.(type) {
	case nil:
		return "(none)"
	case string:
		return terminal.Cell(v, wide)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value) // values parsed from JSON always marshal
	}
	return terminal.Cell(string(text), wide)
}

// text describes the effects of an upgrade.
func (u diffUpgrade) text() string {
	var b strings.Builder
	if u.Plan != "" {
		fmt.Fprintf(&b, "Upgrading an Instance runs plan %s.\n", u.Plan)
	} else {
		b.WriteString("Instances cannot be upgraded to this version.\n")
	}
	for _, note := range u.Notes {
		fmt.Fprintf(&b, "  %s\n", text.JoinMessage(note))
	}
	return b.String()
}
