package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"
)

// execProtocol is what every API server and kubelet speaks on a WebSocket. SPDY, and the protocol's fifth version, add nothing for
// whoever sends no input.
const execProtocol = "v4.channel.k8s.io"

// The channels of execProtocol: the first byte of every message.
const (
	outputChannel    = 1
	complaintChannel = 2
	statusChannel    = 3
)

// remote runs commands in containers of the managed cluster, through its API server, as `kubectl exec` does.
type remote struct {
	client *http.Client
	pods   rest.Interface
}

func newRemote(config *rest.Config) (*remote, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 makes no WebSockets
	config.Timeout = 0                       // each call has its own
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing to run commands in containers: %w", err)
	}
	pods, err := corev1client.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("preparing to run commands in containers: %w", err)
	}
	return &remote{client: client, pods: pods.RESTClient()}, nil
}

// output runs a command and returns what it writes, which must be at most that many bytes. A command that fails is an
// exec.CodeExitError with what it complained of.
func (r *remote) output(ctx context.Context, pod types.NamespacedName, container string, most int, command ...string) ([]byte, error) {
	address := r.pods.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	socket, err := openWebSocket(ctx, r.client, address.String(), execProtocol)
	if err != nil {
		return nil, err
	}
	// Once the protocol is switched, the connection no longer heeds the context.
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer func() {
		stop()
		_ = socket.Close()
	}()
	output, err := receive(socket, most)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return output, err
}

// receive reads what a command writes until it has ended.
func receive(socket *webSocket, most int) ([]byte, error) {
	const complaints = 1 << 10
	var output, complaint []byte
	for {
		message, err := socket.next(most + complaints)
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // how the command ended was not said
		}
		if err != nil {
			return nil, fmt.Errorf("receiving what the command writes: %w", err)
		}
		if len(message) == 0 {
			continue
		}
		switch channel, data := message[0], message[1:]; channel {
		case outputChannel:
			if output = append(output, data...); len(output) > most {
				return nil, fmt.Errorf("the command writes more than %d bytes", most)
			}
		case complaintChannel:
			complaint = append(complaint, data[:min(len(data), complaints-len(complaint))]...)
		case statusChannel:
			return output, failureOf(data, string(complaint))
		}
	}
}

// failureOf is how a command ended, nil if it succeeded.
func failureOf(status []byte, complaint string) error {
	var ended metav1.Status
	if err := json.Unmarshal(status, &ended); err != nil {
		return fmt.Errorf("reading how the command ended: %w", err)
	}
	if ended.Status == metav1.StatusSuccess {
		return nil
	}
	failure := errors.New(ended.Message)
	if complaint = strings.TrimSpace(complaint); complaint != "" {
		failure = fmt.Errorf("%w: %s", failure, complaint)
	}
	if ended.Reason != "NonZeroExitCode" || ended.Details == nil {
		return failure
	}
	for _, cause := range ended.Details.Causes {
		var code int
		if _, err := fmt.Sscan(cause.Message, &code); err == nil && cause.Type == "ExitCode" {
			return exec.CodeExitError{Err: failure, Code: code}
		}
	}
	return failure
}
