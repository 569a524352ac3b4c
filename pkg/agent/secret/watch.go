package secret

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// watching is a watch of one Secret.
type watching struct {
	informer toolscache.SharedInformer
	stop     context.CancelFunc
}

// Release ends the watches that only serve an Instance that does not exist any more, or has no sensitive parameters, and drops its record.
func (s *Store) Release(instance types.NamespacedName) {
	s.follow(instance, nil)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.records, instance)
}

// follow watches the Secrets that are read for an Instance, and no longer those that were.
func (s *Store) follow(instance types.NamespacedName, used map[types.NamespacedName]bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	before := s.users[instance]
	if len(used) == 0 {
		delete(s.users, instance)
	} else {
		s.users[instance] = used
	}
	for secret := range used {
		if s.watches[secret] == nil {
			s.watches[secret] = s.watch(secret)
		}
	}
	for secret := range before {
		if !used[secret] && !s.isUsed(secret) {
			s.watches[secret].stop()
			delete(s.watches, secret)
		}
	}
}

func (s *Store) isUsed(secret types.NamespacedName) bool {
	for _, used := range s.users {
		if used[secret] {
			return true
		}
	}
	return false
}

// watch starts a watch of one Secret, whose events are sent to Changed.
func (s *Store) watch(secret types.NamespacedName) *watching {
	ctx, stop := context.WithCancel(s.ctx)
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, secret.Name).String()
	}
	secrets := s.secrets.Secrets(secret.Namespace)
	informer := controller.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			only(&o)
			return secrets.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			only(&o)
			return secrets.Watch(ctx, o)
		},
	}, &corev1.Secret{}, 0, toolscache.Indexers{})
	enqueue := func(any) {
		select {
		case s.Changed <- event.TypedGenericEvent[client.Object]{
			Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}},
		}:
		case <-ctx.Done():
		}
	}
	// Neither fails before the informer runs.
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, now any) { enqueue(now) }, DeleteFunc: enqueue,
	})
	_ = informer.SetTransform(toolscache.TransformFunc(func(o any) (any, error) {
		if object, ok := o.(metav1.Object); ok {
			object.SetManagedFields(nil)
			object.SetAnnotations(nil)
		}
		return o, nil
	}))
	go informer.RunWithContext(ctx)
	return &watching{informer: informer, stop: stop}
}

// readSecret returns a Secret: as watched, or from the API server until the watch has started. problem is why it cannot be read, and
// passing is true if that may end without a change of the Secret.
func (s *Store) readSecret(ctx context.Context, secret types.NamespacedName, key string) (found *corev1.Secret, problem string, passing bool) {
	s.mutex.Lock()
	watched := s.watches[secret]
	s.mutex.Unlock()
	if watched != nil && watched.informer.HasSynced() {
		cached, exists, err := watched.informer.GetStore().GetByKey(secret.String())
		if err == nil && !exists {
			return nil, missingProblem(secret, key), false
		}
		if stored, ok := cached.(*corev1.Secret); ok {
			return stored, "", false
		}
	}
	stored := &corev1.Secret{}
	switch err := s.live.Get(ctx, secret, stored); {
	case apierrors.IsNotFound(err):
		return nil, missingProblem(secret, key), false
	case err != nil:
		return nil, fmt.Sprintf("Secret %s cannot be read: %v", secret, err), true
	}
	return stored, "", false
}

func missingProblem(secret types.NamespacedName, key string) string {
	return fmt.Sprintf("Secret %s does not exist: create it with key %q in namespace %q of the managed cluster", secret, key, secret.Namespace)
}
