package structure

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// shellBlock matches a code block of shell commands, with its commands.
	shellBlock = regexp.MustCompile("(?ms)^ *```(?:sh|bash|shell|console)\\b[^\\n]*\\n(.*?)^ *```$")
	// shellComment matches a comment of a line of shell commands, with its text.
	shellComment = regexp.MustCompile(`(?:^|\s)#\s+(.*)$`)
	// shellProgram matches the program that a line of shell commands begins with.
	shellProgram = regexp.MustCompile(`^(?:[A-Z_]+=\S+ +)*([a-z][\w./-]*)(?: |$)`)
	// shellKeyword matches a word that begins a line of shell commands and is not a program.
	shellKeyword = regexp.MustCompile(`^(?:if|then|else|fi|for|while|until|do|done|case|esac)$`)
	// loneAssignment matches a line that sets a variable and runs nothing, with its name.
	loneAssignment = regexp.MustCompile(`^\s*([A-Za-z_]\w*)=\S*$`)
	// heredoc matches the text that a command reads from the page.
	heredoc = regexp.MustCompile(`(?ms)(<<'?EOF'?[^\n]*\n).*?^(\s*EOF)$`)
)

// TestShellBlocksOfPagesRunWhatTheyShow parses the shell commands of all pages, and finds commands that a wrapped line has moved into a comment
// or has split.
func TestShellBlocksOfPagesRunWhatTheyShow(t *testing.T) {
	blocks := map[string][]string{}
	for _, page := range proseFiles(t) {
		if !strings.HasSuffix(page, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			blocks[page] = append(blocks[page], found[1])
		}
	}
	if len(blocks) == 0 {
		t.Fatal("no shell commands found")
	}
	programs := programsIn(blocks)
	for page, commands := range blocks {
		for _, block := range commands {
			for _, problem := range problemsOfShell(block, programs) {
				t.Errorf("%s: %s", page, problem)
			}
		}
	}
}

func TestProblemsOfShellCommandsAreFound(t *testing.T) {
	programs := map[string]bool{"docker": true, "make": true, "kubectl": true}
	for name, c := range map[string]struct {
		block string
		want  int
	}{
		"commands with comments":            {"make images # for all platforms\nkubectl get pods\n", 0},
		"an alternative in a comment":       {"make images # or docker build .\n", 0},
		"a variable that is used":           {"VERSION=v1\nmake images V=$VERSION\n", 0},
		"text that a command reads":         {"kubectl apply -f - <<'EOF'\na: b # make it\nEOF\n", 0},
		"a command in a comment":            {"docker login # or any other program make images PUSH=1\n", 1},
		"a command without its last line":   {"make images PUSH=1\nVERSION=v1\n", 1},
		"a quotation that does not end":     {"kubectl get pods -o 'name\n", 1},
		"a command continued by a blank":    {"make images \\ \n  images\n", 1},
		"a command continued to the end":    {"make images \\\n", 1},
		"a comment in a continued command":  {"make images \\\n  # for v1\n", 1},
		"a command cut off before its next": {"make images &&\n", 1},
	} {
		if got := problemsOfShell(c.block, programs); len(got) != c.want {
			t.Errorf("%s: got %q, want %d", name, got, c.want)
		}
	}
}

// programsIn returns the programs that the blocks' lines begin with.
func programsIn(blocks map[string][]string) map[string]bool {
	programs := map[string]bool{}
	for _, commands := range blocks {
		for _, block := range commands {
			for line := range strings.Lines(heredoc.ReplaceAllString(block, "$1$2")) {
				if found := shellProgram.FindStringSubmatch(strings.TrimSpace(line)); found != nil && !shellKeyword.MatchString(found[1]) {
					programs[found[1]] = true
				}
			}
		}
	}
	return programs
}

// problemsOfShell returns what is wrong with the lines of a block.
func problemsOfShell(block string, programs map[string]bool) []string {
	var problems []string
	parse := exec.Command("bash", "-n")
	parse.Stdin = strings.NewReader(block)
	if output, err := parse.CombinedOutput(); err != nil {
		problems = append(problems, string(output))
	}
	lines := strings.Split(strings.TrimSuffix(heredoc.ReplaceAllString(block, "$1$2"), "\n"), "\n")
	for i, line := range lines {
		if problem := problemOfLine(lines, i, programs); problem != "" {
			problems = append(problems, line+": "+problem)
		}
	}
	return problems
}

// problemOfLine returns what is wrong with a line of a block.
func problemOfLine(lines []string, i int, programs map[string]bool) string {
	line := lines[i]
	if strings.HasSuffix(line, `\ `) || strings.HasSuffix(line, `\`) && (i+1 == len(lines) || strings.HasPrefix(strings.TrimSpace(lines[i+1]), "#")) {
		return "the command does not continue"
	}
	if found := loneAssignment.FindStringSubmatch(line); found != nil && !strings.Contains(strings.Join(lines[i+1:], "\n"), "$"+found[1]) {
		return "no command uses the variable"
	}
	if found := shellComment.FindStringSubmatch(line); found != nil {
		return commandIn(found[1], programs)
	}
	return ""
}

// commandIn returns an error about a comment that has a command in it. A comment may show another command after "or".
func commandIn(comment string, programs map[string]bool) string {
	words := strings.Fields(comment)
	for i := range words {
		if i > 0 && words[i-1] != "or" && programs[words[i]] && !strings.HasSuffix(words[i], ",") {
			return "the comment contains a command"
		}
	}
	return ""
}
