// Command tutorial runs the commands of pages in the current environment, and writes their output below each block. Values that differ
// between runs, such as times, are replaced by fixed ones (see unstable), so that an up-to-date page does not change. -check verifies that.
//
// Commands are in ```sh blocks, and their output in the following ```text block. Words after sh are options: "fails" means that a
// command of the block fails, "tail=N" keeps the last N lines of the output. All commands of a page run in one shell, in the working directory.
//
//	go run ./hack/tutorial [-check] PAGE...
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	check := flag.Bool("check", false, "Do not update the pages; fail if one is out of date.")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	for _, page := range flag.Args() {
		if err := run(page, *check, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "tutorial:", err)
			os.Exit(1)
		}
	}
}

func run(file string, check bool, log io.Writer) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	sh, err := startShell()
	if err != nil {
		return err
	}
	defer sh.close()
	recorded, err := record(string(page), sh, log)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", file, err)
	case !check:
		return os.WriteFile(file, []byte(recorded), 0o644)
	case recorded == string(page):
		return nil
	}
	diff := exec.Command("diff", "-u", "--label", file, "--label", "recorded", file, "-")
	diff.Stdin, diff.Stdout = bytes.NewReader([]byte(recorded)), log
	if err := diff.Run(); diff.ProcessState == nil {
		return err
	}
	return fmt.Errorf("%s is out of date; record it without -check", file)
}
