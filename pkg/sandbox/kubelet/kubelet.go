// Package kubelet plays the part of a kubelet that reads files out of containers: whoever serves it says what is in them. It touches
// no cluster and runs no program.
package kubelet

import (
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it, and not for secrecy
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Opener finds a file of a container, by its path there.
type Opener func(name string) (io.ReadCloser, error)

// protocol is how an API server passes on the commands of clients that send no input (v4 of Kubernetes' remote command).
const protocol = "v4.channel.k8s.io"

// The channels of the protocol: the first byte of every message.
const (
	outputChannel    = 1
	complaintChannel = 2
	statusChannel    = 3
)

// Handler answers the API server's requests to run commands. The one command that there is in its containers is `head -c BYTES --
// FILE`.
func Handler(open Opener) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) { run(w, r, open) })
	return mux
}

// run carries out the command of a request on a WebSocket.
func run(w http.ResponseWriter, r *http.Request, open Opener) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") || !strings.Contains(r.Header.Get("Sec-WebSocket-Protocol"), protocol) {
		http.Error(w, "nothing runs in containers that are simulated", http.StatusNotImplemented)
		return
	}
	connection, stream, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer connection.Close()
	fmt.Fprintf(connection, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n\r\n", accept(r.Header.Get("Sec-WebSocket-Key")), protocol)
	code := execute(r.URL.Query()["command"], open, channel{connection, outputChannel}, channel{connection, complaintChannel})
	ended, _ := json.Marshal(statusOf(code)) // of a struct that has no other form
	if _, err := (channel{connection, statusChannel}).Write(ended); err != nil {
		return
	}
	_, _ = connection.Write([]byte{0x88, 0}) // no more is to come
	_, _ = io.Copy(io.Discard, stream)       // until the other side has closed, so that nothing is cut off
}

// accept answers the key of a WebSocket's request (RFC 6455, section 4.2.2).
func accept(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) //nolint:gosec // as above
	return base64.StdEncoding.EncodeToString(sum[:])
}

// execute is a command's exit code.
func execute(command []string, open Opener, output, complaints io.Writer) int {
	const usage, notFound = 1, 127
	if len(command) != 5 || command[0] != "head" || !slices.Equal(command[1:4:4], []string{"-c", command[2], "--"}) {
		fmt.Fprintf(complaints, "%s: not found in a container that is simulated", strings.Join(command[:min(1, len(command))], ""))
		return notFound
	}
	most, err := strconv.ParseInt(command[2], 10, 64)
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
	if _, err := io.Copy(output, io.LimitReader(file, most)); err != nil {
		fmt.Fprintf(complaints, "head: %s: %v", command[4], err)
		return usage
	}
	return 0
}

// statusOf is how kubelets say that a command has ended.
func statusOf(code int) metav1.Status {
	if code == 0 {
		return metav1.Status{Status: metav1.StatusSuccess}
	}
	return metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  "NonZeroExitCode",
		Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", code),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(code)}}},
	}
}

// channel writes messages of the protocol, each as one frame.
type channel struct {
	to     io.Writer
	number byte
}

// Write sends one message.
func (c channel) Write(data []byte) (int, error) {
	const finalBinary = 0x82
	frame := []byte{finalBinary, 127}
	frame = binary.BigEndian.AppendUint64(frame, uint64(len(data)+1))
	if _, err := c.to.Write(append(append(frame, c.number), data...)); err != nil {
		return 0, err
	}
	return len(data), nil
}
