// Package rendering keeps what charts have rendered in Secrets in the agent's namespace, so that everything that follows uses the same objects, also
// after a restart and without the hub. It touches only the managed cluster.
package rendering

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/core/release"
)

// fieldManager is the field manager of the Secrets.
const fieldManager = "addon-agent-rendering"

// maxCacheBytes limits the JSON of the renderings in memory.
const maxCacheBytes = 16 << 20

// Store keeps renderings. It is safe for concurrent use.
type Store struct {
	// namespace is the agent's own.
	namespace string
	client    client.Client
	live      client.Reader
	cache     *cache

	mutex sync.Mutex
	// kept are the Instances of which there are Secrets, as far as this process knows; listed is true once it knows all. No other process writes
	// any.
	kept   map[types.UID]bool
	listed bool
}

// New returns a Store in the agent's namespace.
func New(namespace string, c client.Client, live client.Reader) *Store {
	return &Store{namespace: namespace, client: c, live: live, cache: newCache(maxCacheBytes), kept: map[types.UID]bool{}}
}

// LossError reports that a rendering cannot be read again: Secrets are missing, or their content was altered. Only another execution of the task
// renders the chart again.
type LossError struct {
	Key
	// Altered is true if all Secrets exist.
	Altered bool
	// Secret is the one that is missing or altered, as NAMESPACE/NAME, and Problem what is wrong with its content.
	Secret, Problem string
}

func (e *LossError) Error() string {
	if !e.Altered {
		return fmt.Sprintf("what the chart of task %q rendered is lost: Secret %s does not exist on the managed cluster", e.Task, e.Secret)
	}
	return fmt.Sprintf("what the chart of task %q rendered was altered in Secret %s of the managed cluster: %s", e.Task, e.Secret, e.Problem)
}

// Keep keeps a rendering, and returns its digest. It may be called again; another rendering of the same execution does not replace the first.
func (s *Store) Keep(ctx context.Context, key Key, r release.Rendering) (digest string, err error) {
	encoded, digest, err := encode(r)
	if err != nil {
		return "", fmt.Errorf("keeping what the chart of task %q rendered: %w", key.Task, err)
	}
	secrets, err := split(encoded, digest)
	if err != nil {
		return "", fmt.Errorf("keeping what the chart of task %q rendered: %w", key.Task, err)
	}
	s.remember(key.Instance) // before the first write, which may succeed without an answer
	for part := len(secrets) - 1; part >= 0; part-- {
		stored := corev1ac.Secret(key.name(digest, part), s.namespace).WithLabels(key.labels(digest)).
			WithAnnotations(map[string]string{"kubernetes.io/description": fmt.Sprintf(
				"What the chart of task %q of an Instance rendered in execution %s; part %d of %d", key.Task, key.Execution, part+1, len(secrets))}).
			WithType(corev1.SecretTypeOpaque).WithData(secrets[part])
		if err := s.client.Apply(ctx, stored, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
			return "", fmt.Errorf("keeping what the chart of task %q rendered in namespace %q: %w", key.Task, s.namespace, err)
		}
	}
	s.cache.add(cacheKey{key, digest}, encoded)
	return digest, nil
}

// Load returns a copy of a rendering that was kept; a *LossError if there is none any more. What it reads from the API server has the digest.
func (s *Store) Load(ctx context.Context, key Key, digest string) (release.Rendering, error) {
	encoded, cached := s.cache.get(cacheKey{key, digest})
	if !cached {
		var err error
		if encoded, err = s.read(ctx, key, digest); err != nil {
			return release.Rendering{}, err
		}
		s.cache.add(cacheKey{key, digest}, encoded)
	}
	r, err := decode(encoded)
	if err != nil { // it has the digest of what was encoded
		return release.Rendering{}, fmt.Errorf("reading what the chart of task %q rendered: %w", key.Task, err)
	}
	return r, nil
}

// read reads the Secrets of a rendering.
func (s *Store) read(ctx context.Context, key Key, digest string) ([]byte, error) {
	index, err := s.get(ctx, key, digest, 0)
	if err != nil {
		return nil, err
	}
	altered := func(err error) error {
		return &LossError{Key: key, Altered: true, Secret: s.namespace + "/" + key.name(digest, 0), Problem: err.Error()}
	}
	parts, err := partsIn(index, digest)
	if err != nil {
		return nil, altered(err)
	}
	secrets := []map[string][]byte{index}
	for part := 1; part < parts; part++ {
		secret, err := s.get(ctx, key, digest, part)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, secret)
	}
	encoded, err := join(secrets, digest)
	if err != nil {
		return nil, altered(err)
	}
	return encoded, nil
}

// get reads a Secret of a rendering.
func (s *Store) get(ctx context.Context, key Key, digest string, part int) (map[string][]byte, error) {
	name, stored := types.NamespacedName{Namespace: s.namespace, Name: key.name(digest, part)}, &corev1.Secret{}
	switch err := s.live.Get(ctx, name, stored); {
	case apierrors.IsNotFound(err):
		return nil, &LossError{Key: key, Secret: name.String()}
	case err != nil:
		return nil, fmt.Errorf("reading what the chart of task %q rendered: %w", key.Task, err)
	}
	return stored.Data, nil
}

// Tidy deletes all renderings of the task but one, once no execution needs the others any more.
func (s *Store) Tidy(ctx context.Context, key Key, digest string) error {
	others, err := key.others(digest)
	if err == nil {
		err = s.delete(ctx, others)
	}
	if err != nil {
		return fmt.Errorf("deleting what the chart of task %q rendered before: %w", key.Task, err)
	}
	return nil
}

// Forget deletes all renderings of the Instance with that uid on the hub.
func (s *Store) Forget(ctx context.Context, instance types.UID) error {
	if s.hasNone(instance) {
		return nil
	}
	selector, err := selectorOf(instance)
	if err == nil {
		err = s.delete(ctx, selector)
	}
	if err != nil {
		return fmt.Errorf("deleting what charts of an Instance rendered: %w", err)
	}
	s.cache.forget(instance)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.kept, instance)
	return nil
}

func (s *Store) delete(ctx context.Context, which client.MatchingLabelsSelector) error {
	return s.client.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(s.namespace), which)
}

// UIDs returns the uids on the hub of the Instances of which renderings are kept. It lists the Secrets once.
func (s *Store) UIDs(ctx context.Context) ([]types.UID, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.listed {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "SecretList"}}
		if err := s.live.List(ctx, list, client.InNamespace(s.namespace), client.HasLabels{labelInstance}); err != nil {
			return nil, fmt.Errorf("listing what charts have rendered in namespace %q: %w", s.namespace, err)
		}
		for i := range list.Items {
			s.kept[types.UID(list.Items[i].Labels[labelInstance])] = true
		}
		s.listed = true
	}
	return slices.Collect(maps.Keys(s.kept)), nil
}

func (s *Store) remember(instance types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kept[instance] = true
}

// Has reports whether this process knows of a kept rendering of an Instance.
func (s *Store) Has(instance types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.kept[instance]
}

// hasNone reports whether no rendering of an Instance is kept for certain.
func (s *Store) hasNone(instance types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.listed && !s.kept[instance]
}
