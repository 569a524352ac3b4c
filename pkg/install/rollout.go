package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// Rollout is what OCM's addon-manager has to be told of an add-on that runs by plans, to count how far a configuration has got: as
// much as addon-framework tells it of others (docs/decisions: a rollout is counted by marks).
type Rollout struct {
	// SpecHashes are the hashes that status.configReferences lacks, by the place in it: those of configs that the add-on names itself.
	SpecHashes map[int]string
	// Mark names the configuration that has reached the cluster, as OCM spells it (annotation config-spec-hash of a ManifestWork);
	// empty while none has, and on the way from one to the next.
	Mark string
	// Applied is condition ManifestApplied.
	Applied metav1.Condition
	// State is how far the rollout has got on this cluster.
	State RolloutState
}

// RolloutState is how far a rollout has got on one cluster.
type RolloutState string

const (
	// RolloutDone is that of a cluster that runs what OCM wants there.
	RolloutDone RolloutState = ""
	// RolloutWaiting is that of one whose turn has not come, or whose configuration OCM has not resolved.
	RolloutWaiting RolloutState = "Waiting"
	// RolloutProgressing is that of one that is getting there.
	RolloutProgressing RolloutState = "Progressing"
	// RolloutFailed is that of one where the plan has failed, which holds up those that wait.
	RolloutFailed RolloutState = "Failed"
)

// SupportedConfigs are the configs that an add-on which runs by plans takes.
func SupportedConfigs() []upstream.ConfigGroupResource {
	return []upstream.ConfigGroupResource{deploymentConfigs, operatorVersions}
}

// RolloutOf is what to tell; nil where OCM does not look after the add-on's configuration. marked is the mark that stands.
//
// A configuration has reached the cluster once the add-on's Instance is as the configuration has it, and is Ready so: a plan that fails
// leaves no mark, and so holds up the rollout. What becomes of the add-on afterwards does not take the mark back, but the next
// configuration does as soon as the Instance gets it: what goes back to the one before has to get there again.
func RolloutOf(a AddOn, marked string) *Rollout {
	if !RunsByPlans(a.Definition) || !managedByOCM(a.Definition, a.ManagedAddOn) {
		return nil
	}
	rollout := &Rollout{SpecHashes: missingHashes(a), Mark: marked, Applied: metav1.Condition{
		Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonPlanNotComplete,
		Message: "no plan has brought the add-on's current configuration to completion yet",
	}}
	wanted, instance := mark(a.ManagedAddOn.Status.ConfigReferences), Decide(a).Instance
	switch {
	case wanted == "":
	case wanted == marked || reached(a.OwnInstance(), instance, a.Version):
		rollout.Mark = wanted
		rollout.Applied.Status, rollout.Applied.Reason = metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete
		rollout.Applied.Message = "a plan has brought the add-on's current configuration to completion"
	case instance != nil:
		rollout.Mark = ""
	}
	rollout.State = rolloutState(a, rollout.Applied.Status == metav1.ConditionTrue)
	return rollout
}

// rolloutState is how far it has got, where what OCM wants on the cluster is applied or not.
func rolloutState(a AddOn, applied bool) RolloutState {
	own := a.OwnInstance()
	switch {
	case !meta.IsStatusConditionTrue(a.ManagedAddOn.Status.Conditions, addonv1alpha1.ConditionConfigured):
		return RolloutWaiting
	case applied:
		return RolloutDone
	case own != nil && hasFailed(own):
		return RolloutFailed
	default:
		return RolloutProgressing
	}
}

// hasFailed reports whether the last plan of an Instance has, at its current generation.
func hasFailed(i *kudo.Instance) bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Reason == kudo.ReasonPlanFailed && ready.ObservedGeneration == i.Generation
}

// reached reports whether an add-on's Instance runs as its configuration wants it, by the very OperatorVersion that there is now. Each may be
// nil; there is one where an Instance is wanted.
func reached(own, want *kudo.Instance, version *kudo.OperatorVersion) bool {
	if own == nil || want == nil || !Matches(own, want) {
		return false
	}
	if ran := own.Status.Execution; ran != nil && ran.OperatorVersion.UID != version.UID {
		return false // one of the name was deleted and pushed again, and the agent does not have it yet
	}
	ready := meta.FindStatusCondition(own.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == own.Generation
}

// mark spells references as OCM does: a JSON object of RESOURCE.GROUP/NAMESPACE/NAME and hash. It is empty while a hash is not known.
func mark(references []upstream.ConfigReference) string {
	if len(references) == 0 {
		return ""
	}
	hashes := make(map[string]string, len(references))
	for _, r := range references {
		if r.DesiredConfig == nil || r.DesiredConfig.SpecHash == "" {
			return ""
		}
		hashes[fmt.Sprintf("%s.%s/%s/%s", r.Resource, r.Group, r.DesiredConfig.Namespace, r.DesiredConfig.Name)] = r.DesiredConfig.SpecHash
	}
	spelt, _ := json.Marshal(hashes) // strings always encode
	return string(spelt)
}

// Desired is what OCM wants of an add-on's configuration, in some spelling of its own: it changes when that does.
func Desired(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	var desired strings.Builder
	for _, r := range addOn.Status.ConfigReferences {
		if r.DesiredConfig != nil {
			fmt.Fprintln(&desired, r.ConfigGroupResource, *r.DesiredConfig)
		}
	}
	return desired.String()
}

// missingHashes are those of the configs that the add-on names itself: OCM takes them as they come, those of others by its strategy.
func missingHashes(a AddOn) map[int]string {
	missing := map[int]string{}
	for i, r := range a.ManagedAddOn.Status.ConfigReferences {
		if r.DesiredConfig == nil || !namesItself(a.ManagedAddOn, r) {
			continue
		}
		if hash := hashOf(a, r); hash != "" && hash != r.DesiredConfig.SpecHash {
			missing[i] = hash
		}
	}
	return missing
}

func namesItself(addOn *addonv1alpha1.ManagedClusterAddOn, r upstream.ConfigReference) bool {
	return slices.Contains(addOn.Spec.Configs, upstream.AddOnConfig{
		ConfigGroupResource: r.ConfigGroupResource, ConfigReferent: r.DesiredConfig.ConfigReferent,
	})
}

// hashOf is the hash of what a reference names; empty where that does not exist.
func hashOf(a AddOn, r upstream.ConfigReference) string {
	name := types.NamespacedName(r.DesiredConfig.ConfigReferent)
	switch {
	case r.ConfigGroupResource == operatorVersions && a.Version != nil && name == a.Configuration.OperatorVersion:
		return VersionHash(a.Version)
	case r.ConfigGroupResource == deploymentConfigs && a.DeploymentConfigs[name] != nil:
		return DeploymentConfigHash(a.DeploymentConfigs[name])
	default:
		return ""
	}
}
