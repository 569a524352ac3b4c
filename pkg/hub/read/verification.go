package read

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pack"
)

// Verifications caches, by uid, the problems of each OperatorVersion, whose spec is immutable: thousands of Instances may run the same one.
// It is safe for concurrent use.
type Verifications struct{ faults *lru.Cache }

// verificationLimit is the number of most recently used OperatorVersions in the cache. It only limits memory.
const verificationLimit = 1024

// NewVerifications returns an empty cache.
func NewVerifications() Verifications { return Verifications{faults: lru.New(verificationLimit)} }

// Of lists the problems that keep the OperatorVersion (nil: there is none) from running. The result is shared and read-only.
func (v Verifications) Of(version *kudo.OperatorVersion) []pack.Finding {
	if version == nil {
		return nil
	}
	if known, ok := v.faults.Get(version.UID); ok {
		return known.([]pack.Finding)
	}
	faults := pack.Errors(pack.Check(&version.Spec))
	v.faults.Add(version.UID, faults)
	return faults
}

// Forget removes a deleted OperatorVersion from the cache.
func (v Verifications) Forget(uid types.UID) { v.faults.Remove(uid) }
