package render

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// YAMLError reports that a document is not valid YAML.
type YAMLError struct {
	// Line is the line in the document, from 1.
	Line   int
	Reason string
	// Earlier is the line with which it conflicts, if the reason is a conflict, and Hint the way out.
	Earlier int
	Hint    string
}

func (e *YAMLError) Error() string {
	if e.Earlier > 0 {
		return fmt.Sprintf("%s on line %d%s", e.Reason, e.Earlier, e.Hint)
	}
	return e.Reason + e.Hint
}

// below returns the error of a text that has lines before the document.
func (e *YAMLError) below(lines int) *YAMLError {
	moved := *e
	moved.Line = max(e.Line, 1) + lines
	if e.Earlier > 0 {
		moved.Earlier += lines
	}
	return &moved
}

var alreadySet = regexp.MustCompile(`^(key .* is already set) on line (\d+)$`)

var yamlLine = regexp.MustCompile(`(?s)^yaml: (?:unmarshal errors:\s*)?(?:line (\d+): )?(.*)$`)

// byteOrderMark is the character that some editors write at the beginning of a file. YAML allows it only there.
const byteOrderMark = "\ufeff"

// flawOf returns why a document is not valid YAML, or would not mean what is written: err is the error of decoding it, decoded the result without
// one. The parser does not know that a template has rendered the text, and describes the consequence only.
func flawOf(document string, decoded any, err error) error {
	var exceeded *yaml.Error
	if errors.As(err, &exceeded) {
		return err
	}
	if line := firstLine(document, isGlued); line > 0 && (err != nil || hasKey(decoded, "---")) {
		return &YAMLError{Line: line, Reason: "a separator (---) must be alone on its line: the template joins it with the next line, perhaps by {{- or -}}"}
	}
	if line := firstLine(document, isMarked); line > 0 && (err != nil || hasKeyBelow(decoded, byteOrderMark)) {
		return &YAMLError{Line: line, Reason: "the line begins with a byte order mark (U+FEFF), which is allowed only at the beginning of a file: remove it"}
	}
	if err == nil {
		return nil
	}
	return ofParser(document, err)
}

// ofParser returns an error of the parser with its line and cause.
func ofParser(document string, err error) error {
	found := yamlLine.FindStringSubmatch(err.Error())
	if found == nil {
		return &YAMLError{Reason: err.Error()}
	}
	line, _ := strconv.Atoi(found[1])
	malformed := &YAMLError{Line: line, Reason: text.OneLine(found[2])}
	if conflict := alreadySet.FindStringSubmatch(malformed.Reason); conflict != nil {
		malformed.Reason = conflict[1]
		malformed.Earlier, _ = strconv.Atoi(conflict[2])
	}
	switch {
	case strings.Contains(indentation(lineAt(document, line)), "\t"):
		malformed.Reason = "the line is indented with a tab: use spaces"
	case strings.HasPrefix(malformed.Reason, `key "apiVersion" is`):
		malformed.Hint = ": separate objects by a line with ---"
	}
	return malformed
}

// lineAt returns a line of a document; empty if there is none.
func lineAt(document string, number int) string {
	lines := strings.Split(document, "\n")
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

// firstLine returns the number of the first line that is wrong, 0 if there is none. The first line of a text may begin with a byte order mark.
func firstLine(document string, isWrong func(line string) bool) int {
	number := 0
	for line := range strings.Lines(document) {
		if number++; isWrong(line) && (number > 1 || !strings.HasPrefix(line, byteOrderMark)) {
			return number
		}
	}
	return 0
}

// isMarker reports whether a line is a marker of YAML between documents.
func isMarker(line, marker string) bool {
	rest, found := strings.CutPrefix(line, marker)
	return found && (rest == "" || strings.ContainsAny(rest[:1], " \t\r\n"))
}

func isGlued(line string) bool {
	return strings.HasPrefix(line, "---") && !isMarker(line, "---") && !strings.HasPrefix(line, "----")
}

func isMarked(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " -"), byteOrderMark)
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// hasKey reports whether a map has a key with a prefix, or is a text with it.
func hasKey(decoded any, prefix string) bool {
	switch value := decoded.(type) {
	case string:
		return strings.HasPrefix(value, prefix)
	case map[string]any:
		for key := range value {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
	}
	return false
}

// hasKeyBelow reports whether any map in a value has a key with a prefix.
func hasKeyBelow(value any, prefix string) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if strings.HasPrefix(key, prefix) || hasKeyBelow(item, prefix) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return hasKeyBelow(item, prefix) })
	}
	return false
}
