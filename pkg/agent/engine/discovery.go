package engine

import (
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
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
)

// listPatience is how long one kind may take to be listed before it counts as broken.
const listPatience = 5 * time.Second

// errCutShort is the result of a look that never came to one, so that nobody takes what was not looked for as gone.
var errCutShort = errors.New("looking through all kinds was cut short")

// sweeper looks through all kinds of the cluster for what belongs to Instances. A look takes a request for each kind, so one goes on at
// a time, and those who ask meanwhile share the next one.
type sweeper struct {
	live      client.Reader
	discovery discovery.DiscoveryInterface

	looking sync.Mutex // held by who looks

	mutex sync.Mutex
	next  *look // nil unless somebody waits for it to begin
}

// look is one pass through all kinds. Its results are there, and stay as they are, once it is done.
type look struct {
	owners map[string]bool // by the value of KUDO's label; nobody joins once it has begun
	done   chan struct{}

	found  []plan.Object
	unread map[schema.GroupVersionKind]error
	err    error
}

// owned finds what tasks of the owner have applied, and the volume claims of its StatefulSets, by their labels in all kinds that the
// cluster has. What another object owns goes with that one. unread says which kinds could not be looked through, and why.
func (s *sweeper) owned(ctx context.Context, owner plan.Owner) (found []plan.Object, unread map[schema.GroupVersionKind]error, err error) {
	if len(validation.IsValidLabelValue(owner.Name)) > 0 {
		return nil, nil, nil // no object can bear such a label
	}
	l, first := s.join(owner.Name)
	if first {
		s.carryOut(ctx, l)
	}
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("looking for what is left of Instance %q: %w", owner.Name, ctx.Err())
	}
	for _, object := range l.found {
		if owner.Owns(object.Live) {
			found = append(found, object)
		}
	}
	return found, l.unread, l.err
}

// join adds an owner to the look that begins next. Who is first has to carry it out.
func (s *sweeper) join(owner string) (l *look, first bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.next == nil {
		s.next, first = &look{owners: map[string]bool{}, done: make(chan struct{}), err: errCutShort}, true
	}
	s.next.owners[owner] = true
	return s.next, first
}

// carryOut waits for its turn and looks. Who comes after it has begun may want what it has passed already, and waits for the next one.
func (s *sweeper) carryOut(ctx context.Context, l *look) {
	s.looking.Lock()
	defer s.looking.Unlock()
	defer close(l.done)
	owners := s.begin()
	l.found, l.unread, l.err = s.lookFor(ctx, owners)
}

// begin lets nobody join the next look any more, and returns whom it is for.
func (s *sweeper) begin() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	owners := slices.Sorted(maps.Keys(s.next.owners))
	s.next = nil
	return owners
}

func (s *sweeper) lookFor(ctx context.Context, owners []string) ([]plan.Object, map[schema.GroupVersionKind]error, error) {
	selector, err := labelledFor(owners)
	if err != nil {
		return nil, nil, err
	}
	kinds, err := s.deletableKinds()
	if err != nil {
		return nil, nil, err
	}
	var all []plan.Object
	unread := map[schema.GroupVersionKind]error{}
	for _, kind := range kinds {
		found, err := s.list(ctx, selector, kind)
		if err != nil {
			unread[kind] = err
		}
		all = append(all, found...)
	}
	return all, unread, nil
}

// labelledFor selects what bears KUDO's label of any of the owners.
func labelledFor(owners []string) (labels.Selector, error) {
	instance, err := labels.NewRequirement(kudo.LabelInstance, selection.In, owners)
	if err != nil {
		return nil, fmt.Errorf("looking for what is left of Instances: %w", err)
	}
	return labels.SelectorFromSet(labels.Set{kudo.LabelHeritage: kudo.Heritage}).Add(*instance), nil
}

// deletableKinds are all kinds of which objects can be listed and deleted, but Tandem's own.
func (s *sweeper) deletableKinds() ([]schema.GroupVersionKind, error) {
	lists, err := s.discovery.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("finding the kinds of objects: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == kudo.GroupVersion.Group {
			continue
		}
		for _, resource := range list.APIResources {
			kinds = append(kinds, gv.WithKind(resource.Kind))
		}
	}
	return kinds, nil
}

// list reads, of one kind, the metadata of what tasks have applied and of volume claims, unless it belongs to another object.
func (s *sweeper) list(ctx context.Context, selector labels.Selector, gvk schema.GroupVersionKind) ([]plan.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := s.live.List(ctx, list, client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || meta.IsNoMatchError(err) {
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
