package contact

import (
	"sync"
	"time"
)

// answerLifetime is how long the hub's answers about tokens and permissions are kept.
const answerLifetime = 10 * time.Second

// Answers keeps the hub's answers for a short time.
type Answers[K comparable, V any] struct {
	now  func() time.Time
	lock sync.Mutex
	kept map[K]answer[V]
	// swept is when old answers were last removed.
	swept time.Time
}

type answer[V any] struct {
	value V
	until time.Time
}

// NewAnswers returns an empty store of answers.
func NewAnswers[K comparable, V any]() *Answers[K, V] {
	return &Answers[K, V]{now: time.Now, kept: map[K]answer[V]{}}
}

// Get returns the answer to a question: one that is kept, or else the one that ask returns. Errors are not kept.
func (a *Answers[K, V]) Get(question K, ask func() (V, error)) (V, error) {
	a.lock.Lock()
	kept, found := a.kept[question]
	now := a.now()
	a.lock.Unlock()
	if found && now.Before(kept.until) {
		return kept.value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	a.lock.Lock()
	defer a.lock.Unlock()
	if now.After(a.swept.Add(answerLifetime)) {
		for old, kept := range a.kept {
			if now.After(kept.until) {
				delete(a.kept, old)
			}
		}
		a.swept = now
	}
	a.kept[question] = answer[V]{value, now.Add(answerLifetime)}
	return value, nil
}
