package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentVariable makes the test's executable a parent that starts a child, prints its process ID, and waits to be killed.
const parentVariable = "SANDBOX_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentVariable) == "" {
		os.Exit(m.Run())
	}
	child := exec.Command("sleep", "600")
	if err := newSpawner().start(child, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(child.Process.Pid)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestProgramsDieWithTheirParent(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(executable)
	parent.Env = append(os.Environ(), parentVariable+"=1")
	parent.Stderr = os.Stderr
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parent.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Fscan(output, &child); err != nil {
		t.Errorf("reading the child's process id: %v", err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it reports that it was killed
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if waitForExit(ctx, child); ctx.Err() != nil {
		t.Errorf("process %d outlives its parent", child)
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
}

func TestAProgramSeesItsRootFolderAlone(t *testing.T) {
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", root+"/list", "./testdata/list")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // a program that needs no files of the system
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out strings.Builder
	command := exec.Command("/list")
	command.Dir, command.Stdout = "/", &out
	spawner := newSpawner()
	defer spawner.close()
	if err := spawner.start(command, root); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil || out.String() != "list\n" {
		t.Errorf("%v, it sees\n%s", err, out.String())
	}
}
