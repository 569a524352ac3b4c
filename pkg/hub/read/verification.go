package read

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// Verifications caches, by uid, the problems of each OperatorVersion, whose spec is immutable: thousands of Instances may run the same one.
// It verifies one OperatorVersion at a time, which bounds the memory. It is safe for concurrent use.
type Verifications struct {
	problems *lru.Cache
	turn     *sync.Mutex
}

// verificationLimit is the number of most recently used OperatorVersions in the cache. It only limits memory.
const verificationLimit = 1024

// problemLimit is the number of problems of an OperatorVersion in the cache.
const problemLimit = 10

// NewVerifications returns an empty cache.
func NewVerifications() Verifications {
	return Verifications{problems: lru.New(verificationLimit), turn: &sync.Mutex{}}
}

// Admit rejects a new OperatorVersion that cannot run.
func (v Verifications) Admit(version *kudo.OperatorVersion) error {
	v.turn.Lock()
	defer v.turn.Unlock()
	return pack.Admit(version)
}

// Of lists the problems that keep the OperatorVersion (nil: there is none) from running. The result is shared and read-only.
func (v Verifications) Of(version *kudo.OperatorVersion) []pack.Problem {
	if version == nil {
		return nil
	}
	if known, ok := v.problems.Get(version.UID); ok {
		return known.([]pack.Problem)
	}
	v.turn.Lock()
	defer v.turn.Unlock()
	if known, ok := v.problems.Get(version.UID); ok { // verified meanwhile
		return known.([]pack.Problem)
	}
	problems := pack.First(pack.Errors(pack.Check(version.NamedSpec())), problemLimit)
	v.problems.Add(version.UID, problems)
	return problems
}

// Forget removes a deleted OperatorVersion from the cache.
func (v Verifications) Forget(uid types.UID) { v.problems.Remove(uid) }
