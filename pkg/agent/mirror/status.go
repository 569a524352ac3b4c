package mirror

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Statuses is what the mirror lets the reporter know of Instances on the hub: what cannot be seen in a mirror. They live as long as the
// Instance on the hub and the process; the mirror finds out again what it needs.
type Statuses struct {
	mutex   sync.Mutex
	byName  map[string]Status
	Changed chan event.TypedGenericEvent[client.Object]
}

// Status is of the Instance of that uid: nothing is left of it, or why it cannot be mirrored.
type Status struct {
	uid     types.UID
	Removed bool
	Fault   string
}

// NewStatuses returns notes of nothing.
func NewStatuses() *Statuses {
	const room = 1024 // the channel's reader only moves events to a queue
	return &Statuses{byName: map[string]Status{}, Changed: make(chan event.TypedGenericEvent[client.Object], room)}
}

// SetRemoved notes that nothing is left of an Instance.
func (s *Statuses) SetRemoved(i *kudo.Instance) {
	s.edit(i, func(status *Status) { status.Removed = true })
}

// SetFault notes why an Instance cannot be mirrored; empty once it can.
func (s *Statuses) SetFault(i *kudo.Instance, fault string) {
	s.edit(i, func(status *Status) { status.Fault = fault })
}

func (s *Statuses) edit(i *kudo.Instance, edit func(*Status)) {
	s.mutex.Lock()
	known := s.of(i)
	noted := known
	edit(&noted)
	s.byName[i.Name] = noted
	s.mutex.Unlock()
	if noted != known {
		s.wake(i)
	}
}

// Forget drops what is noted of an Instance that the hub does not have any more.
func (s *Statuses) Forget(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.byName, name)
}

// Read returns what is noted of an Instance.
func (s *Statuses) Read(i *kudo.Instance) Status {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.of(i)
}

// of is what is noted of exactly that Instance.
func (s *Statuses) of(i *kudo.Instance) Status {
	if known := s.byName[i.Name]; known.uid == i.UID {
		return known
	}
	return Status{uid: i.UID}
}

func (s *Statuses) wake(i *kudo.Instance) {
	s.Changed <- event.TypedGenericEvent[client.Object]{
		Object: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name}},
	}
}
