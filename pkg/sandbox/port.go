package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges that operating systems give to outgoing connections. Inside of these, a client
// that retries while its server is down could be given the server's own port, and keep it from coming back.
const (
	firstPort = 20000
	lastPort  = 32000
)

// allocatePorts finds a free loopback port for every key: the previous one where it is free, else any. It fails when too
// few are free.
func allocatePorts(keys []string, previous map[string]int) (map[string]int, error) {
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	ports := make(map[string]int, len(keys))
	take := func(key string, port int) bool {
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			return false
		}
		held = append(held, listener)
		ports[key] = port
		return true
	}
	for _, key := range keys {
		if port, known := previous[key]; known {
			take(key, port)
		}
	}
	const span = lastPort - firstPort
	next, tries := rand.IntN(span), 0
	for _, key := range keys {
		for _, done := ports[key]; !done; next, tries = next+1, tries+1 {
			if tries == span {
				return nil, errors.New("finding free ports: " + fmt.Sprintf("none left between %d and %d", firstPort, lastPort))
			}
			done = take(key, firstPort+next%span)
		}
	}
	return ports, nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
