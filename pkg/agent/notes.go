package agent

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// notes is what the mirror lets the reporter know of Instances on the hub: what cannot be seen in a mirror. They live as long as the
// Instance on the hub and the process; the mirror finds out again what it needs.
type notes struct {
	mutex   sync.Mutex
	byName  map[string]note
	changed chan event.TypedGenericEvent[client.Object]
}

// note is of the Instance of that uid: nothing is left of it, or why it cannot be mirrored.
type note struct {
	uid     types.UID
	removed bool
	fault   string
}

func newNotes() *notes {
	const room = 1024 // the channel's reader only moves events to a queue
	return &notes{byName: map[string]note{}, changed: make(chan event.TypedGenericEvent[client.Object], room)}
}

// setRemoved notes that nothing is left of an Instance.
func (n *notes) setRemoved(i *kudo.Instance) {
	n.edit(i, func(note *note) { note.removed = true })
}

// setFault notes why an Instance cannot be mirrored; empty once it can.
func (n *notes) setFault(i *kudo.Instance, fault string) {
	n.edit(i, func(note *note) { note.fault = fault })
}

func (n *notes) edit(i *kudo.Instance, edit func(*note)) {
	n.mutex.Lock()
	known := n.of(i)
	noted := known
	edit(&noted)
	n.byName[i.Name] = noted
	n.mutex.Unlock()
	if noted != known {
		n.wake(i)
	}
}

// forget drops what is noted of an Instance that the hub does not have any more.
func (n *notes) forget(name string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	delete(n.byName, name)
}

func (n *notes) read(i *kudo.Instance) note {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.of(i)
}

// of is what is noted of exactly that Instance.
func (n *notes) of(i *kudo.Instance) note {
	if known := n.byName[i.Name]; known.uid == i.UID {
		return known
	}
	return note{uid: i.UID}
}

func (n *notes) wake(i *kudo.Instance) {
	n.changed <- event.TypedGenericEvent[client.Object]{
		Object: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name}},
	}
}
