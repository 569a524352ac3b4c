package install

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// hubRequest is the prefix of every uid that the hub gives to a manual plan request: hub.PLAN.UUID. The uid itself shows that the hub
// generated it, and for which plan.
const hubRequest = "hub."

// RequestChange is the hub's change to an Instance's manual plan request. The zero value is no change.
type RequestChange struct {
	// UID is the new uid of the request.
	UID types.UID
	// Clear is true if the request is removed from the spec.
	Clear bool
}

// Request decides about the Instance's spec.planExecution. KUDO's clients name a plan there and leave the rest to the server: such a
// request gets a uid, and so does one that names another plan than its uid was generated for. A handled request is cleared, so that the
// same plan can be requested again. A uid set by a user stays, handled or not. A request to cancel, which names the uid of the running
// execution, is left unchanged. The same request always gets the same uid.
func Request(i *kudo.Instance) RequestChange {
	request := i.Spec.PlanExecution
	if request.PlanName == "" || request.Cancel {
		return RequestChange{}
	}
	givenFor, given := requestedFromHub(request.UID)
	switch {
	case request.UID == "", given && givenFor != request.PlanName:
		return RequestChange{UID: requestUID(i)}
	case given && isHandled(i):
		return RequestChange{Clear: true}
	default:
		return RequestChange{}
	}
}

// requestUID returns the uid for the Instance's request at its generation. On a restored hub generations occur twice: the uid is none that
// was handled.
func requestUID(i *kudo.Instance) types.UID {
	name := i.Spec.PlanExecution.PlanName
	occasion := fmt.Sprintf("%s/%d/%s", i.UID, i.Generation, name)
	handled := plan.ReachedState(i.Status, nil).Handled
	for slices.Contains(handled, hubUID(name, occasion)) {
		occasion += "/again"
	}
	return hubUID(name, occasion)
}

// hubUID returns the uid of a plan request that the hub completes. It is the same for the same occasion.
func hubUID(name, occasion string) types.UID { return uidFor(hubRequest, name, occasion) }

// rerunUID returns the uid of a request to run a failed plan of a child again. It is the same for the same occasion.
func rerunUID(name, occasion string) types.UID { return uidFor(plan.RerunPrefix, name, occasion) }

func uidFor(prefix, name, occasion string) types.UID {
	return types.UID(prefix + name + "." + uuid.NewSHA1(uuid.NameSpaceURL, []byte(occasion)).String())
}

// requestedFromHub reports whether the hub generated the uid, and for which plan.
func requestedFromHub(uid types.UID) (name string, given bool) {
	rest, given := strings.CutPrefix(string(uid), hubRequest)
	if !given {
		rest, given = strings.CutPrefix(string(uid), plan.RerunPrefix)
	}
	end := strings.LastIndex(rest, ".")
	if !given || end < 0 || uuid.Validate(rest[end+1:]) != nil {
		return "", false
	}
	return rest[:end], true
}

// isHandled reports whether the agent has started the requested plan.
func isHandled(i *kudo.Instance) bool {
	uid := i.Spec.PlanExecution.UID
	return uid != "" && slices.Contains(plan.ReachedState(i.Status, nil).Handled, uid)
}
