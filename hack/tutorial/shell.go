package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// ended is the line that the shell prints after the commands, before the exit code.
const ended = "[tutorial: the commands have ended]"

// shell is a persistent shell: it keeps variables and the working directory between commands.
type shell struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startShell() (*shell, error) {
	command := exec.Command("bash", "--noprofile", "--norc")
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	// StdoutPipe is not used: both streams are written to one file, in the order of the writes.
	out, written, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = written, written
	err = command.Start()
	return &shell{command: command, in: in, out: bufio.NewReader(out)}, errors.Join(err, written.Close())
}

// run returns the output of the commands and the exit code of the first one that fails.
func (s *shell) run(commands string) (output string, status int, err error) {
	script := fmt.Sprintf("unset -v tutorial; trap 'tutorial=${tutorial:-$?}' ERR\neval %s </dev/null\n"+
		"set -- $?; trap - ERR; printf '\\n%s%%d\\n' \"${tutorial:-$1}\"\n", quoted(commands), ended)
	if _, err := io.WriteString(s.in, script); err != nil {
		return "", 0, fmt.Errorf("writing to the shell: %w", err)
	}
	var text strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			return text.String(), 0, fmt.Errorf("reading the shell's output, after %q: %w", text.String(), err)
		}
		if code, last := strings.CutPrefix(line, ended); last {
			status, err = strconv.Atoi(strings.TrimSpace(code))
			return strings.TrimSuffix(text.String(), "\n"), status, err
		}
		text.WriteString(line)
	}
}

// quoted returns the text quoted as a single shell word.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// close ends the shell; its background processes keep running.
func (s *shell) close() {
	_ = s.in.Close()
	_ = s.command.Wait()
}
