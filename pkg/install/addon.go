// Package install decides what runs on a managed cluster: which OperatorVersion with which parameters an add-on gets there,
// when it is first installed, and whether an Instance can be run at all. It is pure and touches no cluster.
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
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/text"
)

// AddOn is everything that matters about one add-on on one cluster. Nothing in it is changed.
type AddOn struct {
	// Definition is the ClusterManagementAddOn; nil where it does not exist. Where it does not run by plans, all that matters
	// beside it is the add-on's own Instance.
	Definition    *addonv1alpha1.ClusterManagementAddOn
	ManagedAddOn  *addonv1alpha1.ManagedClusterAddOn
	Configuration Configuration

	// Unmanaged is true if the add-on's namespace is no managed cluster's.
	Unmanaged bool

	// Version is the OperatorVersion that Configuration names; nil where it does not exist.
	Version *kudo.OperatorVersion
	// DeploymentConfigs are those that Configuration names and that exist.
	DeploymentConfigs map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig

	// Instances are all those of the cluster, the add-on's own among them if it exists.
	Instances []kudo.Instance

	// Dependencies is the verdict over the add-on's dependencies; DependencyFault says why there is none.
	Dependencies    dependency.Verdict
	DependencyFault error
}

// Decision is what is to be done about an add-on.
type Decision struct {
	// Instance is the add-on's Instance as it is to stand; nil: whatever stands is left alone.
	Instance *kudo.Instance
	// Resolved is the condition of the ManagedClusterAddOn; nil: the one that stands is left alone.
	Resolved *metav1.Condition
	// Release is true if the add-on is none of Tandem's any more: its condition Resolved and health check mode are given up.
	Release bool
}

// Decide says which Instance the add-on gets, and what its condition Resolved says.
//
// An obstacle leaves an Instance that runs as it is. A first install waits until the Required dependencies are satisfied;
// nothing after it does. Variables that the OperatorVersion does not define hold nothing up: the Instance gets the others, and
// Resolved names them.
func Decide(a AddOn) Decision {
	own := a.OwnInstance()
	if own != nil && !own.DeletionTimestamp.IsZero() {
		return Decision{} // it is made anew once it is gone
	}
	if !RunsByPlans(a.Definition) {
		return forsaken(a, own)
	}
	if obstacles := obstaclesOf(a, own); len(obstacles) > 0 {
		return Decision{Resolved: resolved(obstacles, "", a.ManagedAddOn.Generation)}
	}
	parameters, undefined := collect(a)
	want := desired(a, own, parameters)
	if own == nil {
		if holds := holdsOf(a, want); len(holds) > 0 {
			return Decision{Resolved: resolved(append(holds, undefined...), "", a.ManagedAddOn.Generation)}
		}
	}
	return Decision{Instance: want, Resolved: follow(a, own, want, undefined)}
}

// forsaken decides about an add-on that does not run by plans. Usually it never did, and nothing is done about it. Where it did,
// its Instance stays until the add-on is disabled: a definition that is edited or deleted uninstalls nothing.
func forsaken(a AddOn, own *kudo.Instance) Decision {
	if own == nil || !OwnedBy(own, a.ManagedAddOn) {
		return Decision{Release: meta.FindStatusCondition(a.ManagedAddOn.Status.Conditions, addonv1alpha1.ConditionResolved) != nil}
	}
	lost, remedy := "no longer names an OperatorVersion", "name one again"
	if a.Definition == nil {
		lost, remedy = "does not exist any more", "make it again with an OperatorVersion"
	}
	return Decision{Resolved: resolved([]Obstacle{{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
		"ClusterManagementAddOn %q %s; the add-on's Instance %s/%s stays as it is: %s "+
			"(group %s, resource %s in spec.supportedConfigs), or disable the add-on to remove it",
		a.ManagedAddOn.Name, lost, own.Namespace, own.Name, remedy, operatorVersions.Group, operatorVersions.Resource,
	)}}, "", a.ManagedAddOn.Generation)}
}

// Refused is what becomes of the decision when the API server refuses the Instance that it asks for: Resolved says so, before
// what it would have said otherwise. The same refusal always makes the same condition.
func (d Decision) Refused(addOn *addonv1alpha1.ManagedClusterAddOn, why error) Decision {
	obstacles := []Obstacle{{addonv1alpha1.ReasonInstanceRefused, fmt.Sprintf("the hub's API server refuses the add-on's Instance: %v", why)}}
	if d.Resolved != nil && d.Resolved.Status != metav1.ConditionTrue {
		obstacles = append(obstacles, Obstacle{d.Resolved.Reason, d.Resolved.Message})
	}
	d.Resolved = resolved(obstacles, "", addOn.Generation)
	return d
}

// OwnedBy reports whether the Instance is that of the add-on, and not of a user or of another add-on that had its name before.
func OwnedBy(instance *kudo.Instance, addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	owner := metav1.GetControllerOf(instance)
	return owner != nil && owner.UID == addOn.UID
}

// OwnInstance is the Instance of the add-on's name, whoever made it; nil if there is none.
func (a AddOn) OwnInstance() *kudo.Instance {
	at := slices.IndexFunc(a.Instances, func(i kudo.Instance) bool { return i.Name == a.ManagedAddOn.Name })
	if at < 0 {
		return nil
	}
	return &a.Instances[at]
}

// obstaclesOf lists what keeps the add-on's Instance from being made or updated.
func obstaclesOf(a AddOn, own *kudo.Instance) []Obstacle {
	var obstacles []Obstacle
	if a.Unmanaged {
		obstacles = append(obstacles, Obstacle{addonv1alpha1.ReasonManagedClusterNotFound, fmt.Sprintf(
			"no ManagedCluster %q exists, or it is being deleted: enable the add-on in the namespace of a managed cluster", a.ManagedAddOn.Namespace)})
	}
	if fault := NameFault(a.ManagedAddOn.Name); fault != "" {
		obstacles = append(obstacles, Obstacle{kudo.ReasonNameInvalid, fault})
	}
	if own != nil && !OwnedBy(own, a.ManagedAddOn) {
		obstacles = append(obstacles, Obstacle{kudo.ReasonNameCollision, fmt.Sprintf(
			"Instance %s/%s exists and does not belong to the add-on: delete it, or give the add-on another name",
			own.Namespace, own.Name)})
	}
	if len(a.Configuration.Obstacles) > 0 {
		return append(obstacles, a.Configuration.Obstacles...)
	}
	if a.Version == nil {
		obstacles = append(obstacles, versionNotFound(a.Configuration.OperatorVersion))
	}
	for _, name := range a.Configuration.DeploymentConfigs {
		config, hash := a.DeploymentConfigs[name], a.Configuration.Hashes[name]
		switch {
		case config == nil:
			obstacles = append(obstacles, Obstacle{addonv1alpha1.ReasonConfigurationNotFound, fmt.Sprintf(
				"AddOnDeploymentConfig %s does not exist: create it, or take it out of the add-on's configs", name)})
		case hash != "" && hash != DeploymentConfigHash(config):
			obstacles = append(obstacles, Obstacle{addonv1alpha1.ReasonWaitingForConfiguration, fmt.Sprintf(
				"AddOnDeploymentConfig %s has changed: OCM's addon-manager has not rolled the change out to this cluster yet", name)})
		}
	}
	return obstacles
}

// collect joins the variables of all AddOnDeploymentConfigs, later ones winning, and divides them by whether the
// OperatorVersion defines them: those that it does not are named by an obstacle, and not passed on.
func collect(a AddOn) (parameters map[string]string, undefined []Obstacle) {
	defined, names := make(map[string]bool, len(a.Version.Spec.Parameters)), make([]string, len(a.Version.Spec.Parameters))
	for i, p := range a.Version.Spec.Parameters {
		defined[p.Name], names[i] = true, p.Name
	}
	parameters = map[string]string{}
	unknown := map[string]bool{}
	for _, name := range a.Configuration.DeploymentConfigs {
		for _, variable := range a.DeploymentConfigs[name].Spec.CustomizedVariables {
			if defined[variable.Name] {
				parameters[variable.Name] = variable.Value
			} else {
				unknown[variable.Name] = true
			}
		}
	}
	if len(unknown) == 0 {
		return parameters, nil
	}
	misspelt := slices.Sorted(maps.Keys(unknown))
	for i, name := range misspelt[:min(len(misspelt), faultLimit)] {
		if meant := text.ClosestMatch(name, names); meant != "" {
			misspelt[i] = fmt.Sprintf("%s (did you mean %s?)", name, meant)
		}
	}
	return parameters, []Obstacle{{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
		"OperatorVersion %q does not define these variables of the add-on's AddOnDeploymentConfigs: %s; "+
			"correct or remove them, all others are passed on", a.Version.Name, strings.Join(misspelt, ", "))}}
}

// desired is the add-on's Instance. Its install namespace is that of the Instance that stands, if one does.
func desired(a AddOn, own *kudo.Instance, parameters map[string]string) *kudo.Instance {
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
			Parameters:       parameters,
			InstallNamespace: installNamespace(a),
		},
	}
	// An owner that blocks deletion takes a right on the owner's finalizers, and nothing here deletes in the foreground.
	instance.OwnerReferences[0].BlockOwnerDeletion = nil
	if own != nil {
		instance.Spec.InstallNamespace = own.Spec.InstallNamespace
	}
	return instance
}

// defaultInstallNamespace is what OCM's resource definitions put into an AddOnDeploymentConfig's agentInstallNamespace, and into a
// ManagedClusterAddOn's installNamespace, where their authors name none.
const defaultInstallNamespace = "open-cluster-management-agent-addon"

// installNamespace is that of the last AddOnDeploymentConfig that names one, else the ManagedClusterAddOn's. OCM's default counts
// as not named, for nobody can tell whether it was written or filled in; it holds where nothing else is named.
func installNamespace(a AddOn) string {
	var sources []string
	for _, name := range slices.Backward(a.Configuration.DeploymentConfigs) {
		sources = append(sources, a.DeploymentConfigs[name].Spec.AgentInstallNamespace)
	}
	sources = append(sources, a.ManagedAddOn.Spec.InstallNamespace)
	isNamed := func(namespace string) bool { return namespace != "" && namespace != defaultInstallNamespace }
	if at := slices.IndexFunc(sources, isNamed); at >= 0 {
		return sources[at]
	}
	return cmp.Or(sources...)
}

// holdsOf lists what holds a first install up: a name that is taken, and the install gate, which opens once the Required
// dependencies are known to be satisfied.
func holdsOf(a AddOn, want *kudo.Instance) []Obstacle {
	var holds []Obstacle
	if collision := Collision(want, a.Instances); collision != nil {
		holds = append(holds, *collision)
	}
	if a.DependencyFault != nil {
		holds = append(holds, Obstacle{addonv1alpha1.ReasonWaitingForDependencies, fmt.Sprintf(
			"the add-on's dependencies cannot be read, and so it is not installed: %v", a.DependencyFault)})
	}
	if missing := a.Dependencies.NotReady(); len(missing) > 0 {
		// Without the causes, which change while the dependencies come up: Degraded and its events tell them.
		holds = append(holds, Obstacle{addonv1alpha1.ReasonWaitingForDependencies,
			"the add-on is installed once these add-ons are available on the cluster: " + strings.Join(dependency.Names(missing), ", ")})
	}
	return holds
}

// follow is the condition Resolved of an add-on whose Instance stands, or is about to: that of the Instance, once the Instance
// is as it is wanted and was judged so.
func follow(a AddOn, own, want *kudo.Instance, undefined []Obstacle) *metav1.Condition {
	var judged *metav1.Condition
	if own != nil && Matches(own, want) {
		judged = meta.FindStatusCondition(own.Status.Conditions, kudo.ConditionResolved)
	}
	generation := a.ManagedAddOn.Generation
	switch {
	case judged == nil || judged.ObservedGeneration != own.Generation:
		if len(undefined) == 0 {
			return nil
		}
		return resolved(undefined, "", generation)
	case judged.Status != metav1.ConditionTrue:
		return resolved(append([]Obstacle{{judged.Reason, judged.Message}}, undefined...), "", generation)
	default:
		return resolved(undefined, judged.Message, generation)
	}
}

// Matches reports whether the fields that the hub writes are in current as in want.
func Matches(current, want *kudo.Instance) bool {
	owner, wantOwner := metav1.GetControllerOf(current), metav1.GetControllerOf(want)
	return owner != nil && wantOwner != nil && owner.UID == wantOwner.UID &&
		current.Spec.OperatorVersion.Namespace == want.Spec.OperatorVersion.Namespace &&
		current.Spec.OperatorVersion.Name == want.Spec.OperatorVersion.Name &&
		current.Spec.InstallNamespace == want.Spec.InstallNamespace &&
		maps.Equal(current.Spec.Parameters, want.Spec.Parameters)
}
