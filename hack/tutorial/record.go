package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const (
	commandsFence = "```sh"
	outputFence   = "```text"
	fence         = "```"
)

// block is a block of commands in the page.
type block struct {
	// line is the block's first line in the page.
	line     int
	commands string
	// fails is set if the block's last command is expected to fail; tail is the number of last output lines to show, or 0 for all.
	fails bool
	tail  int
}

// record runs the commands of a page and returns the page with their output. It stops at the first command whose result differs from the
// page.
func record(page string, sh *shell, log io.Writer) (string, error) {
	var recorded []string
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); {
		recorded = append(recorded, lines[i])
		i++
		info, begins := strings.CutPrefix(lines[i-1], commandsFence)
		if !begins {
			continue
		}
		end, err := endOf(lines, i)
		if err != nil {
			return "", err
		}
		b := block{line: i, commands: strings.Join(lines[i:end], "\n")}
		if err := b.parse(info); err != nil {
			return "", err
		}
		recorded = append(recorded, lines[i:end+1]...)
		if i, err = afterOutput(lines, end+1); err != nil {
			return "", err
		}
		output, err := b.run(sh, log)
		if err != nil {
			return "", err
		}
		if len(output) > 0 {
			recorded = slices.Concat(recorded, []string{"", outputFence}, output, []string{fence})
		}
	}
	return strings.Join(recorded, "\n"), nil
}

// endOf returns the line that ends the block starting at the given line.
func endOf(lines []string, first int) (int, error) {
	length := slices.Index(lines[first:], fence)
	if length < 0 {
		return 0, fmt.Errorf("line %d: unterminated block", first)
	}
	return first + length, nil
}

// afterOutput returns the line after a block and its previously recorded output.
func afterOutput(lines []string, next int) (int, error) {
	if next+1 >= len(lines) || lines[next] != "" || lines[next+1] != outputFence {
		return next, nil
	}
	end, err := endOf(lines, next+2)
	return end + 1, err
}

// parse parses the info string of the fence.
func (b *block) parse(info string) error {
	for _, word := range strings.Fields(info) {
		var err error
		if number, found := strings.CutPrefix(word, "tail="); found {
			b.tail, err = strconv.Atoi(number)
		} else if b.fails = word == "fails"; !b.fails {
			err = errors.New("must be fails or tail=N")
		}
		if err != nil {
			return fmt.Errorf("line %d: %q: %w", b.line, word, err)
		}
	}
	return nil
}

// run runs the block's commands and returns their output, line by line.
func (b *block) run(sh *shell, log io.Writer) ([]string, error) {
	fmt.Fprintf(log, "%s\n", b.commands)
	output, status, err := sh.run(b.commands)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", b.line, err)
	}
	fmt.Fprintf(log, "%s\n", output)
	if b.fails != (status != 0) {
		return nil, fmt.Errorf("line %d: exit code %d", b.line, status)
	}
	text := strings.TrimRight(stable(output), "\n")
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	if left := len(lines) - b.tail; b.tail > 0 && left > 0 {
		lines = append([]string{"…"}, lines[left:]...)
	}
	return lines, nil
}
