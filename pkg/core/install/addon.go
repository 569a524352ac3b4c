// Package install decides what runs on a managed cluster: which OperatorVersion with which parameters an add-on gets there, when it is
// first installed, and whether an Instance can run at all. It is pure and touches no cluster.
package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// AddOn holds everything that decides about one add-on on one cluster. It is read-only.
type AddOn struct {
	// Definition is the ClusterManagementAddOn; nil if it does not exist. If the add-on is not plan-based, only its own Instance
	// matters besides the definition.
	Definition    *addonv1alpha1.ClusterManagementAddOn
	ManagedAddOn  *addonv1alpha1.ManagedClusterAddOn
	Configuration Configuration

	// Unmanaged is true if the add-on's namespace does not belong to a managed cluster.
	Unmanaged bool

	// Version is the OperatorVersion that Configuration names; nil if it does not exist.
	Version *kudo.OperatorVersion
	// DeploymentConfigs are the existing AddOnDeploymentConfigs that Configuration names.
	DeploymentConfigs map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig
	// ConfigMaps are the existing ConfigMaps that Configuration names.
	ConfigMaps map[types.NamespacedName]*corev1.ConfigMap
	// DefinedElsewhere has the Doubts that serve another purpose, see Others.
	DefinedElsewhere map[string]bool

	// Instances are all Instances of the cluster, including the add-on's own if it exists.
	Instances []kudo.Instance

	// Reserved are the namespaces of managed clusters in which nothing is installed.
	Reserved []string

	// Dependencies is the verdict on the add-on's dependencies; DependencyProblem is why there is none.
	Dependencies      dependency.Verdict
	DependencyProblem error

	// Members are the add-ons on the cluster, and Releases those of some of them that exist, if the add-on's version is about to change: the order of
	// upgrades depends on them.
	Members  map[string]dependency.Member
	Releases map[string][]dependency.Release
}

// Decision is the action for one add-on.
type Decision struct {
	// Instance is the desired Instance of the add-on; nil: the existing one is left unchanged.
	Instance *kudo.Instance
	// Resolved is the desired condition of the ManagedClusterAddOn; nil: the existing one is left unchanged.
	Resolved *metav1.Condition
	// Release is true if Tandem no longer manages the add-on: its condition Resolved and health check mode are released.
	Release bool
	// Remarks name the parts of the configuration that have no effect. They block nothing, and Resolved includes them.
	Remarks []string
}

// Decide returns the desired Instance and condition Resolved of an add-on.
//
// A problem leaves a running Instance unchanged. A first installation waits until the Required dependencies are satisfied; later changes
// do not wait. A variable that the OperatorVersion does not define is a problem if it is a misspelt parameter; otherwise it is ignored.
func Decide(a AddOn) Decision {
	own := a.OwnInstance()
	if own != nil && !own.DeletionTimestamp.IsZero() {
		return Decision{} // it is re-created once it is gone
	}
	if !IsPlanManaged(a.Definition) {
		return decideUnmanaged(a, own)
	}
	if problems := problemsOf(a, own); len(problems) > 0 {
		return Decision{Resolved: resolvedCondition(problems, "", a.ManagedAddOn.Generation)}
	}
	given := a.variables()
	want, misspelt := desiredInstance(a, own, given), given.misspelt(a.DefinedElsewhere)
	decision := Decision{Remarks: remarksOn(a, own, want, given.ignoredNames(misspelt))}
	problems := given.problems(misspelt)
	if own == nil {
		problems = append(problems, installProblems(a, want)...)
	}
	if len(problems) == 0 {
		problems = orderProblems(a)
	}
	if len(problems) > 0 {
		decision.Resolved = resolvedCondition(problems, "", a.ManagedAddOn.Generation)
	} else {
		decision.Instance, decision.Resolved = want, instanceCondition(a, own, want)
	}
	decision.Resolved = withRemarks(decision.Resolved, decision.Remarks)
	return decision
}

// decideUnmanaged decides about an add-on that is not plan-based. Usually it never was, and nothing changes. If it was, its Instance stays
// until the add-on is disabled: editing or deleting a definition uninstalls nothing.
func decideUnmanaged(a AddOn, own *kudo.Instance) Decision {
	if own == nil || !OwnedBy(own, a.ManagedAddOn) {
		return Decision{Release: meta.FindStatusCondition(a.ManagedAddOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil}
	}
	lost, remedy := "no longer supports OperatorVersions", "add them again"
	if a.Definition == nil {
		lost, remedy = "no longer exists", "re-create it with OperatorVersions"
	}
	return Decision{Resolved: resolvedCondition([]Problem{{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
		"ClusterManagementAddOn %q %s; the add-on's Instance %s/%s is left unchanged: %s "+
			"(group %s, resource %s in spec.supportedConfigs), or disable the add-on to remove it",
		a.ManagedAddOn.Name, lost, own.Namespace, own.Name, remedy, operatorVersions.Group, operatorVersions.Resource,
	)}}, "", a.ManagedAddOn.Generation)}
}

// WithRejection returns the decision after the API server has rejected the desired Instance: Resolved reports the rejection first, then its
// original message. The same rejection always results in the same condition.
func (d Decision) WithRejection(addOn *addonv1alpha1.ManagedClusterAddOn, why error) Decision {
	problems := []Problem{{addonv1alpha1.ReasonInstanceRefused, fmt.Sprintf("the hub's API server rejected the add-on's Instance: %v", why)}}
	if d.Resolved != nil && d.Resolved.Status != metav1.ConditionTrue {
		problems = append(problems, Problem{d.Resolved.Reason, d.Resolved.Message}) // with the remarks
		d.Resolved = resolvedCondition(problems, "", addOn.Generation)
		return d
	}
	d.Resolved = withRemarks(resolvedCondition(problems, "", addOn.Generation), d.Remarks)
	return d
}

// WithUndeclaredField returns the decision after the API server has refused the desired Instance because its resource definition lacks a field of it.
func (d Decision) WithUndeclaredField(addOn *addonv1alpha1.ManagedClusterAddOn, why error) Decision {
	d.Resolved = withRemarks(resolvedCondition([]Problem{{kudo.ReasonFieldNotStored, fmt.Sprintf("CustomResourceDefinition instances.kudo.dev on the hub lacks a field of "+
		"the add-on's Instance: apply crds/ of the version of addon-manager on the hub: %v", why)}}, "", addOn.Generation), d.Remarks)
	return d
}

// OwnedBy reports whether the Instance belongs to the add-on, and not to a user or an earlier add-on of the same name.
func OwnedBy(instance *kudo.Instance, addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	owner := metav1.GetControllerOf(instance)
	return owner != nil && owner.UID == addOn.UID
}

// OwnInstance returns the Instance with the add-on's name, regardless of its owner; nil if there is none.
func (a AddOn) OwnInstance() *kudo.Instance {
	at := slices.IndexFunc(a.Instances, func(i kudo.Instance) bool { return i.Name == a.ManagedAddOn.Name })
	if at < 0 {
		return nil
	}
	return &a.Instances[at]
}

// Doubts returns the doubtful variables of the add-on, sorted; none while its OperatorVersion is missing.
func (a AddOn) Doubts() []Doubt {
	if a.Version == nil {
		return nil
	}
	return a.variables().doubts()
}

func (a AddOn) variables() given {
	return variablesOf(a.Version, a.sources())
}

// problemsOf lists the problems that keep the add-on's Instance from being created or updated.
func problemsOf(a AddOn, own *kudo.Instance) []Problem {
	var problems []Problem
	if a.Unmanaged {
		problems = append(problems, clusterNotFound(a.ManagedAddOn.Namespace, "enable the add-on"))
	}
	if problem := NameProblem(a.ManagedAddOn.Name); problem != "" {
		problems = append(problems, Problem{kudo.ReasonNameInvalid, problem})
	}
	if own != nil && !OwnedBy(own, a.ManagedAddOn) {
		problems = append(problems, Problem{kudo.ReasonNameCollision, fmt.Sprintf(
			"Instance %s/%s exists and does not belong to the add-on: give the add-on another name",
			own.Namespace, own.Name)})
	}
	if len(a.Configuration.Problems) > 0 {
		return append(problems, a.Configuration.Problems...)
	}
	if a.Version == nil {
		problems = append(problems, versionNotFound(a.Configuration.OperatorVersion))
	}
	for _, name := range a.Configuration.DeploymentConfigs {
		problems = append(problems, a.deploymentConfigProblems(name)...)
	}
	for _, name := range a.Configuration.ConfigMaps {
		problems = append(problems, a.configMapProblems(name)...)
	}
	return problems
}

// deploymentConfigProblems returns why the add-on cannot use the AddOnDeploymentConfig now.
func (a AddOn) deploymentConfigProblems(name types.NamespacedName) []Problem {
	config := a.DeploymentConfigs[name]
	if config == nil {
		return []Problem{{addonv1alpha1.ReasonConfigurationNotFound, fmt.Sprintf(
			"AddOnDeploymentConfig %s does not exist: create it, or remove it from the add-on's configs", name)}}
	}
	if waits := a.rolloutProblems(Reference{deploymentConfigs.Resource, name}, DeploymentConfigHash(config)); len(waits) > 0 {
		return waits
	}
	return registryProblems(name, config)
}

// configMapProblems returns why the add-on cannot use the ConfigMap now.
func (a AddOn) configMapProblems(name types.NamespacedName) []Problem {
	config := a.ConfigMaps[name]
	switch {
	case config == nil || config.Labels[kudo.LabelConfiguration] != "true":
		return []Problem{{addonv1alpha1.ReasonConfigurationNotFound, fmt.Sprintf(
			"ConfigMap %s does not exist, or has no label %s=true: create it with that label, or remove it from the add-on's configs",
			name, kudo.LabelConfiguration)}}
	case len(config.BinaryData) > 0:
		return []Problem{{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
			"ConfigMap %s has binary values (%s), and values of parameters are text: remove them",
			name, text.List(slices.Sorted(maps.Keys(config.BinaryData)), problemLimit))}}
	}
	return a.rolloutProblems(Reference{configMaps.Resource, name}, ConfigMapHash(config))
}

// rolloutProblems returns a problem if a rollout of OCM has not reached the cluster with the current content of a config, which has that hash.
func (a AddOn) rolloutProblems(config Reference, hash string) []Problem {
	if wanted := a.Configuration.Hashes[config]; wanted == "" || wanted == hash {
		return nil
	}
	return []Problem{{addonv1alpha1.ReasonWaitingForConfiguration, fmt.Sprintf(
		"%s has changed: OCM's addon-manager has not rolled the change out to this cluster yet", config.Describe())}}
}

// remarksOn lists the parts of the configuration that have no effect: variables that are not defined, constraints on what is no dependency, another install namespace than that of the
// existing Instance, which never moves, malformed maintenance windows, times and policies, and references to Secrets that the package may not get.
func remarksOn(a AddOn, own, want *kudo.Instance, ignored []string) []string {
	var remarks []string
	if len(ignored) > 0 {
		remarks = append(remarks, fmt.Sprintf("variables that OperatorVersion %q does not define are ignored: %s",
			a.Version.Name, text.List(ignored, problemLimit)))
	}
	if unchecked := uncheckedDependencies(a); len(unchecked) > 0 {
		remarks = append(remarks, fmt.Sprintf("OperatorVersion %q requires versions of add-ons on which ClusterManagementAddOn %q declares no dependency, and which "+
			"are not compared: %s", a.Version.Name, a.ManagedAddOn.Name, text.List(unchecked, problemLimit)))
	}
	if requested := installNamespace(a); own != nil && isNamed(requested) && requested != own.TargetNamespace() {
		remarks = append(remarks, fmt.Sprintf("the add-on stays in namespace %q of the managed cluster: to move it to %q, disable it, "+
			"and enable it again after its removal", own.TargetNamespace(), requested))
	}
	if problem := WindowsProblem(want.Spec.Windows); problem != "" {
		remarks = append(remarks, fmt.Sprintf("annotation %s of the AddOnDeploymentConfig is malformed, and no plan starts: %s", kudo.AnnotationWindows, problem))
	}
	if problem := a.healthyForProblem(); problem != "" {
		remarks = append(remarks, problem)
	}
	if _, problem := a.onFailure(); problem != "" {
		remarks = append(remarks, problem)
	}
	if remark := unreadable(want, a.Version, func(string) bool { return true }); remark != "" {
		remarks = append(remarks, remark)
	}
	return remarks
}

// uncheckedDependencies returns the add-ons whose versions the OperatorVersion constrains, although the definition declares no dependency on them.
func uncheckedDependencies(a AddOn) []string {
	declared := dependency.CandidatesOf(dependency.Needs(a.Definition))
	var unchecked []string
	for _, constraint := range a.Version.Spec.Dependencies {
		if !slices.Contains(declared, constraint.Name) {
			unchecked = append(unchecked, constraint.Name+" "+constraint.Version)
		}
	}
	return unchecked
}

// ChangesVersion reports whether the add-on is configured with another OperatorVersion than the one that its Instance names, or has no Instance yet.
func ChangesVersion(a AddOn) bool {
	own := a.OwnInstance()
	return a.Version != nil && len(a.Configuration.Problems) == 0 && (own == nil || VersionOf(own) != a.Configuration.OperatorVersion)
}

// orderProblems returns why the add-on's version cannot change yet.
func orderProblems(a AddOn) []Problem {
	name := a.ManagedAddOn.Name
	waits := []string{dependency.MissingReason(name, a.Members),
		dependency.WaitReason(name, a.Members, func(addOn string) []dependency.Release { return a.Releases[addOn] })}
	if a.DependencyProblem != nil && ChangesVersion(a) && a.OwnInstance() != nil {
		waits = append(waits, fmt.Sprintf("waiting to change to %s: the dependencies of the add-on cannot be read: %v", a.Version.Name, a.DependencyProblem))
	}
	var problems []Problem
	for _, wait := range waits {
		if wait != "" {
			problems = append(problems, Problem{addonv1alpha1.ReasonWaitingForDependencies, wait})
		}
	}
	return problems
}

// desiredInstance returns the desired Instance of the add-on. It keeps the install namespace of an existing Instance.
func desiredInstance(a AddOn, own *kudo.Instance, given given) *kudo.Instance {
	version := a.Configuration.OperatorVersion
	instance := &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Name:      a.ManagedAddOn.Name,
			Namespace: a.ManagedAddOn.Namespace,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(a.ManagedAddOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")),
			},
		},
		Spec: kudo.InstanceSpec{
			OperatorVersion:  corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name},
			Parameters:       given.parameters,
			ParametersFrom:   given.references,
			InstallNamespace: installNamespace(a),
			ImageRegistries:  a.registries(),
			Windows:          a.windows(),
		},
	}
	// Blocking owner deletion requires permission on the owner's finalizers, and nothing here uses foreground deletion.
	instance.OwnerReferences[0].BlockOwnerDeletion = nil
	instance.Spec.OnFailure, _ = a.onFailure()
	required, _, malformed := a.healthyFor()
	if instance.Spec.HealthyFor = required; own != nil {
		instance.Spec.InstallNamespace = own.Spec.InstallNamespace
		if malformed != "" {
			instance.Spec.HealthyFor = own.Spec.HealthyFor
		}
	}
	return instance
}

// DefaultInstallNamespace is OCM's CRD default for the agentInstallNamespace of an AddOnDeploymentConfig and the installNamespace of a
// ManagedClusterAddOn.
const DefaultInstallNamespace = "open-cluster-management-agent-addon"

// installNamespace returns the namespace set by the last AddOnDeploymentConfig that sets one, else by the ManagedClusterAddOn. OCM's
// default counts as unset, because a default cannot be distinguished from an explicit value; it applies if no other namespace is set.
func installNamespace(a AddOn) string {
	var sources []string
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		sources = append(sources, a.DeploymentConfigs[name].Spec.AgentInstallNamespace)
	}
	sources = append(sources, a.ManagedAddOn.Spec.InstallNamespace)
	if at := slices.IndexFunc(sources, isNamed); at >= 0 {
		return sources[at]
	}
	return cmp.Or(sources...)
}

// windows returns the maintenance windows of the add-on: those of the last AddOnDeploymentConfig that has any.
func (a AddOn) windows() string {
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		if config := a.DeploymentConfigs[name]; config != nil {
			if source := AnnotatedWindows(config); source != "" {
				return source
			}
		}
	}
	return ""
}

// isNamed reports whether a user has chosen the install namespace.
func isNamed(namespace string) bool { return namespace != "" && namespace != DefaultInstallNamespace }

// installProblems lists the problems of a first installation: a reserved namespace, a name that is already in use, and the install gate, which opens once the Required
// dependencies are known to be satisfied, and no plan updates them.
func installProblems(a AddOn, want *kudo.Instance) []Problem {
	var holds []Problem
	if namespace := want.TargetNamespace(); slices.Contains(a.Reserved, namespace) {
		holds = append(holds, reservedProblem(namespace, "set another one in spec.installNamespace of the ManagedClusterAddOn, or agentInstallNamespace of its "+
			"AddOnDeploymentConfig"))
	}
	if collision := Collision(want, a.Instances); collision != nil {
		holds = append(holds, *collision)
	}
	if a.DependencyProblem != nil {
		holds = append(holds, Problem{addonv1alpha1.ReasonWaitingForDependencies, fmt.Sprintf(
			"the add-on is not installed because its dependencies cannot be read: %v", a.DependencyProblem)})
	}
	if missing := a.Dependencies.NotReady(); len(missing) > 0 {
		// Omit the causes, which change while the dependencies start: Degraded and its events report them. It does not report updates.
		names := dependency.Names(missing)
		for i, j := range missing {
			if j.Updating {
				names[i] += " (a plan updates it)"
			}
		}
		holds = append(holds, Problem{addonv1alpha1.ReasonWaitingForDependencies,
			dependency.AvailabilityOpening + strings.Join(names, ", ")})
	}
	return holds
}

// instanceCondition returns the condition Resolved of an add-on with an Instance: the Instance's own condition, once the Instance is as desired and
// has been judged at that generation.
func instanceCondition(a AddOn, own, want *kudo.Instance) *metav1.Condition {
	var judged *metav1.Condition
	if own != nil && Matches(own, want) {
		judged = meta.FindStatusCondition(own.Status.Conditions, kudo.ConditionResolved)
	}
	generation := a.ManagedAddOn.Generation
	switch {
	case judged == nil || judged.ObservedGeneration != own.Generation:
		return nil
	case judged.Status != metav1.ConditionTrue:
		return resolvedCondition([]Problem{{judged.Reason, judged.Message}}, "", generation)
	default:
		return resolvedCondition(nil, judged.Message, generation)
	}
}

// Matches reports whether the fields that the hub writes are equal in current and want.
func Matches(current, want *kudo.Instance) bool {
	owner, wantOwner := metav1.GetControllerOf(current), metav1.GetControllerOf(want)
	return owner != nil && wantOwner != nil && owner.UID == wantOwner.UID &&
		current.Spec.OperatorVersion.Namespace == want.Spec.OperatorVersion.Namespace &&
		current.Spec.OperatorVersion.Name == want.Spec.OperatorVersion.Name &&
		current.Spec.InstallNamespace == want.Spec.InstallNamespace && current.Spec.Windows == want.Spec.Windows &&
		current.Spec.OnFailure == want.Spec.OnFailure && isSameTime(current.Spec.HealthyFor, want.Spec.HealthyFor) && SameValues(current.Spec, want.Spec)
}
