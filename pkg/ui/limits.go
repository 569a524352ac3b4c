package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tandem-addons/tandem/pkg/kube/endpoint"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Limits are the limits of a server's clients; zero values select the defaults.
type Limits struct {
	// MaxLivePages is the maximum number of pages that are kept up to date at a time, and MaxUserLivePages those of one user.
	MaxLivePages, MaxUserLivePages int
	// MaxClientConnections is the maximum number of connections from one address, and of live pages of one client of a proxy.
	MaxClientConnections int
	// Proxies are the proxies whose header X-Forwarded-For is believed.
	Proxies  endpoint.Proxies
	Timeouts endpoint.Timeouts
}

// The defaults of the limits.
const (
	DefaultMaxLivePages         = 500
	DefaultMaxUserLivePages     = 50
	DefaultMaxClientConnections = 256
)

const (
	// maxSessionLivePages is the maximum number of live pages of one session: a browser opens six connections to a server over HTTP/1.1.
	maxSessionLivePages = 20
	// maxUserRequests is the maximum number of requests of one user at a time, without live pages.
	maxUserRequests = 32
	// retryDelay is the time after which a client should repeat a request that exceeds a limit.
	retryDelay = 15 * time.Second
	// minConnections is the maximum number of connections, unless live pages need more.
	minConnections = 2048
)

// The names of the limits of requests.
const (
	limitLivePages        = "live-pages"
	limitClientLivePages  = "client-live-pages"
	limitUserLivePages    = "user-live-pages"
	limitSessionLivePages = "session-live-pages"
	limitUserRequests     = "user-requests"
)

func (l Limits) orDefault() Limits {
	l.MaxLivePages = cmp.Or(l.MaxLivePages, DefaultMaxLivePages)
	l.MaxUserLivePages = cmp.Or(l.MaxUserLivePages, DefaultMaxUserLivePages)
	l.MaxClientConnections = cmp.Or(l.MaxClientConnections, DefaultMaxClientConnections)
	l.Timeouts = l.Timeouts.OrDefault()
	return l
}

// connections returns the limits of connections.
func (l Limits) connections(m meters) endpoint.Connections {
	return endpoint.Connections{
		Max: max(minConnections, 2*l.MaxLivePages), MaxPerClient: l.MaxClientConnections, Proxies: l.Proxies,
		Changed: m.connections.Add, Refused: m.refuse,
	}
}

// ofLivePage returns the limits of a page that is kept up to date, for a user's session.
func (l Limits) ofLivePage(r *http.Request, user, session string) []endpoint.Limit {
	limits := []endpoint.Limit{
		{Name: limitSessionLivePages, Holder: session, Max: maxSessionLivePages},
		{Name: limitUserLivePages, Holder: user, Max: l.MaxUserLivePages},
		{Name: limitLivePages, Max: l.MaxLivePages},
	}
	if client, isOne := l.Proxies.Client(r); isOne {
		limits = append(limits, endpoint.Limit{Name: limitClientLivePages, Holder: client.String(), Max: l.MaxClientConnections})
	}
	return limits
}

// ofRequest returns the limits of any other request.
func (l Limits) ofRequest(user string) []endpoint.Limit {
	return []endpoint.Limit{{Name: limitUserRequests, Holder: user, Max: maxUserRequests}}
}

// explain returns the text for a user who has reached a limit.
func (l Limits) explain(limit string) string {
	switch limit {
	case limitSessionLivePages:
		return fmt.Sprintf("your session has the maximum of %s; close some", text.Plural(maxSessionLivePages, "live page"))
	case limitUserLivePages:
		return fmt.Sprintf("you have the maximum of %s; close some", text.Plural(l.MaxUserLivePages, "live page"))
	case limitClientLivePages:
		return fmt.Sprintf("your address has the maximum of %s; close some", text.Plural(l.MaxClientConnections, "live page"))
	case limitLivePages:
		return fmt.Sprintf("the dashboard has the maximum of %s", text.Plural(l.MaxLivePages, "live page"))
	default:
		return "you have sent too many requests at a time; try again"
	}
}

// meters are the metrics of a server.
type meters struct {
	connections, livePages prometheus.Gauge
	refusals               *prometheus.CounterVec
}

func newMeters() meters {
	return meters{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "addon_ui_connections", Help: "Number of open connections of the dashboard."}),
		livePages:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "addon_ui_live_pages", Help: "Number of pages that are kept up to date."}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "addon_ui_refusals_total", Help: "Number of connections and requests that the dashboard has refused, by the limit that was reached.",
		}, []string{"limit"}),
	}
}

func (m meters) refuse(limit string) { m.refusals.WithLabelValues(limit).Inc() }
