package read

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pack"
)

// Verifications caches, by uid, the problems of each OperatorVersion, whose spec is immutable: thousands of Instances may run the same one.
// It is safe for concurrent use.
type Verifications struct{ problems *lru.Cache }

// verificationLimit is the number of most recently used OperatorVersions in the cache. It only limits memory.
const verificationLimit = 1024

// NewVerifications returns an empty cache.
func NewVerifications() Verifications { return Verifications{problems: lru.New(verificationLimit)} }

// Of lists the problems that keep the OperatorVersion (nil: there is none) from running. The result is shared and read-only.
func (v Verifications) Of(version *kudo.OperatorVersion) []pack.Problem {
	if version == nil {
		return nil
	}
	if known, ok := v.problems.Get(version.UID); ok {
		return known.([]pack.Problem)
	}
	problems := pack.Errors(pack.Check(version.NamedSpec()))
	v.problems.Add(version.UID, problems)
	return problems
}

// Forget removes a deleted OperatorVersion from the cache.
func (v Verifications) Forget(uid types.UID) { v.problems.Remove(uid) }
