// Package port reserves loopback ports of this machine for programs that start later. It touches no cluster.
package port

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are below the ephemeral ranges of operating systems. Inside of these, a client that retries while its server is down could be
// assigned the server's own port, and block its restart.
const (
	First = 20000
	Last  = 32000 // exclusive
)

// Reservation reserves a port for one server, before it listens and while it restarts: Take and Find do not return it to another process.
type Reservation struct {
	Port int

	// The UDP port of the same number, which no server here uses, is the lock: the kernel releases it when the process ends.
	lock net.PacketConn
}

// Take reserves that port; ok is false if it is reserved or a server listens on it.
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

// Find reserves any free port between First and Last. It returns an error if there is none.
func Find() (*Reservation, error) {
	const span = Last - First
	for next, tries := rand.IntN(span), 0; tries < span; next, tries = next+1, tries+1 {
		if r, ok := Take(First + next%span); ok {
			return r, nil
		}
	}
	return nil, fmt.Errorf("finding a free port: none is left between %d and %d", First, Last)
}

// Address returns the HOST:PORT of the port.
func (r *Reservation) Address() string { return Address(r.Port) }

// Release releases the port.
func (r *Reservation) Release() { _ = r.lock.Close() }

// Address returns the HOST:PORT of a loopback port.
func Address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
