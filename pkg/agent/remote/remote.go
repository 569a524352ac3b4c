// Package remote runs commands in containers of the managed cluster and reads their logs. It does I/O.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/utils/ptr"
)

// maxErrorBytes is the maximum number of bytes kept of a command's error output.
const maxErrorBytes = 1 << 10

// Remote runs commands in containers of the managed cluster and reads their logs through its API server, like `kubectl exec` and
// `kubectl logs`.
type Remote struct {
	config *rest.Config
	pods   rest.Interface
}

// New returns a Remote with the identity of the config and its client.
func New(config *rest.Config, client *http.Client) (*Remote, error) {
	pods, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing to run commands in containers: %w", err)
	}
	return &Remote{config: config, pods: pods.RESTClient()}, nil
}

// Output runs a command and returns its output, which must not exceed that many bytes. A command that fails returns an exec.CodeExitError
// with its error output.
func (r *Remote) Output(ctx context.Context, pod types.NamespacedName, container string, maxBytes int, command ...string) ([]byte, error) {
	executor, err := r.executor(pod, &corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	output, complaints := &capped{maxBytes: maxBytes}, &capped{maxBytes: maxErrorBytes, cut: true}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: output, Stderr: complaints})
	var failed exec.CodeExitError
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case output.full:
		return nil, fmt.Errorf("the output of the command exceeds %d bytes", maxBytes)
	case errors.As(err, &failed):
		if complaint := strings.TrimSpace(complaints.String()); complaint != "" {
			failed.Err = fmt.Errorf("%w: %s", failed.Err, complaint)
		}
		return nil, failed
	case err != nil:
		return nil, fmt.Errorf("running %q: %w", command[0], err)
	}
	return output.Bytes(), nil
}

// MaxLogBytes is the maximum number of bytes of a log. The beginning of its last lines is returned if they exceed it.
const MaxLogBytes = 64 << 10

// Log returns the last lines of the log of a container, or of its previous run. The limit also holds if the node ignores it.
func (r *Remote) Log(ctx context.Context, pod types.NamespacedName, container string, previous bool, lines int64) (string, error) {
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &lines, LimitBytes: ptr.To[int64](MaxLogBytes)}
	log, err := r.pods.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		VersionedParams(options, scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(io.LimitReader(log, MaxLogBytes))
	return string(text), err
}

// executor uses WebSocket, with a fallback to SPDY if the API server or a proxy does not support it.
func (r *Remote) executor(pod types.NamespacedName, options *corev1.PodExecOptions) (remotecommand.Executor, error) {
	address := r.pods.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(options, scheme.ParameterCodec).URL()
	socket, err := remotecommand.NewWebSocketExecutor(r.config, http.MethodGet, address.String())
	if err != nil {
		return nil, fmt.Errorf("preparing to run %q: %w", options.Command[0], err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(r.config, http.MethodPost, address)
	if err != nil {
		return nil, fmt.Errorf("preparing to run %q: %w", options.Command[0], err)
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// capped keeps written data up to a number of bytes. Further data is dropped if it may be cut, and an error otherwise.
type capped struct {
	bytes.Buffer
	maxBytes int
	cut      bool
	full     bool
}

func (c *capped) Write(data []byte) (int, error) {
	room := c.maxBytes - c.Len()
	if len(data) <= room {
		return c.Buffer.Write(data)
	}
	if !c.cut {
		c.full = true
		return 0, errors.New("output limit exceeded")
	}
	c.Buffer.Write(data[:room])
	return len(data), nil
}
