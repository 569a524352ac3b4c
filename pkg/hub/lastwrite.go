package hub

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lastWrites remembers which version of an object the last write led to, until the cache has it. It is nothing that could be read
// anywhere: whoever decides by the cache alone takes its own write for undone, and writes again.
type lastWrites struct {
	mutex    sync.Mutex
	versions map[types.NamespacedName]version
}

// version is a resource version, and when it came about.
type version struct {
	resource string
	at       time.Time
}

func newLastWrites() *lastWrites { return &lastWrites{versions: map[types.NamespacedName]version{}} }

// note remembers the version of an object that was just written.
func (w *lastWrites) note(object client.Object) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.versions[client.ObjectKeyFromObject(object)] = version{resource: object.GetResourceVersion(), at: time.Now()}
}

// noteSince is note where the object has another version by now than the one that was read.
func (w *lastWrites) noteSince(object client.Object, read string) {
	if object.GetResourceVersion() != read {
		w.note(object)
	}
}

// forget says that the object is gone.
func (w *lastWrites) forget(object types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.versions, object)
}

// patience is how long a write is waited for: one into an API server that was restored from a backup since will never come.
const patience = 10 * time.Second

// awaits is how long to wait, at most, for the cache to have what was written last; zero where object, as the cache has it, is not older.
func (w *lastWrites) awaits(object client.Object) time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	last, known := w.versions[key]
	if !known {
		return 0
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), last.resource)
	if left := patience - time.Since(last.at); err == nil && order < 0 && left > 0 {
		return left
	}
	delete(w.versions, key)
	return 0
}
