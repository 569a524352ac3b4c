package chart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/core/release"
)

// Renderer renders charts in child processes.
type Renderer struct {
	// Command starts a process that calls Serve; the limits are added as its last argument.
	Command []string
	Limits  Limits
	// slots holds a value for each process that runs; nil does not limit them.
	slots chan struct{}
}

// message is what the child sends: a question, or the end. The parent sends the request first, and an object for each question.
type message struct {
	Lookup *question          `json:",omitempty"`
	Output *release.Rendering `json:",omitempty"`
	Error  string             `json:",omitempty"`
	// Invalid is true if the error is about the YAML that the chart renders.
	Invalid bool `json:",omitempty"`
	// Version is set instead of Error if the chart does not support the version of Kubernetes.
	Version *VersionError `json:",omitempty"`
	// Result is set instead of Output by an inspection.
	Result json.RawMessage `json:",omitempty"`
}

// request is what the parent asks for: a rendering, or one of the inspections.
type request struct {
	Input
	Inspection string `json:",omitempty"`
}

// question is a call of lookup.
type question struct{ APIVersion, Kind, Namespace, Name string }

// Render renders a chart. An *Error comes from a template or a schema, a *VersionError is about the version of Kubernetes, and a *LimitError states which
// limit of the chart was reached. All other errors, such as those of lookup, may pass.
func (r *Renderer) Render(ctx context.Context, in Input, lookup Lookup) (*release.Rendering, error) {
	said, err := r.run(ctx, request{Input: in}, lookup)
	if err != nil {
		return nil, err
	}
	return said.result()
}

// run returns how a child process has answered a request.
func (r *Renderer) run(ctx context.Context, asked request, lookup Lookup) (*message, error) {
	if err := r.enter(ctx); err != nil {
		return nil, err
	}
	defer r.leave()
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := time.AfterFunc(r.Limits.Timeout, cancel)
	defer timeout.Stop()
	child, err := r.start(limited)
	if err != nil {
		return nil, &ProcessError{fmt.Errorf("starting a process for the chart: %w", err)}
	}
	said, err := child.converse(asked, r.Limits, func(q question) (map[string]any, error) {
		timeout.Stop()
		defer timeout.Reset(r.Limits.Timeout)
		return q.answer(ctx, lookup, r.Limits.Answer)
	})
	ended := child.end(!errors.Is(err, errEnded))
	switch {
	case said != nil:
		return said, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, &ProcessError{fmt.Errorf("the process for the chart did not end within %s: the machine may be too busy", r.Limits.Timeout)}
	case !errors.Is(err, errEnded):
		return nil, err
	}
	return nil, r.Limits.reached(ended, child.stderr.String())
}

// enter waits until another process may start.
func (r *Renderer) enter(ctx context.Context) error {
	if r.slots == nil {
		return nil
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Renderer) leave() {
	if r.slots != nil {
		<-r.slots
	}
}

// child is a process that renders one chart.
type child struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	stdout  io.ReadCloser
	stderr  tail
}

func (r *Renderer) start(ctx context.Context) (*child, error) {
	c := &child{command: exec.CommandContext(ctx, r.Command[0], append(r.Command[1:len(r.Command):len(r.Command)], r.Limits.argument())...)}
	c.command.Env, c.command.Dir, c.command.Stderr = []string{}, "/", &c.stderr
	c.command.WaitDelay = time.Second
	var err error
	if c.stdin, err = c.command.StdinPipe(); err != nil {
		return nil, err
	}
	if c.stdout, err = c.command.StdoutPipe(); err != nil {
		return nil, err
	}
	return c, c.command.Start()
}

// errEnded is the error of a conversation that the child has left.
var errEnded = errors.New("the process has ended")

// converse sends the request, and answers questions until the child has its answer.
func (c *child) converse(asked request, limits Limits, answer func(question) (map[string]any, error)) (*message, error) {
	to, limited := json.NewEncoder(c.stdin), &io.LimitedReader{R: c.stdout, N: limits.OutputBytes}
	from := json.NewDecoder(limited)
	if err := to.Encode(asked); err != nil {
		return nil, errEnded
	}
	for questions := 0; ; questions++ {
		var said message
		switch err := from.Decode(&said); {
		case err != nil && limited.N <= 0:
			return nil, &LimitError{Limit: fmt.Sprintf("%d MiB of output", limits.OutputBytes>>20)}
		case err != nil:
			return nil, errEnded
		case said.Lookup == nil:
			return &said, nil
		case questions >= limits.Questions:
			return nil, &LimitError{Limit: fmt.Sprintf("%d calls of lookup", limits.Questions)}
		}
		object, err := answer(*said.Lookup)
		if err != nil {
			return nil, err
		}
		if err := to.Encode(object); err != nil {
			return nil, errEnded
		}
	}
}

// answer looks up what a question asks for, within a time.
func (q question) answer(ctx context.Context, lookup Lookup, within time.Duration) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	object, err := lookup(ctx, q.APIVersion, q.Kind, q.Namespace, q.Name)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", strings.TrimSpace(q.Kind+" "+strings.TrimPrefix(q.Namespace+"/"+q.Name, "/")), err)
	}
	return object, nil
}

// result returns what the process has rendered, or its error.
func (m message) result() (*release.Rendering, error) {
	switch {
	case m.Version != nil:
		return nil, m.Version
	case m.Invalid:
		return nil, &Error{Message: m.Error, Cause: release.ErrInvalidOutput}
	case m.Error != "":
		return nil, &Error{Message: m.Error}
	case m.Output != nil:
		return m.Output, nil
	}
	return nil, errors.New("the process for the chart has ended without a result")
}

// end waits for the end of the process, which is killed if it has not ended by itself.
func (c *child) end(kill bool) *os.ProcessState {
	_ = c.stdin.Close()
	if kill {
		_ = c.command.Process.Kill()
	}
	_ = c.command.Wait()
	return c.command.ProcessState
}

// maxTail is how many bytes are kept of what a process writes to its standard error. They are not shown: a panic may quote values.
const maxTail = 64 << 10

// tail keeps the beginning of what is written to it.
type tail struct{ bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.Buffer.Write(p[:min(len(p), maxTail-min(t.Len(), maxTail))])
	return len(p), nil
}

// Serve renders or inspects the chart that it reads, in the process that Renderer.Command starts. limits is the last argument of the process.
func Serve(ctx context.Context, limits string, in io.Reader, out io.Writer) error {
	if err := limit(limits); err != nil {
		return err
	}
	log.SetOutput(io.Discard) // Helm logs warnings
	slog.SetDefault(slog.New(slog.DiscardHandler))
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	var asked request
	if err := from.Decode(&asked); err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	if inspection, is := inspections()[asked.Inspection]; is {
		return to.Encode(answerOf(inspection(asked.Input)))
	}
	output, err := render(ctx, asked.Input, func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
		if err := to.Encode(message{Lookup: &question{apiVersion, kind, namespace, name}}); err != nil {
			return nil, err
		}
		var object map[string]any
		return object, from.Decode(&object)
	})
	var unsupported *VersionError
	switch {
	case errors.As(err, &unsupported):
		return to.Encode(message{Version: unsupported})
	case err != nil:
		return to.Encode(message{Error: err.Error(), Invalid: errors.Is(err, release.ErrInvalidOutput)})
	}
	return to.Encode(message{Output: output})
}

// answerOf returns the answer with the result of an inspection.
func answerOf(result any, err error) message {
	if err != nil {
		return message{Error: err.Error()}
	}
	encoded, err := json.Marshal(result)
	if err != nil {
		return message{Error: err.Error()}
	}
	return message{Result: encoded}
}
