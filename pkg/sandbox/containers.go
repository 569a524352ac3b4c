package sandbox

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/sandbox/kubelet"
)

// simulated is the default content of a file in a container: valid as text and as a list of environment variables.
const simulated = "SIMULATED=true\n"

// apiServerAtKubelet is the only client that the simulated kubelets accept: the cluster's API server.
func apiServerAtKubelet() identity { return identity{User: "kube-apiserver-kubelet-client"} }

// Files returns the folder with the files that the init containers of Pipe tasks produce in the cluster, each below a folder named after
// its volume. A missing file has a default line of text as its content.
func (c *Cluster) Files() string { return c.plan.folder().path("files") }

// openFile opens a file of a container by its path there. Paths cannot leave the folder of files.
func (c *Cluster) openFile(name string) (io.ReadCloser, error) {
	inside, found := strings.CutPrefix(path.Clean(name), pipe.Folder+"/")
	if !found {
		return nil, fs.ErrNotExist
	}
	file, err := os.OpenInRoot(c.Files(), inside)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(strings.NewReader(simulated)), nil
	}
	return file, err
}

// startKubelets serves the kubelet API of the cluster's nodes in this process.
func (c *Cluster) startKubelets() error {
	folder := c.plan.folder()
	pair, err := tls.LoadX509KeyPair(folder.pki("apiserver.crt"), folder.pki("apiserver.key")) // valid for loopback
	if err != nil {
		return fmt.Errorf("reading the key of the kubelets: %w", err)
	}
	if err := os.MkdirAll(c.Files(), 0o700); err != nil {
		return fmt.Errorf("creating the folder of files in containers: %w", err)
	}
	listener, err := net.Listen("tcp", loopback(c.plan.port("kubelet")))
	if err != nil {
		return fmt.Errorf("starting the kubelets: %w", err)
	}
	errorLog, err := openLog(folder.log("kubelet"))
	if err != nil {
		_ = listener.Close()
		return err
	}
	clients := x509.NewCertPool()
	clients.AddCert(c.authority.certificate)
	server := &http.Server{
		Handler:           onlyFor(apiServerAtKubelet(), kubelet.Handler(c.openFile)),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(errorLog, "", log.LstdFlags),
	}
	c.stops = append(c.stops, func() { _ = server.Close() })
	c.serving.Go(func() {
		defer errorLog.Close()
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintf(errorLog, "the kubelets ended; Pipe tasks will fail: %v\n", err)
		}
	})
	return nil
}

// onlyFor rejects requests of all other identities.
func onlyFor(id identity, handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != id.User {
			http.Error(w, "only the API server has access", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
