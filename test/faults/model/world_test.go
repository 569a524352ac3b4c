package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/test/faults/history"
)

const (
	cluster  = history.Cluster // the namespace of Instances, on the hub and on the managed cluster
	pushedTo = history.Packages
	root     = history.Operator // the Instance that users create
)

// noon is the time of the model, which never changes: no package version under test has timeouts.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// world is the model: the objects on the hub and on the managed cluster, and everything that the oracles remember about their past.
type world struct {
	t TB
	// versions are the OperatorVersions on the hub by name, and mirrored those that the agent has ever copied, by uid.
	versions map[string]*kudo.OperatorVersion
	mirrored map[types.UID]*kudo.OperatorVersion
	problems map[types.UID][]pack.Problem
	// hub holds the Instances on the hub, mirrors those on the managed cluster.
	hub, mirrors *shelf
	objects      map[kudo.InventoryEntry]*unstructured.Unstructured
	webhookDown  bool

	// fault is the next fault; planned becomes it before the write of a program with that number.
	fault, planned fault
	// writes is the number of writes so far, uids that of generated uids.
	writes, uids int
	// faults is the number of faults so far.
	faults int
	memory
}

// TB is what the model needs of testing.TB and of rapid.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

func newWorld(t TB, versions []*kudo.OperatorVersion) *world {
	w := &world{
		t: t, versions: map[string]*kudo.OperatorVersion{}, mirrored: map[types.UID]*kudo.OperatorVersion{},
		problems: map[types.UID][]pack.Problem{}, hub: &shelf{of: map[string][]*kudo.Instance{}}, mirrors: &shelf{of: map[string][]*kudo.Instance{}},
		objects: map[kudo.InventoryEntry]*unstructured.Unstructured{}, memory: newMemory(),
	}
	for _, version := range versions {
		w.push(version)
	}
	return w
}

// push stores a copy of the OperatorVersion on the hub, as another object than any before.
func (w *world) push(version *kudo.OperatorVersion) {
	pushed := version.DeepCopy()
	pushed.UID = w.uid("version")
	w.versions[pushed.Name] = pushed
	w.mirrored[pushed.UID] = pushed
	w.problems[pushed.UID] = pack.Errors(pack.Check(&pushed.Spec))
}

func (w *world) uid(what string) types.UID {
	w.uids++
	return types.UID(fmt.Sprintf("%s-%d", what, w.uids))
}

// candidates returns all OperatorVersions on the hub.
func (w *world) candidates() []kudo.OperatorVersion {
	var found []kudo.OperatorVersion
	for _, name := range slices.Sorted(maps.Keys(w.versions)) {
		found = append(found, *w.versions[name])
	}
	return found
}

// versionOf returns the OperatorVersion of that uid, on the hub or on the managed cluster.
func (w *world) versionOf(reference corev1.ObjectReference) *kudo.OperatorVersion {
	return w.mirrored[reference.UID]
}

// loadPackages returns the OperatorVersions of the packages.
func loadPackages(t testing.TB) []*kudo.OperatorVersion {
	t.Helper()
	loaded, err := history.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range loaded {
		if version.Spec.Operator.Name == "disk" {
			version.Spec.Templates["volume.yaml"] += customResource
		}
	}
	return loaded
}

// customResource is a definition, an object of it that its controller has to release, and a workload with volume claims, of which one is kept. Each
// Instance has its own, because the operator is the child of several.
const customResource = `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: "{{ .Name }}.history.test"}
---
apiVersion: history.test/v1
kind: Backup
metadata: {name: "{{ .Name }}", finalizers: [history.test/controller]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: "{{ .Name }}"}
spec:
  selector: {matchLabels: {app: "{{ .Name }}"}}
  template:
    metadata: {labels: {app: "{{ .Name }}"}}
    spec: {containers: [{name: disk, image: disk}]}
  volumeClaimTemplates:
    - metadata: {name: data}
    - metadata: {name: archive, annotations: {helm.sh/resource-policy: keep}}
`

// shelf holds the versions of each Instance, the current one last.
type shelf struct{ of map[string][]*kudo.Instance }

// get returns a copy of the current version of an Instance; nil if it does not exist.
func (s *shelf) get(name string) *kudo.Instance { return s.view(name, 0, 0) }

// view returns a copy of an Instance as it was some versions ago, but not before the revision; nil if it does not exist.
func (s *shelf) view(name string, ago, since int) *kudo.Instance {
	stored := s.of[name]
	if len(stored) == 0 {
		return nil
	}
	at := max(0, len(stored)-1-ago)
	for revisionOf(stored[at]) < since && at < len(stored)-1 {
		at++
	}
	return stored[at].DeepCopy()
}

func (s *shelf) names() []string { return slices.Sorted(maps.Keys(s.of)) }

func revisionOf(i *kudo.Instance) int {
	revision, _ := strconv.Atoi(i.ResourceVersion)
	return revision
}

// store writes a changed Instance, unless it was written by another writer since it was read. It reports the conflict. A write that
// changes nothing is none.
func (w *world) store(s *shelf, what string, changed *kudo.Instance) (conflict bool) {
	current := s.get(changed.Name)
	if current != nil && (current.UID != changed.UID || current.ResourceVersion != changed.ResourceVersion) ||
		current == nil && changed.ResourceVersion != "" {
		return true
	}
	if current != nil && equality.Semantic.DeepEqual(current, changed) {
		return false
	}
	w.write(what, func() {
		written := changed.DeepCopy()
		written.ResourceVersion = strconv.Itoa(w.writes)
		switch {
		case current == nil:
			written.UID, written.Generation = w.uid("instance"), 1
		case !equality.Semantic.DeepEqual(current.Spec, written.Spec):
			written.Generation++
		case current.DeletionTimestamp.IsZero() != written.DeletionTimestamp.IsZero():
			written.Generation++
		}
		s.of[written.Name] = append(s.of[written.Name], written)
		if s == w.mirrors {
			w.recordCommit(current, written)
		}
		w.see(s, written)
		changed.ResourceVersion, changed.UID, changed.Generation = written.ResourceVersion, written.UID, written.Generation
	})
	return false
}

// drop removes an Instance.
func (w *world) drop(s *shelf, what, name string) { w.write(what, func() { delete(s.of, name) }) }

// faultKind is what happens at a write.
type faultKind string

const (
	stopBefore faultKind = "stops before"
	stopAfter  faultKind = "stops after"
	refuse     faultKind = "is refused at"  // temporarily: 409, 429, 500
	reject     faultKind = "is rejected at" // permanently: 403, 422
)

// fault is a fault at the n-th write from now, the first being 1; the zero value is none.
type fault struct {
	kind faultKind
	at   int
}

func (f fault) String() string {
	if f.kind == "" {
		return ""
	}
	return fmt.Sprintf(" (%s write %d)", f.kind, f.at)
}

// stopped is the panic of a program that stops.
type stopped struct{}

// refusal is the error of a write.
type refusal struct{ final bool }

func (r *refusal) Error() string { return fmt.Sprintf("refused, final: %v", r.final) }

// write executes a write, unless a fault prevents it. A program that is refused a write panics with a *refusal.
func (w *world) write(what string, do func()) {
	if w.planned.kind != "" && w.running != "" && w.writes+1 >= w.planned.at {
		w.fault, w.planned = fault{w.planned.kind, 1}, fault{}
	}
	due := w.fault.kind != "" && w.fault.at <= 1
	w.fault.at--
	kind := w.fault.kind
	if due {
		w.fault = fault{}
		w.faults++
		switch kind {
		case stopBefore:
			panic(stopped{})
		case refuse, reject:
			panic(&refusal{final: kind == reject})
		}
	}
	w.writes++
	do()
	if due {
		panic(stopped{})
	}
}

// program runs one pass of a controller, and reports whether its program stopped. A controller that is refused a write ends its pass.
func (w *world) program(c controller, pass func()) (stop bool) {
	w.running = c
	defer func() {
		w.running = ""
		switch cause := recover().(type) {
		case nil, *refusal:
		case stopped:
			stop = true
		default:
			panic(cause)
		}
	}()
	pass()
	return false
}

// try executes writes of a task, and returns the refusal of one of them.
func try(do func()) (refused *refusal) {
	defer func() {
		cause := recover()
		if r, is := cause.(*refusal); is {
			refused = r
		} else if cause != nil {
			panic(cause)
		}
	}()
	do()
	return nil
}

// liveOf returns the live object of an entry as plan.Object.
func (w *world) liveOf(entry kudo.InventoryEntry) plan.Object {
	want := &unstructured.Unstructured{}
	want.SetAPIVersion(cmp.Or(map[string]string{"apps": "apps/v1", "rbac.authorization.k8s.io": "rbac.authorization.k8s.io/v1",
		"apiextensions.k8s.io": "apiextensions.k8s.io/v1", "history.test": "history.test/v1"}[entry.Group], "v1"))
	want.SetKind(entry.Kind)
	want.SetNamespace(entry.Namespace)
	want.SetName(entry.Name)
	return plan.Object{Want: want, Live: w.live(entry)}
}

// live returns a copy of an object on the managed cluster; nil if it does not exist.
func (w *world) live(entry kudo.InventoryEntry) *unstructured.Unstructured {
	if o := w.objects[plan.Identity(entry)]; o != nil {
		return o.DeepCopy()
	}
	return nil
}
