// Package kubelet simulates a kubelet that reads files from containers; its caller provides their content. It touches no cluster and runs
// no program.
package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/utils/exec"
)

// Timeouts for idle commands and for the creation of their streams.
const (
	idleTimeout     = time.Minute
	creationTimeout = 10 * time.Second
)

// Opener opens a file of a container by its path there.
type Opener func(name string) (io.ReadCloser, error)

// Handler serves the API server's requests to run commands. The only supported command is `head -c BYTES -- FILE`.
func Handler(open Opener) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		options, err := remotecommand.NewOptions(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		remotecommand.ServeExec(w, r, executor{open}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"],
			options, idleTimeout, creationTimeout, remotecommand.SupportedStreamingProtocols)
	})
	return mux
}

// executor runs the commands of all containers.
type executor struct{ open Opener }

// ExecInContainer implements remotecommand.Executor.
func (e executor) ExecInContainer(_ context.Context, _, _, _ string, command []string, _ io.Reader,
	output, complaints io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	if complaints == nil {
		complaints = output // a terminal has a single stream
	}
	if code := execute(command, e.open, output, complaints); code != 0 {
		return exec.CodeExitError{Err: fmt.Errorf("exit status %d", code), Code: code}
	}
	return nil
}

// execute runs a command and returns its exit code.
func execute(command []string, open Opener, output, complaints io.Writer) int {
	const usage, notFound = 1, 127
	if len(command) != 5 || command[0] != "head" || !slices.Equal(command[1:4:4], []string{"-c", command[2], "--"}) {
		fmt.Fprintf(complaints, "%s: not found in a simulated container", strings.Join(command[:min(1, len(command))], ""))
		return notFound
	}
	limit, err := strconv.ParseInt(command[2], 10, 64)
	if err != nil {
		fmt.Fprintf(complaints, "head: invalid number %q", command[2])
		return usage
	}
	file, err := open(command[4])
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(complaints, "head: %s: No such file or directory", command[4])
		return usage
	}
	if err != nil {
		fmt.Fprintf(complaints, "head: %s: %v", command[4], err)
		return usage
	}
	defer file.Close()
	if _, err := io.Copy(output, io.LimitReader(file, limit)); err != nil {
		fmt.Fprintf(complaints, "head: %s: %v", command[4], err)
		return usage
	}
	return 0
}
