// Package port reserves loopback ports of this machine for programs that are started later. It touches no cluster.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the ranges that operating systems give to outgoing connections. Inside of these, a client
// that retries while its server is down could be given the server's own port, and keep it from coming back.
const (
	First = 20000
	Last  = 32000 // the first that is too high
)

// Reservation keeps a port for one server, before it listens and while it is restarted: Take and Find give it to no other process.
type Reservation struct {
	Port int

	// The port of that number for UDP, which no server here uses, is the lock: the kernel frees it with the process.
	lock net.PacketConn
}

// Take reserves that port; ok is false where it is reserved, or a server listens on it.
func Take(port int) (r *Reservation, ok bool) {
	lock, err := net.ListenPacket("udp", Address(port))
	if err != nil {
		return nil, false
	}
	listener, err := net.Listen("tcp", Address(port))
	if err != nil || listener.Close() != nil {
		_ = lock.Close() // nothing was sent
		return nil, false
	}
	return &Reservation{Port: port, lock: lock}, true
}

// Find reserves any port between First and Last; an error says that there is none left.
func Find() (*Reservation, error) {
	const span = Last - First
	for next, tries := rand.IntN(span), 0; tries < span; next, tries = next+1, tries+1 {
		if r, ok := Take(First + next%span); ok {
			return r, nil
		}
	}
	return nil, fmt.Errorf("finding a free port: none is left between %d and %d", First, Last)
}

// Address is the HOST:PORT of the port.
func (r *Reservation) Address() string { return Address(r.Port) }

// Release gives the port up.
func (r *Reservation) Release() { _ = r.lock.Close() }

// Address is the HOST:PORT of a loopback port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
