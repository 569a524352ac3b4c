package controller

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mappingPeriod is the time for which a kind that was found is not looked up again.
const mappingPeriod = time.Minute

// NewMapper returns a mapper that remembers the kinds that controller-runtime's mapper has found. That mapper goes through all API groups,
// several times for each object that is read or applied. NewMapper is manager.Options.MapperProvider.
func NewMapper(config *rest.Config, connection *http.Client) (meta.RESTMapper, error) {
	found, err := apiutil.NewDynamicRESTMapper(config, connection)
	if err != nil {
		return nil, err
	}
	return remembering(found, time.Now), nil
}

// mapper remembers the results of RESTMapping. It is safe for concurrent use.
type mapper struct {
	meta.RESTMapper
	clock func() time.Time
	known sync.Map // of mapping by schema.GroupVersionKind
}

// mapping is a kind, and when it was found.
type mapping struct {
	meta.RESTMapping
	at time.Time
}

func remembering(of meta.RESTMapper, clock func() time.Time) *mapper {
	return &mapper{RESTMapper: of, clock: clock}
}

// RESTMapping returns the resource of a kind in one of the versions, or in the preferred version if there are none.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) > 1 {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	key := kind.WithVersion("")
	if len(versions) == 1 {
		key.Version = versions[0]
	}
	now := m.clock()
	if last, known := m.known.Load(key); known && now.Sub(last.(mapping).at) < mappingPeriod {
		found := last.(mapping).RESTMapping // a copy: the caller may change it
		return &found, nil
	}
	found, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		m.known.Delete(key)
		return nil, err
	}
	m.known.Store(key, mapping{RESTMapping: *found, at: now})
	return found, nil
}
