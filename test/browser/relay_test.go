package browser

import (
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// relay forwards connections to the API server until it fails.
type relay struct {
	listener net.Listener
	target   string

	lock        sync.Mutex
	connections []net.Conn
	// refusing closes all connections; silent keeps them and forwards nothing until it is closed.
	refusing bool
	silent   chan struct{}
}

// startRelay returns a relay to the API server, and the config of a connection through the relay.
func startRelay() (*relay, *rest.Config) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", anywhere)
	Expect(err).NotTo(HaveOccurred())
	target, _, err := rest.DefaultServerUrlFor(env.Config)
	Expect(err).NotTo(HaveOccurred())
	passing := make(chan struct{})
	close(passing)
	r := &relay{listener: listener, target: target.Host, silent: passing}
	go r.accept()
	DeferCleanup(func() {
		r.mend()
		Expect(listener.Close()).To(Succeed())
		r.close()
	})
	config := rest.CopyConfig(env.Config)
	config.Host = "https://" + listener.Addr().String()
	return r, config
}

// refuse closes all connections, and every new one.
func (r *relay) refuse() {
	r.lock.Lock()
	r.refusing = true
	r.lock.Unlock()
	r.close()
}

// silence keeps all connections, and forwards nothing.
func (r *relay) silence() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.silent = make(chan struct{})
}

// mend makes the relay forward again.
func (r *relay) mend() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.refusing = false
	select {
	case <-r.silent:
	default:
		close(r.silent)
	}
}

func (r *relay) close() {
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, connection := range r.connections {
		_ = connection.Close()
	}
	r.connections = nil
}

func (r *relay) accept() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.target)
		r.lock.Lock()
		refusing := r.refusing || err != nil
		if !refusing {
			r.connections = append(r.connections, near, far)
		}
		r.lock.Unlock()
		if refusing {
			_ = near.Close()
			continue
		}
		go r.forward(near, far)
		go r.forward(far, near)
	}
}

// forward copies what one side sends to the other one.
func (r *relay) forward(from, to net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.lock.Lock()
		silent := r.silent
		r.lock.Unlock()
		<-silent
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}
