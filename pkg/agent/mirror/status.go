package mirror

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Statuses passes the state of Instances that a mirror does not show from the mirror controller to the reporter. An entry lives as long as
// the Instance on the hub and the process; the mirror controller determines it again when needed.
type Statuses struct {
	mutex   sync.Mutex
	byName  map[string]Status
	Changed chan event.TypedGenericEvent[client.Object]
}

// Status is the state of the Instance with that uid: its removal is complete, or why it cannot be mirrored.
type Status struct {
	uid     types.UID
	Removed bool
	Problem string
}

// NewStatuses returns empty Statuses.
func NewStatuses() *Statuses {
	const room = 1024 // the channel's reader only moves events to a queue
	return &Statuses{byName: map[string]Status{}, Changed: make(chan event.TypedGenericEvent[client.Object], room)}
}

// SetRemoved records that the removal of an Instance is complete.
func (s *Statuses) SetRemoved(i *kudo.Instance) {
	s.edit(i, func(status *Status) { status.Removed = true })
}

// SetProblem records why an Instance cannot be mirrored; empty once it can.
func (s *Statuses) SetProblem(i *kudo.Instance, problem string) {
	s.edit(i, func(status *Status) { status.Problem = problem })
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

// Forget drops the entry of an Instance that the hub no longer has.
func (s *Statuses) Forget(name string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.byName, name)
}

// Get returns the entry of an Instance.
func (s *Statuses) Get(i *kudo.Instance) Status {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.of(i)
}

// of returns the entry of exactly that Instance.
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
