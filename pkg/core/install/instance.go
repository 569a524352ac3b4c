package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/facts"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Instance holds everything that decides about one Instance on the hub. It is read-only.
type Instance struct {
	Instance *kudo.Instance
	// Unmanaged is true if the Instance's namespace does not belong to a managed cluster. Then nothing else is read or judged: its author
	// may not be allowed to read OperatorVersions.
	Unmanaged bool
	// Version is the OperatorVersion at VersionOf; nil if it does not exist or must not be read.
	Version *kudo.OperatorVersion
	// VersionProblems are the problems that pack.Check finds in Version.
	VersionProblems []pack.Problem
	// Incomplete are the parts of Version's content that are missing or altered.
	Incomplete []*content.Error
	// Unsigned are the OperatorVersions, of Version and its child operators, that lack a signature that the hub requires.
	Unsigned []UnsignedVersion
	// Tree is the tree of Version and its child operators; nil without a Version, or if TreeProblem describes a problem.
	Tree        *tree.Node
	TreeProblem *tree.Error
	// Started is the OperatorVersion that status.execution names; nil if nothing was started yet or it no longer exists.
	Started *kudo.OperatorVersion
	// Instances are all Instances of the cluster, which may include Instance.
	Instances []kudo.Instance
	// PackagesNamespace is the namespace of the OperatorVersions for all clusters.
	PackagesNamespace string
	// Reserved are the namespaces of managed clusters in which nothing is installed.
	Reserved []string
	// Cluster are the facts of the managed cluster; nil if they are not known.
	Cluster *kudo.ClusterFacts
	// FactsDropped is true if the API server does not store the facts in the spec of the Instance.
	FactsDropped bool
	// ClusterWindows are the maintenance windows of the managed cluster, and WindowsDropped is FactsDropped for them.
	ClusterWindows string
	WindowsDropped bool

	// Suspensions are the objects on the hub that suspend the Instance, and SuspensionDropped is FactsDropped for them.
	Suspensions       []suspension.Origin
	SuspensionDropped bool

	// replaced is true without a Version if another OperatorVersion has its name now.
	replaced bool
}

// rules judge an Instance, in the order in which their problems are listed.
var rules = []func(Instance) []Problem{
	nameRule, collisionRule, reservedRule, namespaceRule, versionRule, signatureRule, contentRule, childrenRule, parametersRule, immutableRule, planRule, requestRule,
	factsRule, windowsRule, suspensionRule,
}

// Judge returns the condition Resolved of the Instance at its generation: True, or False with every problem.
func Judge(i Instance) metav1.Condition {
	if i.Unmanaged {
		return *resolvedCondition(unmanagedRule(i), "", i.Instance.Generation)
	}
	i = i.asChosen()
	var problems []Problem
	for _, rule := range rules {
		problems = append(problems, rule(i)...)
	}
	return *resolvedCondition(problems, fmt.Sprintf("OperatorVersion %s", VersionOf(i.Instance)), i.Instance.Generation)
}

// IsStale reports whether a condition Resolved is about an earlier OperatorVersion of the same name: the Instance's was created after it. The hub
// may have seen neither the deletion nor the creation.
func (i Instance) IsStale(resolved *metav1.Condition) bool {
	return i.Version != nil && resolved != nil && resolved.Status == metav1.ConditionTrue &&
		i.Version.CreationTimestamp.After(resolved.LastTransitionTime.Time)
}

// ResolvedAt returns the time of a transition of condition Resolved: now, but not before the OperatorVersion was created. The clock of the API
// server, which sets that time, may be ahead.
func (i Instance) ResolvedAt(now time.Time) time.Time {
	if i.Version != nil && i.Version.CreationTimestamp.After(now) {
		return i.Version.CreationTimestamp.Time
	}
	return now
}

// asChosen returns the state without an OperatorVersion that has replaced the one that the parent of a child Instance has chosen: only the
// parent's plan chooses again.
func (i Instance) asChosen() Instance {
	if i.Version == nil || Chooses(i.Instance, i.Version) {
		return i
	}
	i.Version, i.VersionProblems, i.Incomplete, i.Unsigned, i.Tree, i.TreeProblem, i.replaced = nil, nil, nil, nil, nil, nil, true
	return i
}

// Chooses reports whether the parent of a child Instance has chosen that OperatorVersion, among those of the same name: the object, or one
// that was deleted and re-created with equal content. Other Instances choose by name.
func Chooses(i *kudo.Instance, version *kudo.OperatorVersion) bool {
	uid := i.VersionUID()
	return uid == "" || uid == version.UID || i.Annotations[kudo.AnnotationVersionContent] == plan.ContentDigest(&version.Spec)
}

// VersionOf returns the name of the Instance's OperatorVersion. The namespace defaults to the Instance's own.
func VersionOf(i *kudo.Instance) types.NamespacedName {
	reference := i.Spec.OperatorVersion
	return types.NamespacedName{Namespace: cmp.Or(reference.Namespace, i.Namespace), Name: reference.Name}
}

// MayRead reports whether the Instance's OperatorVersion is in a namespace that the agent of its cluster may read.
func (i Instance) MayRead() bool {
	return MayRead(i.Instance.Namespace, VersionOf(i.Instance).Namespace, i.PackagesNamespace)
}

// MayRead reports whether the agent of the cluster may read OperatorVersions in the namespace. The hub reads no others for an Instance,
// whether its spec or its status names them, so that an Instance discloses nothing about other namespaces to its author or its agent.
func MayRead(cluster, namespace, packagesNamespace string) bool {
	return namespace == cluster || namespace == packagesNamespace
}

// NameProblem returns why an Instance cannot have the name; empty if it can. On the managed cluster and in templates, dots in the name are
// replaced by dashes.
func NameProblem(name string) string {
	if len(name) > validation.DNS1123LabelMaxLength {
		return fmt.Sprintf("name %q has %d characters: at most %d are allowed", name, len(name), validation.DNS1123LabelMaxLength)
	}
	if problems := validation.IsDNS1123Label(DashedName(name)); len(problems) > 0 {
		return fmt.Sprintf("name %q is not a valid DNS label after its dots are replaced by dashes: %s", name, strings.Join(problems, "; "))
	}
	return ""
}

// Collision returns the problem that another Instance has the same name and target namespace on the managed cluster, and precedes this one; nil if
// there is none. The hub and the agent decide by it which of them runs.
func Collision(instance *kudo.Instance, instances []kudo.Instance) *Problem {
	for i := range instances {
		other := &instances[i]
		if other.Name == instance.Name || SlotOf(other) != SlotOf(instance) || !precedes(other, instance) {
			continue
		}
		return &Problem{kudo.ReasonNameCollision, fmt.Sprintf(
			"Instance %s/%s already has the name %q in namespace %q of the managed cluster: use another name or install namespace",
			other.Namespace, other.Name, DashedName(instance.Name), instance.TargetNamespace())}
	}
	return nil
}

// Slot is a name on a managed cluster that one Instance at a time may use.
type Slot struct{ Cluster, Namespace, Name string }

// SlotOf returns the Instance's slot. It never changes while the Instance exists, because name, namespace and install namespace are
// immutable: objects on the managed cluster cannot be orphaned by a change.
func SlotOf(i *kudo.Instance) Slot {
	return Slot{Cluster: i.Namespace, Namespace: i.TargetNamespace(), Name: DashedName(i.Name)}
}

// precedes reports whether a keeps a slot that b has, too: the one that has executed plans, then the older one, then the first by name. An
// Instance that does not exist yet is the youngest.
func precedes(a, b *kudo.Instance) bool {
	switch {
	case HasExecuted(a) != HasExecuted(b):
		return HasExecuted(a)
	case b.CreationTimestamp.IsZero():
		return true
	case !a.CreationTimestamp.Time.Equal(b.CreationTimestamp.Time):
		return a.CreationTimestamp.Time.Before(b.CreationTimestamp.Time)
	default:
		return a.Name < b.Name
	}
}

// HasExecuted reports whether the Instance may have objects on its managed cluster: its agent has started a plan.
func HasExecuted(i *kudo.Instance) bool { return i.Status.Execution != nil }

func unmanagedRule(i Instance) []Problem {
	return []Problem{clusterNotFound(i.Instance.Namespace, "create the Instance")}
}

func nameRule(i Instance) []Problem {
	if problem := NameProblem(i.Instance.Name); problem != "" {
		return []Problem{{kudo.ReasonNameInvalid, problem}}
	}
	return nil
}

func collisionRule(i Instance) []Problem {
	if collision := Collision(i.Instance, i.Instances); collision != nil {
		return []Problem{*collision}
	}
	return nil
}

// reservedRule requires that nothing is installed in a reserved namespace. An Instance that runs there stays, and its changes run.
func reservedRule(i Instance) []Problem {
	namespace := i.Instance.TargetNamespace()
	if i.Instance.Status.Execution != nil || !slices.Contains(i.Reserved, namespace) {
		return nil
	}
	return []Problem{reservedProblem(namespace, "delete the Instance, and create it with another spec.installNamespace")}
}

func namespaceRule(i Instance) []Problem {
	if i.MayRead() {
		return nil
	}
	version := VersionOf(i.Instance)
	return []Problem{{kudo.ReasonNamespaceNotAllowed, fmt.Sprintf(
		"spec.operatorVersion.namespace is %q, which agents are not allowed to read: push OperatorVersion %q to %s, "+
			"or to %s for this cluster only",
		version.Namespace, version.Name, i.PackagesNamespace, i.Instance.Namespace)}}
}

func versionRule(i Instance) []Problem {
	if !i.MayRead() {
		return nil // the version was not read
	}
	switch {
	case i.replaced:
		return []Problem{{kudo.ReasonOperatorVersionNotFound, fmt.Sprintf("OperatorVersion %s was replaced: run a plan of Instance %q to use the new one",
			VersionOf(i.Instance), i.Instance.Parent().Name)}}
	case i.Version == nil:
		return []Problem{versionNotFound(VersionOf(i.Instance))}
	}
	if len(i.VersionProblems) == 0 {
		return nil
	}
	lines := make([]string, 0, len(i.VersionProblems))
	for _, problem := range i.VersionProblems {
		lines = append(lines, problem.String())
	}
	return []Problem{{kudo.ReasonOperatorVersionInvalid, fmt.Sprintf(
		"OperatorVersion %s is invalid; push a corrected version: %s", VersionOf(i.Instance), strings.Join(lines, "; "))}}
}

// UnsignedVersion is an OperatorVersion without a signature that the hub requires.
type UnsignedVersion struct {
	Name types.NamespacedName
	// Reason says why there is none, or why those that it has do not count.
	Reason string
	// IsKeyless is set if it was signed without a key, and no identity is trusted.
	IsKeyless bool
	// Keys is the ConfigMap with the keys and identities, HasKeys whether it has any, and KeysProblem what is wrong with it; empty if nothing is.
	Keys        types.NamespacedName
	HasKeys     bool
	KeysProblem string
}

// createKeys returns the command that stores public keys, whether the ConfigMap exists or not.
func (u UnsignedVersion) createKeys() string {
	return text.Command("kubectl create configmap %s -n %s --from-file=cosign.pub --dry-run=client -o yaml", u.Keys.Name, u.Keys.Namespace) + " | kubectl apply -f -"
}

// maxUnsigned is the number of unsigned versions that a message names.
const maxUnsigned = 3

// signatureRule requires that the OperatorVersions of the Instance and its child operators are signed, if the hub does.
func signatureRule(i Instance) []Problem {
	if len(i.Unsigned) == 0 {
		return nil
	}
	lines := make([]string, len(i.Unsigned))
	for at, unsigned := range i.Unsigned {
		lines[at] = fmt.Sprintf("OperatorVersion %s: %s", unsigned.Name, unsigned.Reason)
	}
	first := i.Unsigned[0]
	wrong := ""
	if first.KeysProblem != "" {
		wrong = " (" + first.KeysProblem + ")"
	}
	fix := fmt.Sprintf("sign the package and push it again (kubectl addon package push DIR -n %s --sign-key FILE)", VersionOf(i.Instance).Namespace)
	if first.IsKeyless {
		fix += ", or trust the identity that signed it (entries trusted_root.json and identities.yaml of the ConfigMap)"
	} else if !first.HasKeys {
		fix = fmt.Sprintf("store the public keys of the signers in it (%s)", first.createKeys())
	}
	return []Problem{{kudo.ReasonOperatorVersionNotSigned, fmt.Sprintf("the hub runs only packages that are signed with a key or by an identity in ConfigMap %s%s; %s: %s",
		first.Keys, wrong, fix, strings.Join(text.Limit(lines, maxUnsigned, "more OperatorVersions"), "; "))}}
}

// maxIncomplete is the number of missing or altered parts that a message names.
const maxIncomplete = 3

// contentRule requires that the content of the OperatorVersion is complete: the agent copies it, and runs nothing without it.
func contentRule(i Instance) []Problem {
	if len(i.Incomplete) == 0 {
		return nil
	}
	lines := make([]string, len(i.Incomplete))
	for at, problem := range i.Incomplete[:min(len(i.Incomplete), maxIncomplete)] {
		lines[at] = problem.Error()
	}
	version := VersionOf(i.Instance)
	return []Problem{{kudo.ReasonContentIncomplete, fmt.Sprintf("the content of OperatorVersion %s is incomplete; push the same package again "+
		"(kubectl addon package push DIR -n %s): %s", version, version.Namespace, strings.Join(text.Limit(lines, maxIncomplete, "more parts"), "; "))}}
}

// factsRule requires that the facts of the cluster can be passed on, if the OperatorVersion uses them.
func factsRule(i Instance) []Problem {
	if i.Version == nil || i.Cluster == nil || !facts.UseCluster(&i.Version.Spec) {
		return nil
	}
	problem := facts.Problem(i.Cluster)
	if problem == "" && i.FactsDropped {
		return []Problem{{kudo.ReasonFieldNotStored, fmt.Sprintf("CustomResourceDefinition instances.kudo.dev on the hub has no field spec.cluster, and templates "+
			"of OperatorVersion %s use .Cluster: apply crds/ of the version of addon-manager on the hub", VersionOf(i.Instance))}}
	}
	if problem == "" {
		return nil
	}
	return []Problem{{kudo.ReasonClusterFactsInvalid, fmt.Sprintf("ManagedCluster %q cannot be described to templates of OperatorVersion %s, which use "+
		".Cluster: %s: remove some", i.Cluster.Name, VersionOf(i.Instance), problem)}}
}

// windowsRule requires that the maintenance windows of the cluster can be passed on.
func windowsRule(i Instance) []Problem {
	if !i.WindowsDropped {
		return nil
	}
	return []Problem{{kudo.ReasonFieldNotStored, fmt.Sprintf("CustomResourceDefinition instances.kudo.dev on the hub has no field spec.clusterWindows, and "+
		"ManagedCluster %q has annotation %s: apply crds/ of the version of addon-manager on the hub", i.Instance.Namespace, kudo.AnnotationWindows)}}
}

// suspensionRule requires that a suspension can be passed on.
func suspensionRule(i Instance) []Problem {
	if !i.SuspensionDropped {
		return nil
	}
	return []Problem{{kudo.ReasonFieldNotStored, fmt.Sprintf("CustomResourceDefinition instances.kudo.dev on the hub has no field spec.suspendedBy, and the "+
		"Instance is suspended by %s: apply crds/ of the version of addon-manager on the hub", suspension.Describe(i.Suspensions))}}
}

// childrenRule requires that the tree of child operators is complete and acyclic, and that the names of all children are valid. The
// parameters of children are judged when their tasks run.
func childrenRule(i Instance) []Problem {
	if i.TreeProblem != nil {
		return []Problem{{i.TreeProblem.Problems[0].Reason, i.TreeProblem.Error()}}
	}
	if i.Tree == nil || NameProblem(i.Instance.Name) != "" {
		return nil // the children are unknown, or their names are invalid because the parent's is
	}
	for _, child := range i.Tree.Descendants(i.Instance.Name) {
		if problem := NameProblem(child.Name); problem != "" {
			return []Problem{{kudo.ReasonChildrenInvalid, fmt.Sprintf(
				"task %q of %s would create a child with an invalid name: %s; give the Instance a shorter name, or the task another instanceName",
				child.Task.Name, child.Parent.Name, problem)}}
		}
	}
	return nil
}

func parametersRule(i Instance) []Problem {
	if i.Version == nil {
		return nil
	}
	if err := parameter.Validate(&i.Version.Spec, i.Instance.Spec.Parameters, i.Instance.Spec.ParametersFrom); err != nil {
		return []Problem{{kudo.ReasonParametersInvalid, err.Error()}}
	}
	return nil
}

// immutableRule requires that immutable parameters keep the values that were last started.
func immutableRule(i Instance) []Problem {
	if i.Version == nil || i.Instance.Status.Execution == nil {
		return nil
	}
	problems := startedProblems(i, newSetting(i.Instance.Spec.Parameters, i.Version))
	if len(problems) == 0 {
		return nil
	}
	return []Problem{{kudo.ReasonParametersInvalid, (&parameter.InvalidError{Problems: problems}).Error()}}
}

// planRule requires that the OperatorVersion has the plan that has to run for the Instance's spec.
func planRule(i Instance) []Problem {
	if i.Version == nil || !i.Instance.DeletionTimestamp.IsZero() {
		return nil
	}
	state := i.state()
	switch missing := plan.MissingPlan(state); {
	case missing == "":
		return nil
	case state.Whole == nil && missing == kudo.DeployPlan:
		return []Problem{{kudo.ReasonPlanMissing, fmt.Sprintf("OperatorVersion %s has no plan deploy, which the first installation runs: "+
			"use another version, and upgrade to this one when plan deploy of the other is complete", VersionOf(i.Instance))}}
	default:
		return []Problem{{kudo.ReasonPlanMissing, fmt.Sprintf("OperatorVersion %s has no plan for this change (%s): "+
			"revert the change, or use a version that has the plan", VersionOf(i.Instance), missing)}}
	}
}

// state returns what the Instance's plans depend on, without manual requests.
func (i Instance) state() plan.State {
	var started *kudo.OperatorVersionSpec
	if i.Started != nil {
		started = &i.Started.Spec
	}
	s := plan.ReachedState(i.Instance.Status, started)
	s.Version, s.Parameters, s.Registries = &i.Version.Spec, i.Instance.Spec.Parameters, i.Instance.Spec.ImageRegistries
	s.Cluster = i.Instance.Spec.Cluster
	s.Sensitive.From = plan.WithoutDigests(i.Instance.Spec.ParametersFrom)
	s.Reference = corev1.ObjectReference{Namespace: i.Version.Namespace, Name: i.Version.Name, UID: i.Version.UID}
	return s
}

// startedProblems returns the immutable parameters whose value in now differs from the last started one.
func startedProblems(i Instance, now parameter.Setting) []parameter.Problem {
	return parameter.Immutable(newSetting(i.Instance.Status.Execution.Parameters, i.Started, i.Version), now)
}

// newSetting combines the given values with the definitions of the first OperatorVersion that exists.
func newSetting(given map[string]string, versions ...*kudo.OperatorVersion) parameter.Setting {
	s := parameter.Setting{Given: given}
	if at := slices.IndexFunc(versions, func(v *kudo.OperatorVersion) bool { return v != nil }); at >= 0 {
		s.Definitions = versions[at].Spec.Parameters
	}
	return s
}

// versionNotFound returns the problem that the OperatorVersion does not exist.
func versionNotFound(name types.NamespacedName) Problem {
	if name.Name == "" {
		return Problem{kudo.ReasonOperatorVersionNotFound, "spec.operatorVersion.name is empty: set it to the name of an OperatorVersion"}
	}
	return Problem{kudo.ReasonOperatorVersionNotFound, fmt.Sprintf(
		"OperatorVersion %s does not exist: push its package (kubectl addon package push DIR -n %s), or use another version",
		name, name.Namespace)}
}

// DashedName returns the name as used on the managed cluster and in templates.
func DashedName(name string) string { return strings.ReplaceAll(name, ".", "-") }

// requestRule requires that a request names an existing plan. It ignores a handled request, whatever plans the OperatorVersion has now.
func requestRule(i Instance) []Problem {
	request := i.Instance.Spec.PlanExecution
	if i.Version == nil || request.PlanName == "" || request.Cancel || isHandled(i.Instance) {
		return nil
	}
	if _, exists := i.Version.Spec.Plans[request.PlanName]; exists {
		return nil
	}
	return []Problem{{kudo.ReasonRequestInvalid, fmt.Sprintf(
		"spec.planExecution.planName is %q, but OperatorVersion %s has no such plan: use one of its plans (%s), "+
			"or remove spec.planExecution",
		request.PlanName, VersionOf(i.Instance), strings.Join(slices.Sorted(maps.Keys(i.Version.Spec.Plans)), ", "))}}
}
