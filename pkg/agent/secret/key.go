package secret

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// keyField is the field of a Secret that holds a key.
const keyField = "key"

// Key is a random key that is stored in a Secret in the agent's namespace.
type Key struct {
	Bytes []byte
	// Created is when the Secret was created, by the clock of the API server.
	Created metav1.Time
}

// EnsureKey returns the key of at least size bytes in a Secret. If the Secret does not exist, or holds no such key, it creates the Secret, and its
// namespace if necessary, with a random one. Agents that do so at the same time get the same key.
func EnsureKey(ctx context.Context, c client.Client, live client.Reader, name types.NamespacedName, size int) (Key, error) {
	stored := &corev1.Secret{}
	err := live.Get(ctx, name, stored)
	if client.IgnoreNotFound(err) != nil {
		return Key{}, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if key, valid := keyIn(stored, size); err == nil && valid {
		return key, nil
	}
	if err == nil { // created again, so that it is as old as its key
		if err := c.Delete(ctx, stored, client.Preconditions{UID: &stored.UID}); client.IgnoreNotFound(err) != nil {
			return Key{}, fmt.Errorf("deleting Secret %s, which holds no key of %d bytes or more: %w", name, size, err)
		}
	}
	drawn := make([]byte, size)
	_, _ = rand.Read(drawn) // never fails
	stored = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{"app.kubernetes.io/part-of": "tandem"}},
		Data:       map[string][]byte{keyField: drawn},
	}
	err = createIn(ctx, c, stored)
	if apierrors.IsAlreadyExists(err) { // another agent was first
		err = live.Get(ctx, name, stored)
	}
	if err != nil {
		return Key{}, fmt.Errorf("creating Secret %s: %w", name, err)
	}
	key, valid := keyIn(stored, size)
	if !valid {
		return Key{}, fmt.Errorf("the created Secret %s holds no key of %d bytes or more: delete it", name, size)
	}
	return key, nil
}

// createIn creates a Secret, after its namespace if that does not exist.
func createIn(ctx context.Context, c client.Client, made *corev1.Secret) error {
	err := c.Create(ctx, made, client.FieldOwner(fieldManager))
	if !apierrors.IsNotFound(err) {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: made.Namespace}}
	if err := c.Create(ctx, namespace, client.FieldOwner(fieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return c.Create(ctx, made, client.FieldOwner(fieldManager))
}

func keyIn(stored *corev1.Secret, size int) (Key, bool) {
	return Key{Bytes: stored.Data[keyField], Created: stored.CreationTimestamp}, len(stored.Data[keyField]) >= size
}

// digestKey returns the key of digests.
func (s *Store) digestKey(ctx context.Context) (sensitive.Key, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.key != nil {
		return *s.key, nil
	}
	stored, err := EnsureKey(ctx, s.client, s.live, types.NamespacedName{Namespace: s.namespace, Name: keySecret}, sensitive.KeyBytes)
	if err != nil {
		return sensitive.Key{}, err
	}
	key, err := sensitive.NewKey(stored.Bytes)
	if err != nil {
		return sensitive.Key{}, fmt.Errorf("reading Secret %s/%s: %w", s.namespace, keySecret, err)
	}
	s.key = &key
	return key, nil
}
