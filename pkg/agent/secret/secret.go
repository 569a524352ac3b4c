// Package secret reads the values of sensitive parameters from Secrets of the managed cluster, watches exactly these Secrets, and keeps copies
// of the values that executions use. It touches only that cluster.
package secret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// fieldManager is the field manager of copies and of the key of digests.
const fieldManager = "addon-agent-secret"

// The Secrets in the agent's namespace.
const (
	// keySecret holds the key of digests.
	keySecret = "tandem-digest-key"
	// copyPrefix begins the names of copies; the uid of the Instance on the hub follows.
	copyPrefix = "tandem-parameters-"
	// copyLabel labels copies.
	copyLabel = "kudo.dev/parameters-of"
)

// Store reads and copies values. It is safe for concurrent use.
type Store struct {
	// Changed receives the Secrets that have changed.
	Changed chan event.TypedGenericEvent[client.Object]

	// namespace is the agent's own.
	namespace string
	access    access
	client    client.Client
	live      client.Reader
	secrets   corev1client.SecretsGetter
	// ctx ends with the agent.
	ctx context.Context

	mutex sync.Mutex
	key   *sensitive.Key
	// copies are the values in the copies that this process has read or written, by the uid of the Instance on the hub. No other process
	// writes them.
	copies map[types.UID]sensitive.Values
	// listed is true once all existing copies are in copies.
	listed  bool
	watches map[types.NamespacedName]*watching
	// users are the Secrets that are read for Instances.
	users map[types.NamespacedName]map[types.NamespacedName]bool
	// records are by the mirrors of Instances.
	records map[types.NamespacedName]*Record
}

// Options configure a Store.
type Options struct {
	// Namespace is the agent's own, which holds the copies and the key of digests.
	Namespace string
	// HubSecret is the Secret with the agent's certificate for the hub; empty if it is not known.
	HubSecret types.NamespacedName
	// Rights is what the plans of Instances may do.
	Rights rights.Policy
}

// Add returns a Store. Its watches end with ctx. When the manager starts, it lists the copies that earlier processes have written.
func Add(ctx context.Context, o Options, local ctrl.Manager) (*Store, error) {
	secrets, err := corev1client.NewForConfigAndClient(local.GetConfig(), local.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing to read Secrets: %w", err)
	}
	const room = 1024 // the channel's reader only moves events to a queue
	s := &Store{
		Changed:   make(chan event.TypedGenericEvent[client.Object], room),
		namespace: o.Namespace, access: newAccess(o.Namespace, o.HubSecret, o.Rights, local.GetClient()),
		client: local.GetClient(), live: local.GetAPIReader(), secrets: secrets, ctx: ctx,
		copies:  map[types.UID]sensitive.Values{},
		watches: map[types.NamespacedName]*watching{},
		users:   map[types.NamespacedName]map[types.NamespacedName]bool{},
		records: map[types.NamespacedName]*Record{},
	}
	return s, local.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := s.list(ctx); err != nil { // each copy is then read when it is needed
			local.GetLogger().Error(err, "failed to list copies of sensitive values")
		}
		return nil
	}))
}

// record returns the record of an Instance.
func (s *Store) record(i *kudo.Instance) *Record {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := client.ObjectKeyFromObject(i)
	if s.records[name] == nil {
		s.records[name] = &Record{known: map[string]bool{}, opaque: map[sensitive.Object]bool{}}
	}
	return s.records[name]
}

// list reads all copies with one request, so that no Instance without sensitive parameters costs one.
func (s *Store) list(ctx context.Context) error {
	list := &corev1.SecretList{}
	if err := s.live.List(ctx, list, client.InNamespace(s.namespace), client.HasLabels{copyLabel}); err != nil {
		return fmt.Errorf("listing copies of sensitive values in namespace %q: %w", s.namespace, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range list.Items {
		uid := types.UID(list.Items[i].Labels[copyLabel])
		if _, known := s.copies[uid]; !known {
			s.copies[uid] = valuesIn(&list.Items[i])
		}
	}
	s.listed = true
	return nil
}

// Concerns reports whether an Instance has sensitive parameters, or a copy of values that it had.
func (s *Store) Concerns(i *kudo.Instance) bool {
	if len(i.Spec.ParametersFrom) > 0 || i.Status.Execution != nil && len(i.Status.Execution.ParametersFrom) > 0 {
		return true
	}
	if former := i.Status.Former; former != nil && len(former.ParametersFrom) > 0 {
		return true
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.copies) > 0 && len(s.copies[i.HubUID()]) > 0
}

// copiedValues returns the values in the copy of an Instance.
func (s *Store) copiedValues(ctx context.Context, i *kudo.Instance) (sensitive.Values, error) {
	uid := i.HubUID()
	s.mutex.Lock()
	values, known := s.copies[uid]
	known = known || s.listed
	s.mutex.Unlock()
	if known {
		return values, nil
	}
	stored := &corev1.Secret{}
	err := s.live.Get(ctx, types.NamespacedName{Namespace: s.namespace, Name: copyPrefix + string(uid)}, stored)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the copy of sensitive values of Instance %q: %w", i.Name, err)
	}
	values = valuesIn(stored)
	s.remember(uid, values)
	return values, nil
}

func valuesIn(stored *corev1.Secret) sensitive.Values {
	values := make(sensitive.Values, len(stored.Data))
	for id, value := range stored.Data {
		values[id] = string(value)
	}
	return values
}

func (s *Store) remember(uid types.UID, values sensitive.Values) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.copies[uid] = values
}

// Keep replaces the copy of an Instance's values, before an execution is recorded that uses them.
func (s *Store) Keep(ctx context.Context, i *kudo.Instance, values sensitive.Values) error {
	uid := i.HubUID()
	if len(values) == 0 {
		return s.Forget(ctx, i)
	}
	if known, err := s.copiedValues(ctx, i); err != nil || maps.Equal(known, values) {
		return err
	}
	data := make(map[string][]byte, len(values))
	for id, value := range values {
		data[id] = []byte(value)
	}
	stored := corev1ac.Secret(copyPrefix+string(uid), s.namespace).
		WithLabels(map[string]string{copyLabel: string(uid), "app.kubernetes.io/part-of": "tandem"}).
		WithAnnotations(map[string]string{"kubernetes.io/description": "The values of sensitive parameters that the plans of Instance " +
			i.Namespace + "/" + i.Name + " use"}).
		WithType(corev1.SecretTypeOpaque).WithData(data)
	if err := s.client.Apply(ctx, stored, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("copying sensitive values of Instance %q to namespace %q: %w", i.Name, s.namespace, sensitive.NewMasker(values).Error(err))
	}
	s.remember(uid, values)
	return nil
}

// Forget deletes the copy of an Instance's values, if there is one.
func (s *Store) Forget(ctx context.Context, i *kudo.Instance) error {
	uid := i.HubUID()
	if known, err := s.copiedValues(ctx, i); err != nil || len(known) == 0 {
		return err
	}
	return s.Remove(ctx, uid)
}

// UIDs returns the uids on the hub of the Instances with copies.
func (s *Store) UIDs(context.Context) ([]types.UID, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Keys(s.copies)), func(uid types.UID) bool { return len(s.copies[uid]) == 0 }), nil
}

// Remove deletes the copy of the values of the Instance with that uid on the hub.
func (s *Store) Remove(ctx context.Context, uid types.UID) error {
	stored := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: copyPrefix + string(uid)}}
	if err := s.client.Delete(ctx, stored); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting Secret %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.copies, uid)
	return nil
}
