package template

import (
	"fmt"
	"strings"
)

// The limits of a template's source. The parser needs up to 66 bytes of memory for each byte of an action, and some of the stack for each
// nested block.
const (
	// maxActionBytes limits all actions of a template together, without the content of their texts and comments.
	maxActionBytes = 256 << 10
	// maxBlocks limits the nesting of if, range, with, block and define; an else if is nested in its if.
	maxBlocks = 1000
)

var (
	errTooManyActions = fmt.Errorf("its actions have more than %d KiB: divide the template", maxActionBytes>>10)
	errTooManyBlocks  = fmt.Errorf("blocks such as if and range are nested more than %d levels deep: check for a missing end", maxBlocks)
)

// source reads a template like text/template's lexer, and keeps nothing of it but counts. It stops where the lexer would fail, because the
// parser stops there too.
type source struct {
	rest   string
	line   int
	bytes  int
	blocks int
	// open holds the number of blocks that each end closes.
	open []int
}

// checkSource returns an error for a template that takes too much memory to parse.
func checkSource(name, text string) error {
	s := &source{rest: text, line: 1}
	for s.skipTo("{{") {
		if err := s.action(); err != nil {
			problem := NewError(name, err)
			problem.Line = s.line
			return problem
		}
	}
	return nil
}

// skipTo skips the text up to and including a mark; it reports false if there is none.
func (s *source) skipTo(mark string) bool {
	before, after, found := strings.Cut(s.rest, mark)
	s.line += strings.Count(before, "\n")
	s.rest = after
	return found
}

// action reads an action after its left delimiter. At an error of its syntax, it drops the rest of the template.
func (s *source) action() error {
	s.bytes += len("{{}}")
	if strings.HasPrefix(s.rest, "- ") {
		s.rest = s.rest[1:]
	}
	if s.rest = strings.TrimLeft(s.rest, " \t"); strings.HasPrefix(s.rest, "/*") {
		s.skipTo("*/")
		s.skipTo("}}")
		return s.check()
	}
	if err := s.block(); err != nil {
		return err
	}
	for s.rest != "" {
		at := strings.IndexAny(s.rest, "\"`'}\n")
		if at < 0 {
			at = len(s.rest) - 1
		}
		mark := s.rest[at]
		s.bytes += at + 1
		s.rest = s.rest[at+1:]
		switch mark {
		case '}':
			if !strings.HasPrefix(s.rest, "}") {
				s.rest = ""
			}
			s.rest = strings.TrimPrefix(s.rest, "}")
			return s.check()
		case '\n':
			s.line++
		case '`':
			s.skipTo("`")
		case '"', '\'':
			s.skipQuoted(mark)
		}
	}
	return s.check()
}

// skipQuoted skips the content of a text in quotes.
func (s *source) skipQuoted(quote byte) {
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case quote:
			s.rest = s.rest[i+1:]
			return
		case '\n':
			s.rest = ""
			return
		}
	}
	s.rest = ""
}

// block counts the blocks that an action opens or closes.
func (s *source) block() error {
	first, after := word(s.rest)
	switch first {
	case "if", "range", "with", "block", "define":
		s.open = append(s.open, 1)
		s.blocks++
	case "else":
		if second, _ := word(strings.TrimLeft(after, " \t\r\n")); len(s.open) > 0 && (second == "if" || second == "with") {
			s.open[len(s.open)-1]++
			s.blocks++
		}
	case "end":
		if last := len(s.open) - 1; last >= 0 {
			s.blocks -= s.open[last]
			s.open = s.open[:last]
		}
	}
	if s.blocks > maxBlocks {
		return errTooManyBlocks
	}
	return nil
}

// word splits a text after the letters that it begins with.
func word(text string) (word, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
}

func (s *source) check() error {
	if s.bytes > maxActionBytes {
		return errTooManyActions
	}
	return nil
}
