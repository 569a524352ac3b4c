package install

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// hubRequest begins every uid that the hub gives to a request for a plan by hand: hub.PLAN.UUID. So the uid tells by itself
// that no user gave it, and for which plan it was given.
const hubRequest = "hub."

// RequestChange is what the hub does about an Instance's request for a plan by hand. The zero value is nothing.
type RequestChange struct {
	// UID is what the request gets as its uid.
	UID types.UID
	// Clear is true if the request is taken out of the spec.
	Clear bool
}

// Request decides about the Instance's spec.planExecution. KUDO's clients name a plan there and leave the rest to the server:
// such a request gets a uid, and so does one that names another plan than the uid in it was given for. Once it was handled it
// is cleared, so that the same plan can be asked for again. A uid that a user gave stays, handled or not; nothing is done about
// a request to cancel, which names the uid of what runs. The same request always gets the same uid.
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

// requestUID is the uid for the Instance's request at its generation.
func requestUID(i *kudo.Instance) types.UID {
	plan := i.Spec.PlanExecution.PlanName
	return hubUID(plan, fmt.Sprintf("%s/%d/%s", i.UID, i.Generation, plan))
}

// hubUID is the uid of a request for a plan that the hub makes or completes: always the same one for the same occasion.
func hubUID(plan, occasion string) types.UID {
	return types.UID(hubRequest + plan + "." + uuid.NewSHA1(uuid.NameSpaceURL, []byte(occasion)).String())
}

// requestedFromHub reports whether the hub gave the uid, and for which plan.
func requestedFromHub(uid types.UID) (plan string, given bool) {
	rest, given := strings.CutPrefix(string(uid), hubRequest)
	end := strings.LastIndex(rest, ".")
	if !given || end < 0 || uuid.Validate(rest[end+1:]) != nil {
		return "", false
	}
	return rest[:end], true
}

// isHandled reports whether the agent has started what the Instance's request asks for.
func isHandled(i *kudo.Instance) bool {
	execution, uid := i.Status.Execution, i.Spec.PlanExecution.UID
	return execution != nil && uid != "" && execution.Request == uid
}
