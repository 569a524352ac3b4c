package agent

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// webSocket is the receiving end of a WebSocket (RFC 6455). Nothing is ever sent on it.
type webSocket struct {
	reader *bufio.Reader
	io.Closer
}

// openWebSocket asks a server to make a WebSocket of a request, in that protocol. What it answers instead is an error of the API
// server's (apierrors.APIStatus) where it is one.
func openWebSocket(ctx context.Context, client *http.Client, address, protocol string) (*webSocket, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "websocket")
	request.Header.Set("Sec-WebSocket-Version", "13")
	request.Header.Set("Sec-WebSocket-Key", base64.StdEncoding.EncodeToString(key))
	request.Header.Set("Sec-WebSocket-Protocol", protocol)
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	if spoken := response.Header.Get("Sec-WebSocket-Protocol"); spoken != protocol {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the server speaks %q, not %q", spoken, protocol)
	}
	return &webSocket{reader: bufio.NewReader(response.Body), Closer: response.Body}, nil
}

// refusal is the error that an answer stands for.
func refusal(response *http.Response) error {
	const most = 64 << 10
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return fmt.Errorf("the server answered %s: %w", response.Status, err)
	}
	if decoded, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), body); err == nil {
		if status, ok := decoded.(*metav1.Status); ok && status.Status == metav1.StatusFailure {
			return apierrors.FromObject(status)
		}
	}
	return fmt.Errorf("the server answered %s", response.Status)
}

// What a frame of a WebSocket is.
const (
	continuationFrame = 0x0
	textFrame         = 0x1
	binaryFrame       = 0x2
	closingFrame      = 0x8
	pingFrame         = 0x9
	pongFrame         = 0xa
)

// next is the next message, which has at most that many bytes; io.EOF once the server has closed.
func (s *webSocket) next(most int) ([]byte, error) {
	var message []byte
	for {
		kind, final, payload, err := s.frame(most - len(message))
		if err != nil {
			return nil, err
		}
		switch kind {
		case continuationFrame, textFrame, binaryFrame:
			message = append(message, payload...)
			if final {
				return message, nil
			}
		case closingFrame:
			return nil, io.EOF
		case pingFrame, pongFrame: // who reads for half a minute at most need not show that it lives
		default:
			return nil, fmt.Errorf("the server sent a frame of unknown kind %#x", kind)
		}
	}
}

func (s *webSocket) frame(most int) (kind byte, final bool, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(s.reader, head[:]); err != nil {
		return 0, false, nil, err
	}
	length := uint64(head[1] & 0x7f)
	if head[1]&0x80 != 0 {
		return 0, false, nil, errors.New("the server sent a masked frame, which only clients do")
	}
	switch length {
	case 126:
		var long [2]byte
		_, err = io.ReadFull(s.reader, long[:])
		length = uint64(binary.BigEndian.Uint16(long[:]))
	case 127:
		var long [8]byte
		_, err = io.ReadFull(s.reader, long[:])
		length = binary.BigEndian.Uint64(long[:])
	}
	if err != nil {
		return 0, false, nil, err
	}
	if length > uint64(max(most, 0)) {
		return 0, false, nil, errors.New("the server sent more than was asked for")
	}
	payload = make([]byte, length)
	_, err = io.ReadFull(s.reader, payload)
	return head[0] & 0x0f, head[0]&0x80 != 0, payload, err
}
