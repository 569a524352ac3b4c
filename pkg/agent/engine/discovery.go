package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/removal"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// errCutShort is the error of an interrupted search, so that objects that were not searched for do not count as deleted.
var errCutShort = errors.New("the search through all kinds was interrupted")

// kubernetes is the version of the managed cluster. It is read when a plan that depends on it is about to start, at most once per interval. It is safe
// for concurrent use.
type kubernetes struct {
	discovery discovery.ServerVersionInterface
	interval  time.Duration

	mutex   sync.Mutex
	version string
	asked   time.Time
}

func (k *kubernetes) read(now time.Time) (string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.version != "" && now.Sub(k.asked) < k.interval {
		return k.version, nil
	}
	found, err := k.discovery.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("discovering the version of the managed cluster: %w", err)
	}
	k.version, k.asked = found.GitVersion, now
	return k.version, nil
}

// sweeper searches the cluster for objects of Instances. A search takes one request per kind, so only one runs at a time, and Instances that
// are removed at the same time share the next one. None of the engine's workers waits for it.
type sweeper struct {
	live      client.Reader
	discovery discovery.DiscoveryInterface

	// done receives the Instances whose search has ended.
	done chan event.TypedGenericEvent[client.Object]

	looking sync.Mutex // held by the running search

	mutex sync.Mutex
	next  *look // nil unless Instances wait for it to begin
	// asked holds the search that each Instance waits for. A forgotten entry only costs another search.
	asked *lru.Cache
}

func newSweeper(live client.Reader, kinds discovery.DiscoveryInterface) *sweeper {
	return &sweeper{live: live, discovery: kinds, done: make(chan event.TypedGenericEvent[client.Object]), asked: lru.New(maxRemembered)}
}

// question identifies a search by the state of the Instance that needs it: what was found for another state may be stale.
type question struct {
	instance types.UID
	version  string
}

func questionOf(i *kudo.Instance) question { return question{i.UID, i.ResourceVersion} }

// look is one search. Its results are read-only once it is done.
type look struct {
	owners map[string]bool // by the value of KUDO's label; fixed once the search has started
	kinds  map[schema.GroupKind]bool
	all    bool // all kinds are searched
	askers []types.NamespacedName
	done   chan struct{}

	found []plan.Object
	reads removal.Reads
	err   error
}

// findOwned searches the given kinds, or all kinds of the cluster if kinds is nil, by label for objects that tasks of the owner have
// applied, and for the volume claims of its StatefulSets. It omits objects with an owner, which are deleted with it. Once the search has ended,
// the Instance is reconciled again.
func (s *sweeper) findOwned(
	ctx context.Context, instance *kudo.Instance, owner plan.Owner, kinds []schema.GroupKind,
) (found removal.Search, err error) {
	if len(validation.IsValidLabelValue(owner.Name)) > 0 {
		return removal.Search{}, nil // no object can carry such a label
	}
	l, first := s.ask(instance, owner.Name, kinds)
	if first {
		go s.carryOut(ctx, l) // controller-runtime cancels the context only when the controller stops
	}
	select {
	case <-l.done:
	default:
		return removal.Search{Running: true}, nil
	}
	for _, object := range l.found {
		if owner.Owns(object.Live) {
			found.Found = append(found.Found, object)
		}
	}
	found.Reads = l.reads
	return found, l.err
}

// ask returns the search that an Instance in that state waits for. If it waits for none, it joins the next search. first is true if the
// caller must start that search.
func (s *sweeper) ask(instance *kudo.Instance, owner string, kinds []schema.GroupKind) (l *look, first bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if waits, known := s.asked.Get(questionOf(instance)); known {
		return waits.(*look), false
	}
	l, first = s.join(owner, kinds)
	l.askers = append(l.askers, client.ObjectKeyFromObject(instance))
	s.asked.Add(questionOf(instance), l)
	return l, first
}

// forget drops the search of an Instance, because its result is used or may be stale.
func (s *sweeper) forget(instance *kudo.Instance) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.asked.Remove(questionOf(instance))
}

// join adds an owner and kinds to the next search.
func (s *sweeper) join(owner string, kinds []schema.GroupKind) (l *look, first bool) {
	if s.next == nil {
		s.next, first = &look{owners: map[string]bool{}, kinds: map[schema.GroupKind]bool{}, done: make(chan struct{}), err: errCutShort}, true
	}
	s.next.owners[owner] = true
	s.next.all = s.next.all || kinds == nil
	for _, kind := range kinds {
		s.next.kinds[kind] = true
	}
	return s.next, first
}

// carryOut runs the search after the running one has ended. Instances that ask after the search has started join the next one, because it
// may already have passed their objects.
func (s *sweeper) carryOut(ctx context.Context, l *look) {
	s.looking.Lock()
	s.begin()
	l.found, l.reads, l.err = s.lookFor(ctx, l)
	s.looking.Unlock()
	close(l.done)
	for _, name := range l.askers {
		select {
		case s.done <- event.TypedGenericEvent[client.Object]{
			Object: &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
		}:
		case <-ctx.Done():
			return
		}
	}
}

// begin ends the time in which Instances can join the next search.
func (s *sweeper) begin() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.next = nil
}

func (s *sweeper) lookFor(ctx context.Context, l *look) ([]plan.Object, removal.Reads, error) {
	selector, err := labelledFor(slices.Sorted(maps.Keys(l.owners)))
	if err != nil {
		return nil, removal.Reads{}, err
	}
	kinds, groups, err := s.deletableKinds()
	if err != nil {
		return nil, removal.Reads{}, err
	}
	var all []plan.Object
	reads := removal.Reads{Kinds: map[schema.GroupKind]error{}, Groups: groups}
	for _, kind := range kinds {
		if !l.all && !l.kinds[kind.GroupKind()] {
			continue
		}
		found, err := s.list(ctx, selector, kind)
		reads.Kinds[kind.GroupKind()] = cmp.Or(reads.Kinds[kind.GroupKind()], err)
		all = append(all, found...)
	}
	return all, reads, nil
}

// labelledFor returns a selector for objects with KUDO's label of any of the owners.
func labelledFor(owners []string) (labels.Selector, error) {
	instance, err := labels.NewRequirement(kudo.LabelInstance, selection.In, owners)
	if err != nil {
		return nil, fmt.Errorf("searching for remaining objects of Instances: %w", err)
	}
	return labels.NewSelector().Add(*instance), nil
}

// deletableKinds returns all kinds that support list and delete, except Tandem's own, and the groups with versions that could not be
// discovered, and why.
func (s *sweeper) deletableKinds() (kinds []schema.GroupVersionKind, groups map[string]error, err error) {
	lists, err := s.discovery.ServerPreferredResources()
	failed, incomplete := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !incomplete {
		return nil, nil, fmt.Errorf("discovering the kinds of objects: %w", err)
	}
	groups = undiscovered(failed)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == kudo.GroupVersion.Group {
			continue
		}
		for _, resource := range list.APIResources {
			kinds = append(kinds, gv.WithKind(resource.Kind))
		}
	}
	return kinds, groups, nil
}

// undiscovered returns the groups of versions that could not be discovered, and why. A version that has disappeared since the groups were listed
// has no kinds; other versions of its kinds are listed.
func undiscovered(failed map[schema.GroupVersion]error) map[string]error {
	groups := map[string]error{}
	for gv, err := range failed {
		if !controller.IsUnserved(err) {
			groups[gv.Group] = fmt.Errorf("discovering the kinds of API group %q: %w", gv.Group, err)
		}
	}
	return groups
}

// list reads the metadata of applied objects and volume claims of one kind, without those that another object owns.
func (s *sweeper) list(ctx context.Context, selector labels.Selector, gvk schema.GroupVersionKind) ([]plan.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := s.live.List(ctx, list, client.MatchingLabelsSelector{Selector: selector})
	if isGone(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}
	var found []plan.Object
	for i := range list.Items {
		item := &list.Items[i]
		if controller := metav1.GetControllerOf(item); controller != nil && controller.Kind != "Instance" {
			continue
		}
		if !plan.IsClaim(gvk.GroupKind()) && item.GetAnnotations()[kudo.AnnotationExecution] == "" {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
		if err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", gvk.Kind, item.Name, err)
		}
		live := &unstructured.Unstructured{Object: content}
		live.SetGroupVersionKind(gvk)
		found = append(found, plan.Object{Want: live, Live: live})
	}
	return found, nil
}
