package agent

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// notes is what the mirror lets the reporter know of Instances on the hub, by their uid: what cannot be seen in a mirror.
// They live as long as the process; the mirror finds out again what it needs.
type notes struct {
	mutex   sync.Mutex
	removed map[types.UID]bool
	faults  map[types.UID]string
	changed chan event.TypedGenericEvent[client.Object]
}

func newNotes() *notes {
	const room = 1024 // the channel's reader only moves events to a queue
	return &notes{
		removed: map[types.UID]bool{},
		faults:  map[types.UID]string{},
		changed: make(chan event.TypedGenericEvent[client.Object], room),
	}
}

// setRemoved notes that nothing is left of an Instance.
func (n *notes) setRemoved(i *kudo.Instance) {
	n.mutex.Lock()
	known := n.removed[i.UID]
	n.removed[i.UID] = true
	n.mutex.Unlock()
	if !known {
		n.wake(i)
	}
}

// setFault notes why an Instance cannot be mirrored; empty once it can.
func (n *notes) setFault(i *kudo.Instance, fault string) {
	n.mutex.Lock()
	known := n.faults[i.UID]
	n.faults[i.UID] = fault
	if fault == "" {
		delete(n.faults, i.UID)
	}
	n.mutex.Unlock()
	if known != fault {
		n.wake(i)
	}
}

func (n *notes) of(i *kudo.Instance) (removed bool, fault string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.removed[i.UID], n.faults[i.UID]
}

func (n *notes) wake(i *kudo.Instance) {
	n.changed <- event.TypedGenericEvent[client.Object]{
		Object: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: i.Namespace, Name: i.Name}},
	}
}
