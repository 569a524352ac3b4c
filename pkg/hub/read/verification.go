package read

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pack"
)

// Verifications remembers, by uid, what is wrong with each OperatorVersion, whose spec is immutable: thousands of Instances may run
// the same one. It may be used by several goroutines.
type Verifications struct{ faults *lru.Cache }

// verificationLimit is how many OperatorVersions are remembered: those used last. It only bounds memory.
const verificationLimit = 1024

// NewVerifications remembers nothing yet.
func NewVerifications() Verifications { return Verifications{faults: lru.New(verificationLimit)} }

// Of lists what keeps the OperatorVersion (nil: there is none) from being run. The result is shared and not to be changed.
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

// Forget drops what is remembered of an OperatorVersion that is gone.
func (v Verifications) Forget(uid types.UID) { v.faults.Remove(uid) }
