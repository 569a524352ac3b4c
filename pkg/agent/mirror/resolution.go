package mirror

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/mirror"
)

// resolution identifies one resolution of an Instance by the hub: as long as it holds, the Instance has the same OperatorVersion.
type resolution struct {
	uid        types.UID
	generation int64
	at         time.Time
	losses     int       // in this process; distinguishes two resolutions within a second
	version    types.UID // of the OperatorVersion that the parent of a child has chosen
}

// resolutions holds the mirrored OperatorVersion of each resolved Instance, so that it is read on the hub once per resolution.
type resolutions struct {
	mutex  sync.Mutex
	losses map[string]int // by Instance: how often it was seen unresolved
	chosen map[string]choice
}

// choice is the OperatorVersion on the managed cluster that an Instance runs by a resolution.
type choice struct {
	by      resolution
	version types.NamespacedName
}

func newResolutions() *resolutions {
	return &resolutions{losses: map[string]int{}, chosen: map[string]choice{}}
}

// of returns the current resolution of a resolved Instance.
func (r *resolutions) of(wanted *kudo.Instance) resolution {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return resolution{
		uid: wanted.UID, generation: wanted.Generation, losses: r.losses[wanted.Name], version: wanted.VersionUID(),
		at: meta.FindStatusCondition(wanted.Status.Conditions, kudo.ConditionResolved).LastTransitionTime.Time,
	}
}

// version returns the OperatorVersion of a resolution; not known before it was noted.
func (r *resolutions) version(name string, by resolution) (version types.NamespacedName, known bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	chosen, known := r.chosen[name]
	return chosen.version, known && chosen.by == by
}

// hasChoice reports whether an OperatorVersion of any resolution of an Instance was noted.
func (r *resolutions) hasChoice(name string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, known := r.chosen[name]
	return known
}

// note records the OperatorVersion of a resolution.
func (r *resolutions) note(name string, by resolution, version types.NamespacedName) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.chosen[name] = choice{by: by, version: version}
}

// without returns the OperatorVersions, except for those that an Instance on the hub has chosen.
func (r *resolutions) without(versions []kudo.OperatorVersion) []kudo.OperatorVersion {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	chosen := map[types.NamespacedName]bool{}
	for _, c := range r.chosen {
		chosen[c.version] = true
	}
	return slices.DeleteFunc(slices.Clone(versions), func(v kudo.OperatorVersion) bool { return chosen[client.ObjectKeyFromObject(&v)] })
}

// forget drops an Instance that the hub no longer has.
func (r *resolutions) forget(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.chosen, name)
	delete(r.losses, name)
}

// recordLosses admits every event, and ends the resolution of an Instance that is not resolved.
func (r *resolutions) recordLosses() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		if !mirror.IsResolved(o.(*kudo.Instance)) {
			r.mutex.Lock()
			defer r.mutex.Unlock()
			r.losses[o.GetName()]++
		}
		return true
	})
}
