package install

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/soak"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Rollout is what OCM's addon-manager needs to follow the rollout of a configuration of a plan-based add-on: the same data that
// addon-framework reports for other add-ons (docs/decisions: Tandem reports rollout progress in a ManifestWork).
type Rollout struct {
	// SpecHashes are the hashes missing from status.configReferences, by index: those of configs that the add-on itself names.
	SpecHashes map[int]string
	// Mark identifies the configuration that has reached the cluster, in OCM's format (annotation config-spec-hash of a ManifestWork);
	// empty if none has, and during the change from one to the next.
	Mark string
	// Applied is condition ManifestApplied.
	Applied metav1.Condition
	// State is the progress of the rollout on this cluster.
	State RolloutState
}

// RolloutState is the progress of a rollout on one cluster.
type RolloutState string

const (
	// RolloutDone means that the cluster runs the configuration that OCM desires.
	RolloutDone RolloutState = ""
	// RolloutWaiting means that the cluster is not included in the rollout yet, or that OCM has not resolved its configuration.
	RolloutWaiting RolloutState = "Waiting"
	// RolloutProgressing means that the configuration is being applied.
	RolloutProgressing RolloutState = "Progressing"
	// RolloutSoaking means that the plan is complete, and that the cluster has to be healthy for longer before it counts as done.
	RolloutSoaking RolloutState = "Soaking"
	// RolloutFailed means that the plan has failed, that the cluster is not healthy after it, or that the configuration is invalid. This blocks the clusters that
	// wait.
	RolloutFailed RolloutState = "Failed"
)

// SupportedConfigs returns the configs that a plan-based add-on supports.
func SupportedConfigs() []upstream.ConfigGroupResource {
	return []upstream.ConfigGroupResource{deploymentConfigs, operatorVersions, configMaps}
}

// RolloutOf returns the rollout data for OCM; nil if OCM does not manage the add-on's configuration. marked is the current mark.
//
// A configuration has reached the cluster once the add-on's Instance has it and is Ready with it: a plan that fails sets no mark and so
// blocks the rollout. If the configuration requires that (kudo.dev/healthy-for), it has to be healthy for a time after its plan, too. Later changes of its health do not remove the mark. The next configuration removes it as soon as the
// Instance gets it: a rollback has to complete again. An invalid configuration reaches no Instance, so it is never marked.
func RolloutOf(a AddOn, marked string) *Rollout {
	if !IsPlanManaged(a.Definition) || !isManagedByOCM(a.Definition, a.ManagedAddOn) {
		return nil
	}
	rollout := &Rollout{SpecHashes: missingHashes(a), Mark: marked, Applied: metav1.Condition{
		Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonPlanNotComplete,
		Message: "no plan has completed with the add-on's current configuration yet",
	}}
	wanted, decision := mark(a.ManagedAddOn.Status.ConfigReferences), Decide(a)
	reason, message := soakingReason(a, decision.Instance)
	switch {
	case wanted == "":
	case wanted == marked || reason == "" && isUpToDate(a.OwnInstance(), decision.Instance, a.Version):
		rollout.Mark = wanted
		rollout.Applied.Status, rollout.Applied.Reason = metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete
		rollout.Applied.Message = "a plan has completed with the add-on's current configuration"
	case decision.Instance != nil:
		rollout.Mark = ""
		if reason != "" {
			rollout.Applied.Reason, rollout.Applied.Message = reason, message
		}
	}
	rollout.State = rolloutState(a.ManagedAddOn, a.OwnInstance(), decision.Resolved, &rollout.Applied)
	return rollout
}

// soakingReason returns why a cluster whose plan is complete is not done yet, as reason and message of condition ManifestApplied; empty if nothing prevents it, or
// if the plan is not complete. A malformed time is never reached.
func soakingReason(a AddOn, want *kudo.Instance) (reason, message string) {
	if problem := a.healthyForProblem(); problem != "" {
		return addonv1alpha1.ReasonHealthyForInvalid, problem
	}
	own := a.OwnInstance()
	if want == nil || want.Spec.HealthyFor == nil || !isUpToDate(own, want, a.Version) || soak.IsOver(own) {
		return "", ""
	}
	const opening = "a plan has completed with the add-on's current configuration, which has to be healthy for "
	required := opening + want.Spec.HealthyFor.Duration.String() + ": "
	switch soaked := meta.FindStatusCondition(own.Status.Conditions, kudo.ConditionSoaked); {
	case soaked == nil:
		return addonv1alpha1.ReasonAgentTooOld, required + "the agent of the cluster does not report that, because its version is too old: upgrade it"
	case soaked.Reason == kudo.ReasonSoakFailed:
		return addonv1alpha1.ReasonSoakFailed, required + text.Truncate(text.OneLine(soaked.Message), maxSoakMessage)
	default:
		return addonv1alpha1.ReasonSoaking, required + text.Truncate(text.OneLine(soaked.Message), maxSoakMessage)
	}
}

// SoakCondition returns condition ManifestApplied of an add-on if its plan is complete, and the cluster is not done all the same; nil otherwise.
func SoakCondition(conditions []metav1.Condition) *metav1.Condition {
	applied := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionManifestApplied)
	if applied == nil || applied.Status != metav1.ConditionFalse || applied.Reason == addonv1alpha1.ReasonPlanNotComplete ||
		!slices.Contains(addonv1alpha1.RolloutReasons(), applied.Reason) {
		return nil
	}
	return applied
}

// maxSoakMessage is the maximum length of what an agent says about condition Soaked.
const maxSoakMessage = 2048

// RolloutStateOf returns the progress as the conditions of the add-on and its Instance report it. The Instance may be nil.
func RolloutStateOf(addOn *addonv1alpha1.ManagedClusterAddOn, own *kudo.Instance) RolloutState {
	conditions := addOn.Status.Conditions
	state := rolloutState(addOn, own, meta.FindStatusCondition(conditions, addonv1alpha1.ConditionResolved),
		meta.FindStatusCondition(conditions, addonv1alpha1.ConditionManifestApplied))
	available := meta.FindStatusCondition(conditions, addonv1alpha1.ConditionAvailable)
	if state == RolloutProgressing && own == nil && available != nil && available.Reason == kudo.ReasonPlanFailed {
		return RolloutFailed
	}
	return state
}

// rolloutState returns the progress, given the add-on's Instance and conditions Resolved and ManifestApplied. Each may be nil.
func rolloutState(addOn *addonv1alpha1.ManagedClusterAddOn, own *kudo.Instance, resolved, applied *metav1.Condition) RolloutState {
	if applied == nil {
		applied = &metav1.Condition{}
	}
	switch {
	case !meta.IsStatusConditionTrue(addOn.Status.Conditions, addonv1alpha1.ConditionConfigured):
		return RolloutWaiting
	case applied.Status == metav1.ConditionTrue:
		return RolloutDone
	case own != nil && hasFailed(own), IsLasting(resolved):
		return RolloutFailed
	case applied.Reason == addonv1alpha1.ReasonSoakFailed, applied.Reason == addonv1alpha1.ReasonHealthyForInvalid:
		return RolloutFailed
	case applied.Reason == addonv1alpha1.ReasonSoaking:
		return RolloutSoaking
	default:
		return RolloutProgressing
	}
}

// hasFailed reports whether the last plan of an Instance has failed at its current generation, also while it is retried.
func hasFailed(i *kudo.Instance) bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.ObservedGeneration == i.Generation && (ready.Reason == kudo.ReasonPlanFailed || plan.Retries(i.Status) > 0)
}

// isUpToDate reports whether the add-on's Instance runs as configured, with the current OperatorVersion. Each may be nil; version is set if
// an Instance is wanted.
func isUpToDate(own, want *kudo.Instance, version *kudo.OperatorVersion) bool {
	if own == nil || want == nil || !Matches(own, want) {
		return false
	}
	switch ran := own.Status.Execution; {
	case ran == nil:
	case ran.OperatorVersion.UID != version.UID:
		return false // the version was deleted and pushed again, and the agent does not have the new one yet
	case !slices.Equal(ran.ImageRegistries, want.Spec.ImageRegistries):
		return false // an agent of an earlier release does not replace registries
	}
	ready := meta.FindStatusCondition(own.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == own.Generation
}

// mark formats references like OCM: a JSON object of RESOURCE.GROUP/NAMESPACE/NAME and hash, without the dot in the core group. It is empty if a
// hash is unknown.
func mark(references []upstream.ConfigReference) string {
	if len(references) == 0 {
		return ""
	}
	hashes := make(map[string]string, len(references))
	for _, r := range references {
		if r.DesiredConfig == nil || r.DesiredConfig.SpecHash == "" {
			return ""
		}
		resource := r.Resource
		if r.Group != "" {
			resource += "." + r.Group
		}
		hashes[fmt.Sprintf("%s/%s/%s", resource, r.DesiredConfig.Namespace, r.DesiredConfig.Name)] = r.DesiredConfig.SpecHash
	}
	spelt, _ := json.Marshal(hashes) // strings always encode
	return string(spelt)
}

// DesiredFingerprint returns a fingerprint of the add-on configuration that OCM desires: it changes when the configuration does.
func DesiredFingerprint(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	var desired strings.Builder
	for _, r := range addOn.Status.ConfigReferences {
		if r.DesiredConfig != nil {
			fmt.Fprintln(&desired, r.ConfigGroupResource, *r.DesiredConfig)
		}
	}
	return desired.String()
}

// StageOf returns the stage of an add-on's rollout to which one of its clusters belongs, given their number, and whether the rollout has not reached it. Which of several
// Placements selects it is unknown: then a free slot of any of them counts, and there is no limit if there is none in one of them, or if one of them includes groups.
func StageOf(definition *addonv1alpha1.ClusterManagementAddOn, clusters int, isQueued bool) dependency.Stage {
	if definition == nil || definition.Spec.InstallStrategy.Type != upstream.AddonInstallStrategyPlacements {
		return dependency.Stage{}
	}
	placements, slots := definition.Spec.InstallStrategy.Placements, 0
	if len(placements) == 1 && includesGroups(placements[0].RolloutStrategy) {
		number := 0
		if isQueued {
			number = 1 // OCM includes all clusters of a group together, and the next group afterwards
		}
		return dependency.Stage{Number: number}
	}
	for _, p := range placements {
		of := slotsOf(p.RolloutStrategy, clusters)
		if of <= 0 {
			return dependency.Stage{}
		}
		slots += of
	}
	return dependency.Stage{Slots: slots}
}

// includesGroups reports whether OCM includes no further cluster before all changes on those that it has included have ended. This is true of the strategy by groups, and
// of a progressive one with mandatory groups: OCM (progressivePerGroup of sdk-go) goes through these first, each time, and does not reach the other clusters while a change
// is in progress on any cluster. A mandatory group that the Placement does not have makes no lasting difference: OCM fills its slots at once.
func includesGroups(strategy clusterv1alpha1.RolloutStrategy) bool {
	switch strategy.Type {
	case clusterv1alpha1.ProgressivePerGroup:
		return true
	case clusterv1alpha1.Progressive:
		return strategy.Progressive != nil && len(strategy.Progressive.MandatoryDecisionGroups.MandatoryDecisionGroups) > 0
	default:
		return false
	}
}

// slotsOf returns how many of the clusters a strategy includes at a time; 0 if there is no limit, or if it is unknown, as without maxConcurrency: then the Placement has it.
func slotsOf(strategy clusterv1alpha1.RolloutStrategy, clusters int) int {
	if strategy.Type != clusterv1alpha1.Progressive || strategy.Progressive == nil || includesGroups(strategy) {
		return 0
	}
	concurrency := strategy.Progressive.MaxConcurrency
	if concurrency.Type == intstr.Int {
		return max(int(concurrency.IntVal), 0)
	}
	return share(concurrency.StrVal, clusters)
}

// share returns a percentage of the clusters as OCM reads it: it may have a fraction, and is rounded up. It returns 0 if the percentage is malformed, with which OCM
// includes no cluster, or if it is not in the range up to 100 %, with which OCM includes all clusters.
func share(percentage string, clusters int) int {
	number, isPercentage := strings.CutSuffix(percentage, "%")
	parsed, err := strconv.ParseFloat(number, 64)
	if !isPercentage || err != nil {
		return 0
	}
	if part := math.Ceil(parsed / 100 * float64(clusters)); part > 0 && part <= float64(clusters) {
		return int(part)
	}
	return 0
}

// missingHashes returns the hashes of configs that the add-on itself names: OCM takes those as they are, and other configs by its rollout
// strategy.
func missingHashes(a AddOn) map[int]string {
	missing := map[int]string{}
	for i, r := range a.ManagedAddOn.Status.ConfigReferences {
		if r.DesiredConfig == nil || !namesItself(a.ManagedAddOn, r.ConfigGroupResource, r.DesiredConfig.ConfigReferent) {
			continue
		}
		if hash := hashOf(a, r); hash != "" && hash != r.DesiredConfig.SpecHash {
			missing[i] = hash
		}
	}
	return missing
}

// hashOf returns the hash of the referenced object; empty if it does not exist.
func hashOf(a AddOn, r upstream.ConfigReference) string {
	name := types.NamespacedName(r.DesiredConfig.ConfigReferent)
	switch {
	case r.ConfigGroupResource == operatorVersions && a.Version != nil && name == a.Configuration.OperatorVersion:
		return VersionHash(a.Version)
	case r.ConfigGroupResource == deploymentConfigs && a.DeploymentConfigs[name] != nil:
		return DeploymentConfigHash(a.DeploymentConfigs[name])
	case r.ConfigGroupResource == configMaps && a.ConfigMaps[name] != nil:
		return ConfigMapHash(a.ConfigMaps[name])
	default:
		return ""
	}
}
