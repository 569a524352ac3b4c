package monitoring

import (
	"maps"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
)

// Limits for clients of probes: kubelets send headers of a few hundred bytes, and close the connection after each probe.
const (
	maxProbeHeaderBytes       = 4 << 10
	maxProbeConnections       = 500
	maxProbeClientConnections = 50
)

// WithProbes returns a manager whose checks are served at an address; not at all if that is "0". They are served before there is a leader, and
// before caches are filled.
func WithProbes(mgr manager.Manager, address string) (manager.Manager, error) {
	probed := &probed{Manager: mgr, health: &healthz.Handler{}, readiness: &healthz.Handler{}}
	if isOff(address) {
		return probed, nil
	}
	mux := http.NewServeMux()
	for path, checks := range map[string]*healthz.Handler{"/healthz": probed.health, "/readyz": probed.readiness} {
		handler := http.StripPrefix(path, checks)
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return probed, add(mgr, "probes", Probes(address, mux))
}

// Probes returns a server of probes at an address.
func Probes(address string, handler http.Handler) *endpoint.Public {
	return &endpoint.Public{
		Address: address, Handler: handler, MaxHeaderBytes: maxProbeHeaderBytes, MaxConnections: maxProbeConnections,
		MaxClientConnections: maxProbeClientConnections,
	}
}

// probed is a manager with checks. They are added before it starts.
type probed struct {
	manager.Manager
	health, readiness *healthz.Handler
}

// AddHealthzCheck adds a check of /healthz.
func (p *probed) AddHealthzCheck(name string, check healthz.Checker) error {
	p.health.Checks = with(p.health.Checks, name, check)
	return nil
}

// AddReadyzCheck adds a check of /readyz.
func (p *probed) AddReadyzCheck(name string, check healthz.Checker) error {
	p.readiness.Checks = with(p.readiness.Checks, name, check)
	return nil
}

func with(checks map[string]healthz.Checker, name string, check healthz.Checker) map[string]healthz.Checker {
	more := map[string]healthz.Checker{name: check}
	maps.Copy(more, checks)
	return more
}
