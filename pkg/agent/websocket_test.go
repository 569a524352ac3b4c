package agent

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/exec"
)

// sent is a WebSocket on which a server has sent bytes, and closed the connection then.
func sent(frames ...[]byte) *webSocket {
	return &webSocket{reader: bufio.NewReader(bytes.NewReader(slices.Concat(frames...))), Closer: io.NopCloser(nil)}
}

// frame is one whose length is said in the shortest way.
func frame(head byte, payload string) []byte {
	if len(payload) < 126 {
		return append([]byte{head, byte(len(payload))}, payload...)
	}
	return append(binary.BigEndian.AppendUint16([]byte{head, 126}, uint16(len(payload))), payload...)
}

func TestWebSocketMessages(t *testing.T) {
	const final, most = 0x80, 300
	middle, large := strings.Repeat("m", 200), strings.Repeat("l", most)
	for sentence, test := range map[string]struct {
		socket *webSocket
		want   []string
		fault  string
	}{
		"of each length": {sent(frame(final|binaryFrame, "short"),
			frame(final|binaryFrame, middle),
			[]byte{final | textFrame, 127, 0, 0, 0, 0, 0, 0, 1, 44}, []byte(large)), []string{"short", middle, large}, "EOF"},
		"in several frames, with one to keep the connection between": {sent(frame(binaryFrame, "a"), frame(final|pingFrame, "?"),
			frame(continuationFrame, "b"), frame(final|continuationFrame, "c"), frame(final|binaryFrame, "")), []string{"abc", ""}, "EOF"},
		"until the server closes":    {sent(frame(final|closingFrame, ""), frame(final|binaryFrame, "late")), nil, "EOF"},
		"until the server is lost":   {sent(frame(final|binaryFrame, "whole")[:4]), nil, "unexpected EOF"},
		"that are too long":          {sent([]byte{final | binaryFrame, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), nil, "more than was asked for"},
		"that are too long in parts": {sent(frame(binaryFrame, middle), frame(final|continuationFrame, middle)), nil, "more than was asked for"},
		"that are masked":            {sent([]byte{final | binaryFrame, 0x81, 1, 2, 3, 4, 5}), nil, "masked"},
		"of a kind that is unknown":  {sent(frame(final|0x3, "x")), nil, "unknown kind 0x3"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got []string
			for {
				message, err := test.socket.next(most)
				if err != nil {
					if !strings.Contains(err.Error(), test.fault) {
						t.Errorf("the error is %v, want one with %q", err, test.fault)
					}
					break
				}
				got = append(got, string(message))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReceiveTellsHowTheCommandEnded(t *testing.T) {
	message := func(text string) []byte { return frame(0x82, text) }
	for sentence, test := range map[string]struct {
		socket *webSocket
		want   string
		code   int
		fault  string
	}{
		"well": {sent(message("\x01"), message("\x01out"), message("\x02careful"), message("\x01put"), message("\x03{\"status\":\"Success\"}")),
			"output", 0, ""},
		"with words that cannot be read": {sent(message("\x03{")), "", 0, "reading how the command ended"},
		"with no word":                   {sent(message("\x01output")), "", 0, "unexpected EOF"},
		"with more than most":            {sent(message("\x01twelve bytes")), "", 0, "writes more than 10 bytes"},
		"because of the kubelet":         {sent(message("\x03" + `{"status":"Failure","message":"no such container"}`)), "", 0, "no such container"},
		"badly": {sent(message("\x02no such file\n"), message("\x03"+`{"status":"Failure","reason":"NonZeroExitCode",`+
			`"message":"command terminated","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`)), "", 7, "command terminated: no such file"},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, err := receive(test.socket, 10)
			if test.fault == "" {
				if err != nil || string(output) != test.want {
					t.Errorf("got %q, %v, want %q", output, err, test.want)
				}
				return
			}
			var ended exec.CodeExitError
			if errors.As(err, &ended); err == nil || !strings.Contains(err.Error(), test.fault) || ended.Code != test.code {
				t.Errorf("the error is %v with code %d, want one with %q and code %d", err, ended.Code, test.fault, test.code)
			}
		})
	}
}

// FuzzWebSocket: whatever a server sends, no message is longer than was asked for, and the end is reached.
func FuzzWebSocket(f *testing.F) {
	for _, seed := range [][]byte{frame(0x82, "\x01output"), frame(0x02, "a"), {0x82, 126, 0, 2, 1, 2}, {0x88, 0}, {0x82, 0xff}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		const most = 64
		socket := sent(content)
		for {
			message, err := socket.next(most)
			if err != nil {
				return
			}
			if len(message) > most {
				t.Fatalf("a message of %d bytes", len(message))
			}
		}
	})
}
