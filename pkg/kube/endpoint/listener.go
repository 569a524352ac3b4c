package endpoint

import (
	"net"
	"sync"
)

// The names of the limits of connections.
const (
	LimitConnections       = "connections"
	LimitClientConnections = "client-connections"
)

// Connections limits the connections of a listener.
type Connections struct {
	// Max is the maximum number in total, and MaxPerClient that of one peer; 0 for any number. The latter does not apply to peers that may be
	// many clients.
	Max, MaxPerClient int
	Proxies           Proxies
	// Changed is called with 1 and -1 as connections are opened and closed, and Refused with the limit that a connection exceeds.
	Changed func(by float64)
	Refused func(limit string)
}

// Listen returns a listener that closes connections beyond the limits at once.
func (c Connections) Listen(next net.Listener) net.Listener {
	return &listener{Listener: next, Connections: c, seats: NewSeats()}
}

type listener struct {
	net.Listener
	Connections
	seats *Seats
}

// Accept returns the next connection within the limits.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		release, reached := l.seats.Take(l.limitsOf(accepted)...)
		if reached == "" {
			l.Changed(1)
			return &connection{Conn: accepted, end: sync.OnceFunc(func() { release(); l.Changed(-1) })}, nil
		}
		l.Refused(reached)
		_ = accepted.Close() // nothing was written
	}
}

// limitsOf returns the limits that apply to a connection.
func (l *listener) limitsOf(accepted net.Conn) []Limit {
	limits := []Limit{{Name: LimitConnections, Max: l.Max}}
	if peer := addressOf(accepted.RemoteAddr().String()); !l.Proxies.isShared(peer) {
		limits = append(limits, Limit{Name: LimitClientConnections, Holder: networkOf(peer).String(), Max: l.MaxPerClient})
	}
	return limits
}

// connection is a connection that has a seat until it is closed.
type connection struct {
	net.Conn
	end func()
}

// Close closes the connection.
func (c *connection) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// CloseWrite signals to the peer that nothing follows. A server does so before it closes a connection with unread data, so that the peer
// still reads the response.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
