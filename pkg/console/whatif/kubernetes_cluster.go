package whatif

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// claimKubernetes is OCM's cluster claim with the version of Kubernetes.
const claimKubernetes = "kubeversion.open-cluster-management.io"

// kubernetesUpgrade is the upgrade of one cluster.
type kubernetesUpgrade struct {
	before, after Cluster
	// from is the version that the cluster reports; empty if it reports none that is valid, or if the user may not read it.
	from, to string
	rows     []KubernetesRow
	unknown  []string
}

func versionOf(c Cluster) string {
	if c.Selected == nil {
		return ""
	}
	return c.Selected.KubernetesVersion
}

func newKubernetesUpgrade(before Cluster, to string) *kubernetesUpgrade {
	u := &kubernetesUpgrade{before: before, after: before, to: to}
	if _, known := compatibility.IsReached(versionOf(before), to); known {
		u.from = versionOf(before)
	}
	if before.Selected == nil {
		return u
	}
	upgraded := *before.Selected
	upgraded.KubernetesVersion = to
	if _, claimed := upgraded.Claims[claimKubernetes]; claimed {
		upgraded.Claims = maps.Clone(upgraded.Claims)
		upgraded.Claims[claimKubernetes] = to
	}
	u.after.Selected = &upgraded
	return u
}

// judge finds the effects.
func (u *kubernetesUpgrade) judge() {
	u.judgeKnowledge()
	for _, name := range u.before.AddOnNames() {
		if addOn := u.before.AddOns[name]; addOn.DeletionTimestamp.IsZero() {
			u.judgeNeeds(name)
			if u.before.Definitions[name].PlanManaged && u.before.InstanceOf(addOn) == nil && u.before.Instances != nil {
				u.judgeInstallation(name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.before.Instances)) {
		if instance := u.before.Instances[name]; instance.DeletionTimestamp.IsZero() && !kudo.IsMirror(instance) {
			u.judgeInstance(instance)
		}
	}
	u.judgeDependents()
}

// judgeKnowledge states what is missing of the cluster itself.
func (u *kubernetesUpgrade) judgeKnowledge() {
	switch reported := versionOf(u.before); {
	case u.before.Selected == nil:
		u.unknown = append(u.unknown, "the current Kubernetes version, and which dependencies with clusters apply, because you are not allowed to get the ManagedCluster")
	case reported == "":
		u.unknown = append(u.unknown, "the current Kubernetes version, because it is not reported")
	case u.from == "":
		u.unknown = append(u.unknown, "the current Kubernetes version, because "+text.Quote(reported)+" is not a valid version")
	}
	if u.before.Instances == nil {
		u.unknown = append(u.unknown, "which versions run, because you are not allowed to list the Instances of the cluster")
	}
}

// judgeNeeds compares the dependencies that an add-on has before and after.
func (u *kubernetesUpgrade) judgeNeeds(name string) {
	if u.before.Selected == nil || !dependency.SelectClusters(u.before.Definitions[name].Needs) {
		return
	}
	before, after := u.before.Judge(name), u.after.Judge(name)
	for _, j := range after {
		if isJudged(before, j.Name) {
			continue
		}
		row := KubernetesRow{AddOn: name, DependsOn: j.Name, Type: j.Type, Effect: Applies, Reason: dependencyText(j) + " begins to apply"}
		if !j.Satisfied {
			row.Effect, row.Reason = unmetEffect(j.Type), row.Reason+", and is not satisfied: "+fleet.CauseText(j)
		}
		u.rows = append(u.rows, row)
	}
	for _, j := range before {
		if isJudged(after, j.Name) {
			continue
		}
		row := KubernetesRow{AddOn: name, DependsOn: j.Name, Type: j.Type, Effect: NoLongerApplies, Reason: dependencyText(j) + " no longer applies"}
		if !j.Satisfied {
			row.Reason += ", which is not satisfied now: " + fleet.CauseText(j)
		}
		u.rows = append(u.rows, row)
	}
}

func isJudged(verdict dependency.Verdict, name string) bool {
	return slices.ContainsFunc(verdict, func(j dependency.Judgement) bool { return j.Name == name })
}

func dependencyText(j dependency.Judgement) string {
	return fmt.Sprintf("%s dependency on %s", j.Type, text.Word(j.Name))
}

func unmetEffect(t addonv1alpha1.DependencyType) KubernetesEffect {
	if t == addonv1alpha1.DependencyTypeOptional {
		return BecomesDegraded
	}
	return BecomesUnavailable
}

// judgeDependents adds the dependents of add-ons that become unavailable.
func (u *kubernetesUpgrade) judgeDependents() {
	affected := map[string]bool{}
	for _, row := range u.rows {
		affected[row.AddOn] = affected[row.AddOn] || row.Effect == BecomesUnavailable
	}
	for _, name := range slices.Sorted(maps.Keys(affected)) {
		if !affected[name] || u.before.Judge(name).Reason() == addonv1alpha1.ReasonRequiredDependencyNotSatisfied {
			continue
		}
		for _, d := range u.after.Dependents(name) {
			if affected[d.Name] {
				continue
			}
			way := []string{d.Name}
			for _, between := range slices.Backward(d.Through) {
				way = append(way, between)
			}
			u.rows = append(u.rows, KubernetesRow{
				AddOn: d.Name, Effect: unmetEffect(d.Type), DependsOn: name, Type: d.Type,
				Reason: fmt.Sprintf("depends on %s, which becomes unavailable: %s", text.Word(name), dependency.Way(append(way, name))),
			})
		}
	}
}

// judgeInstallation compares whether the first installation of an add-on waits.
func (u *kubernetesUpgrade) judgeInstallation(name string) {
	if u.before.Selected == nil || u.before.Definitions[name].Malformed != nil {
		return
	}
	before, after := u.before.Judge(name).NotReady(), u.after.Judge(name).NotReady()
	version := configuredVersion(u.before.Cluster, name)
	if wanted := u.before.Versions.Stored[version]; wanted != nil && u.after.WaitReason(name, dependency.ReleaseOf(wanted)) != "" {
		return
	}
	if len(before) > 0 && len(after) == 0 {
		u.rows = append(u.rows, KubernetesRow{
			AddOn: name, Effect: VersionStarts, OperatorVersion: version.Name,
			Reason: "its installation is waiting now for " + text.List(dependency.Names(before), maxNames),
		})
	}
}

// maxNames limits the names in a text.
const maxNames = 5

// judgeInstance compares what an Instance runs, and what it is to run, with both versions.
func (u *kubernetesUpgrade) judgeInstance(instance *kudo.Instance) {
	subject := KubernetesRow{Instance: instance.Name}
	wanted := install.VersionOf(instance)
	switch {
	case instance.Parent() != nil:
		subject.AddOn = u.rootAddOn(instance.Labels[kudo.LabelRoot])
	case fleet.IsOfAddOn(instance) && u.before.AddOns[instance.Name] != nil:
		subject = KubernetesRow{AddOn: instance.Name}
		if pending := configuredVersion(u.before.Cluster, instance.Name); pending.Name != "" {
			wanted = pending
		}
	}
	running := release{}
	if whole := instance.Status.Whole; whole != nil {
		running = releaseOf(whole.OperatorVersion, "runs")
		u.judgeRunning(subject, running, instance, wanted == running.NamespacedName)
	}
	if wanted == running.NamespacedName {
		return
	}
	if last := instance.Status.Execution; last != nil && releaseOf(last.OperatorVersion, "").NamespacedName == wanted { // what has started is not stopped
		u.judgeRunning(subject, releaseOf(last.OperatorVersion, "is being applied"), instance, true)
		return
	}
	u.judgePending(subject, wanted, instance)
}

// release is an OperatorVersion that an Instance runs or applies.
type release struct {
	types.NamespacedName
	uid types.UID
	// does says which of both.
	does string
}

func releaseOf(version corev1.ObjectReference, does string) release {
	return release{types.NamespacedName{Namespace: version.Namespace, Name: version.Name}, version.UID, does}
}

// rootAddOn returns the add-on at the root of a tree of Instances; empty if there is none.
func (u *kubernetesUpgrade) rootAddOn(root string) string {
	if instance := u.before.Instances[root]; instance != nil && fleet.IsOfAddOn(instance) {
		return root
	}
	return ""
}

// judgeRunning compares the version that runs with both versions of Kubernetes. stays is set if the Instance is to run no other one.
func (u *kubernetesUpgrade) judgeRunning(subject KubernetesRow, of release, instance *kudo.Instance, stays bool) {
	version := u.find(of, subject)
	if version == nil {
		return
	}
	before, after := u.problems(version, instance)
	subject.OperatorVersion = of.Name
	switch {
	case after != "" && before == "": // it may be unknown before
		subject.Effect, subject.Reason = NotSupported, fmt.Sprintf("%s %s: %s", text.Word(of.Name), of.does, after)
	case after == "" && stays && isWaiting(instance):
		subject.Effect, subject.Reason = VersionStarts, "a plan of "+text.Word(of.Name)+" is waiting now"+reasonText(before)
	case after == "" && before != "":
		subject.Effect, subject.Reason = Supported, fmt.Sprintf("%s %s: %s", text.Word(of.Name), of.does, before)
	default:
		return
	}
	u.rows = append(u.rows, subject)
}

// isWaiting reports whether a plan of the Instance waits for another version of Kubernetes.
func isWaiting(instance *kudo.Instance) bool {
	ready := meta.FindStatusCondition(instance.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Reason == kudo.ReasonKubernetesVersionUnsupported
}

// judgePending compares what a version waits for before and after.
func (u *kubernetesUpgrade) judgePending(subject KubernetesRow, name types.NamespacedName, instance *kudo.Instance) {
	version := u.find(release{NamespacedName: name}, subject)
	if version == nil {
		return
	}
	before, after := u.problems(version, instance)
	if before == "" {
		before = u.orderReason(u.before, subject, version, instance)
	}
	if after == "" {
		after = u.orderReason(u.after, subject, version, instance)
	}
	waits := before != "" || u.from == "" && isWaiting(instance)
	subject.OperatorVersion = name.Name
	switch {
	case waits && after == "":
		subject.Effect, subject.Reason = VersionStarts, text.Word(name.Name)+" is waiting now"+reasonText(before)
	case !waits && after != "":
		subject.Effect, subject.Reason = VersionWaits, text.Word(name.Name)+" would wait"+reasonText(after)
	default:
		return
	}
	u.rows = append(u.rows, subject)
}

// orderReason describes which constraints keep an add-on from changing to a version that its Instance does not name yet; empty if none do.
func (u *kubernetesUpgrade) orderReason(on Cluster, subject KubernetesRow, version *kudo.OperatorVersion, instance *kudo.Instance) string {
	named := install.VersionOf(instance)
	if subject.AddOn != instance.Name || on.Selected == nil || named.Name == version.Name && named.Namespace == version.Namespace {
		return ""
	}
	return on.WaitReason(subject.AddOn, dependency.ReleaseOf(version))
}

// reasonText returns a reason after a colon; empty if there is none.
func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// problems returns what a version requires and the cluster lacks before and after, without the version of the cluster. What is not known is not lacking.
func (u *kubernetesUpgrade) problems(version *kudo.OperatorVersion, instance *kudo.Instance) (before, after string) {
	charts := plan.ChartsOf(&version.Spec, "", instance.Spec.Parameters)
	if u.from != "" {
		before = compatibility.Unmet(compatibility.Problem(&version.Spec, charts, u.from))
	}
	return before, compatibility.Unmet(compatibility.Problem(&version.Spec, charts, u.to))
}

// find returns an OperatorVersion, or states that it is not known whether it supports the version of Kubernetes.
func (u *kubernetesUpgrade) find(of release, subject KubernetesRow) *kudo.OperatorVersion {
	version, why := u.before.Versions.Stored[of.NamespacedName], ""
	switch {
	case u.before.Versions.Unread[of.Namespace]:
		why = "you are not allowed to list OperatorVersions in namespace " + of.Namespace
	case version == nil:
		why = "it no longer exists"
	case of.uid != "" && of.uid != version.UID:
		why = "it was deleted, and another one of that name was pushed"
	default:
		return version
	}
	name := subject.AddOn
	if name == "" {
		name = "Instance " + subject.Instance
	}
	u.unknown = append(u.unknown, fmt.Sprintf("whether OperatorVersion %s of %s supports the new Kubernetes version, because %s", text.Word(of.Name), text.Word(name), why))
	return nil
}
