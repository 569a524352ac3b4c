package controller

import (
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mappingPeriod is the time for which a kind that was found is not looked up again.
const mappingPeriod = time.Minute

// renewalInterval is the minimum time between two discoveries of all kinds, however often their definitions change.
const renewalInterval = time.Second

// IsUnserved reports whether an error is the API server's answer to a request for a resource or a version that it does not serve. Unlike other
// errors of apierrors.IsNotFound, it says nothing about the existence of an object, which another version of its kind may show.
func IsUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err)
}

// NewMapper returns a Mapper for an API server. It sends no request.
func NewMapper(config *rest.Config, connection *http.Client) (*Mapper, error) {
	m := newMapper(func() (meta.RESTMapper, error) { return apiutil.NewDynamicRESTMapper(config, connection) }, time.Now)
	return m, m.replace()
}

// Mapper maps kinds to the resources of an API server. It remembers the kinds that controller-runtime's mapper has found: that mapper goes
// through all API groups, several times for each object that is read or applied, and keeps versions that are no longer served until it is
// replaced. It is safe for concurrent use.
type Mapper struct {
	discover func() (meta.RESTMapper, error)
	clock    func() time.Time

	renewal sync.Mutex
	current atomic.Pointer[discovered]
}

// discovered are the kinds of the API server at some time or later.
type discovered struct {
	meta.RESTMapper
	number int64
	at     time.Time
	known  sync.Map // of mapping by schema.GroupVersionKind

	// missing are the errors of kinds that exist in no version, by schema.GroupKind.
	missing sync.Map
}

// mapping is a kind, and when it was found.
type mapping struct {
	meta.RESTMapping
	at time.Time
}

func newMapper(discover func() (meta.RESTMapper, error), clock func() time.Time) *Mapper {
	return &Mapper{discover: discover, clock: clock}
}

// Renew drops what is known about all kinds, because definitions have changed. It reports false if that has just been done: then the answer of
// the API server may still be the former one, and the caller tries again later.
func (m *Mapper) Renew() bool {
	m.renewal.Lock()
	defer m.renewal.Unlock()
	if m.clock().Sub(m.current.Load().at) < renewalInterval {
		return false
	}
	return m.replace() == nil
}

func (m *Mapper) replace() error {
	found, err := m.discover()
	if err != nil {
		return err
	}
	next := &discovered{RESTMapper: found, at: m.clock()}
	if last := m.current.Load(); last != nil {
		next.number = last.number + 1
	}
	m.current.Store(next)
	return nil
}

// Renewals returns how often kinds were dropped. A client keeps the resource of each kind that it has used, so it has to be replaced when the
// number changes.
func (m *Mapper) Renewals() int64 { return m.current.Load().number }

// RESTMapping returns the resource of a kind in one of the versions, or in the preferred version if there are none. An error that
// meta.IsNoMatchError recognizes is current if a version is given, and up to a second old otherwise.
func (m *Mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) > 0 {
		return m.current.Load().mapping(m.clock(), kind, versions)
	}
	found, err := m.current.Load().preferred(m.clock(), kind)
	// controller-runtime's mapper looks for a kind only in the versions that its group had at first.
	if meta.IsNoMatchError(err) && m.Renew() {
		found, err = m.current.Load().preferred(m.clock(), kind)
	}
	return found, err
}

// preferred returns the resource of a kind in its preferred version. A kind that is missing is looked up once: it costs requests.
func (d *discovered) preferred(now time.Time, kind schema.GroupKind) (*meta.RESTMapping, error) {
	if missing, is := d.missing.Load(kind); is {
		return nil, missing.(error)
	}
	found, err := d.mapping(now, kind, nil)
	if meta.IsNoMatchError(err) {
		d.missing.Store(kind, err)
	}
	return found, err
}

// mapping returns the resource of a kind in one of the versions, or in the preferred one.
func (d *discovered) mapping(now time.Time, kind schema.GroupKind, versions []string) (*meta.RESTMapping, error) {
	if len(versions) > 1 {
		return d.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion("")
	if len(versions) == 1 {
		key.Version = versions[0]
	}
	if last, known := d.known.Load(key); known && now.Sub(last.(mapping).at) < mappingPeriod {
		found := last.(mapping).RESTMapping // a copy: the caller may change it
		return &found, nil
	}
	found, err := d.RESTMapper.RESTMapping(kind, versions...)
	// The first answer does not distinguish a version that is not served from one whose API server does not respond; the second one does.
	if failed := (*apiutil.ErrResourceDiscoveryFailed)(nil); errors.As(err, &failed) {
		found, err = d.RESTMapper.RESTMapping(kind, versions...)
	}
	if err != nil {
		d.known.Delete(key)
		return nil, err
	}
	d.known.Store(key, mapping{RESTMapping: *found, at: now})
	return found, nil
}

// RESTMappings returns the resources of a kind in all versions that are served, or in those of the given ones that are.
func (m *Mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.current.Load().RESTMappings(kind, versions...)
}

// KindFor returns the kind of a partially specified resource.
func (m *Mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.current.Load().KindFor(resource)
}

// KindsFor returns all kinds of a partially specified resource.
func (m *Mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.current.Load().KindsFor(resource)
}

// ResourceFor completes a partially specified resource.
func (m *Mapper) ResourceFor(resource schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.current.Load().ResourceFor(resource)
}

// ResourcesFor returns all resources that match a partially specified one.
func (m *Mapper) ResourcesFor(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.current.Load().ResourcesFor(resource)
}

// ResourceSingularizer returns the singular of a resource's name.
func (m *Mapper) ResourceSingularizer(resource string) (string, error) {
	return m.current.Load().ResourceSingularizer(resource)
}
