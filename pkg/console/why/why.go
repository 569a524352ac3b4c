package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/availability"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Of states why an add-on is not available, and how to fix it. now decides whether a running plan is recent.
func Of(view fleet.Cluster, name string, now time.Time) *Explanation {
	view = view.Current()
	e := &Explanation{view: view, now: now}
	verdict := view.Judge(name)
	if addOn := view.AddOns[name]; addOn == nil {
		e.explainNotInstalled(name)
		e.explainUnmet(name, verdict, addonv1alpha1.DependencyTypeRequired)
	} else {
		e.explainInstalled(addOn, verdict)
	}
	slices.Reverse(e.enable)
	e.commands = append(e.enable, e.commands...)
	return e
}

func (e *Explanation) explainNotInstalled(name string) {
	e.addSentence("Add-on %s is not installed on cluster %s: enable it.", name, e.view.Name)
	e.enableCommand(name)
}

// enableCommand suggests the command that enables the last add-on of a path of dependencies. A plan-based add-on is installed in
// the namespace of the nearest dependent that looks for it there; any other add-on in the namespace that OCM sets.
func (e *Explanation) enableCommand(way ...string) {
	name, namespace := way[len(way)-1], ""
	if e.view.Definitions[name].PlanManaged {
		for _, dependent := range way[:len(way)-1] {
			if addOn := e.view.AddOns[dependent]; addOn != nil {
				namespace = cmp.Or(addOn.Spec.InstallNamespace, namespace)
			}
		}
	}
	command := text.Command("kubectl addon enable %s --cluster %s", name, e.view.Name)
	switch {
	case namespace != "":
		command += " --namespace " + text.ShellWord(namespace)
	case e.view.Definitions[name].PlanManaged: // the user chooses one: OCM's default is not for packages
		command += " --namespace NAMESPACE"
	}
	e.enable = append(e.enable, command)
}

// explainInstalled explains an add-on on the cluster: its status, its unmet dependencies, and what holds up its installation.
func (e *Explanation) explainInstalled(addOn *addonv1alpha1.ManagedClusterAddOn, verdict dependency.Verdict) {
	if !addOn.DeletionTimestamp.IsZero() {
		e.explainDeletion(addOn)
		return
	}
	seen := e.view.See(addOn.Name)
	e.headline(addOn, seen, verdict)
	if seen.Reason != addonv1alpha1.ReasonClusterLeaseStopped {
		e.explainPlan(addOn)
	}
	e.explainUnmet(addOn.Name, verdict, addonv1alpha1.DependencyTypeRequired)
	e.explainUnmet(addOn.Name, verdict, addonv1alpha1.DependencyTypeOptional)
	if problem := e.view.Definitions[addOn.Name].Malformed; problem != nil {
		e.explainLastVerdict(addOn, problem)
	} else {
		e.explainLag(addOn, seen, verdict.Reason())
	}
	e.explainOwnProblems(addOn)
	e.explainDrift(addOn)
	e.suggestFix(addOn)
	if len(e.sentences) == 1 && seen.Available == metav1.ConditionTrue && !e.isUpdateUnknown(addOn) {
		e.addSentence("Nothing to do.")
	}
}

// headline states the status of the add-on, or since when the hub does not know it.
func (e *Explanation) headline(addOn *addonv1alpha1.ManagedClusterAddOn, seen dependency.Seen, verdict dependency.Verdict) {
	subject := fmt.Sprintf("Add-on %s", addOn.Name)
	on := "on cluster " + e.view.Name
	switch available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable); {
	case available == nil:
		e.addSentence("%s has not reported its availability %s yet.", subject, on)
		e.suggestDetails(addOn)
	case available.Status == metav1.ConditionTrue && verdict.Reason() == addonv1alpha1.ReasonRequiredDependencyNotSatisfied:
		e.addSentence("%s still reports that it is available %s, but its required dependencies are not satisfied.", subject, on)
	case available.Status == metav1.ConditionTrue && len(verdict.Unmet()) > 0:
		e.addSentence("%s is available %s, but degraded because optional dependencies are not satisfied.", subject, on)
	case available.Status == metav1.ConditionTrue:
		e.addSentence("%s is available %s%s.", subject, on, e.satisfiedText(addOn, available, verdict))
	case seen.Reason == addonv1alpha1.ReasonClusterLeaseStopped:
		e.addSentence("The availability of add-on %s %s is unknown: the cluster has been unreachable since %s. Until it reconnects, the last "+
			"known state of dependencies applies. Check that the cluster, its network and its agents are running.",
			addOn.Name, on, available.LastTransitionTime.UTC().Format(time.RFC3339))
		e.suggest("kubectl get managedcluster %s", e.view.Name)
		e.suggest("kubectl get leases --namespace %s --output custom-columns=NAME:.metadata.name,RENEWED:.spec.renewTime", e.view.Name)
	case isStale(seen) && e.hasRecovered(addOn.Name, verdict):
		e.addSentence("%s is not available yet %s, although its required dependencies are satisfied again.", subject, on)
	case isStale(seen):
		e.addSentence("%s is not available %s because required dependencies are not satisfied.", subject, on)
	default:
		e.addSentence("%s is %s %s: %s.", subject, stateText(available), on, reasonText(available))
		e.suggestDetails(addOn)
		e.suggestRetry(addOn)
	}
}

// hasRecovered reports whether all required dependencies of an add-on are met.
func (e *Explanation) hasRecovered(name string, verdict dependency.Verdict) bool {
	return verdict.Reason() != addonv1alpha1.ReasonRequiredDependencyNotSatisfied && e.view.Definitions[name].Malformed == nil
}

// explainUnmet lists the unmet dependencies of that type and their impact, and follows them to the root causes.
func (e *Explanation) explainUnmet(name string, verdict dependency.Verdict, t addonv1alpha1.DependencyType) {
	unmet := slices.DeleteFunc(verdict.Unmet(), func(j dependency.Judgement) bool { return j.Type != t })
	verb := "It requires"
	if t == addonv1alpha1.DependencyTypeOptional {
		verb = "It optionally uses"
	}
	for i, root := range dependency.Roots(name, unmet, fleet.Once(e.view.Judge)) {
		if i == 1 {
			verb = strings.Replace(verb, "It", "It also", 1)
		}
		e.explainRoot(verb, root)
		e.roots = append(e.roots, root)
	}
	for _, j := range unmet {
		if j.Message != "" {
			e.addSentence("Without %s: %s", text.Word(j.Name), sentence(text.JoinMessage(j.Message)))
		}
	}
}

// explainRoot states the problem of the add-on at the end of a chain of unmet dependencies, and how to fix it.
func (e *Explanation) explainRoot(verb string, root dependency.Root) {
	subject := verb + " " + text.Word(root.By)
	if len(root.Alternatives) > 0 {
		subject += fmt.Sprintf(" (one of %s)", strings.Join(candidatesOf(root.Judgement), ", "))
	}
	if len(root.Way) > 2 {
		subject += fmt.Sprintf(" (%s)", dependency.Way(root.Way))
	}
	switch again := slices.ContainsFunc(e.roots, root.Same); {
	case root.Cause == dependency.Circular:
		if !again {
			e.cycle(root.Cycle)
		}
	case again:
		e.addSentence("%s too.", subject)
	case root.Cause == dependency.NoSuchAddOn:
		parent := root.Way[len(root.Way)-2]
		e.addSentence("%s, which does not exist: no ClusterManagementAddOn has that name. Create it, or correct the dependencies of %s.", subject, parent)
		e.suggest("kubectl edit clustermanagementaddon %s", parent)
	case root.Cause == dependency.NotInstalled, root.Cause == dependency.PlacementDecides, root.Cause == dependency.Declined:
		e.explainMissing(subject, root)
	case root.Cause == dependency.Deleting:
		addOn := e.view.AddOns[root.By]
		e.addSentence("%s, which is being deleted%s: enable it again after the deletion.", subject, waitsFor(addOn))
		e.explainFinalizers(addOn)
		if e.view.InstanceOf(addOn) != nil {
			e.suggest("kubectl addon why %s --cluster %s", addOn.Name, e.view.Name)
		}
	case root.Cause == dependency.VersionMismatch:
		e.addSentence("%s, but that %s.", subject, text.JoinMessage(root.Mismatch))
		e.suggestVersion(root.By, root.Way[len(root.Way)-2])
	default:
		e.explainFailure(subject, e.view.AddOns[root.By], root.Held)
	}
}

// explainMissing states why an add-on is not installed, and how to change that.
func (e *Explanation) explainMissing(subject string, root dependency.Root) {
	switch {
	case root.Automatic:
		e.addSentence("%s, which is not enabled yet. addon-manager enables it automatically (install: Auto).", subject)
		e.suggest("kubectl addon events %s --cluster %s", root.Way[len(root.Way)-2], e.view.Name)
	case root.Cause == dependency.PlacementDecides:
		e.addSentence("%s, which is enabled by Placements only, so addon-manager does not enable it, despite install: Auto. Make one of its Placements select "+
			"cluster %s.", subject, e.view.Name)
		e.suggest("kubectl label managedcluster %s NAME=VALUE", e.view.Name)
	case root.Cause == dependency.Declined:
		e.addSentence("%s, which was disabled, so addon-manager does not enable it again, despite install: Auto.", subject)
		e.enableCommand(root.By)
	default:
		e.addSentence("%s, which is not installed: enable it.", subject)
		e.enableCommand(root.Way...)
	}
}

// candidatesOf returns the add-ons that can satisfy a dependency, first the one that comes closest.
func candidatesOf(j dependency.Judgement) []string {
	names := []string{text.Word(j.By)}
	for _, other := range j.Alternatives {
		names = append(names, text.Word(other))
	}
	return names
}

// suggestVersion suggests what changes the version of an add-on, or the constraint of its dependent on it.
func (e *Explanation) suggestVersion(name, dependent string) {
	if !e.view.Definitions[name].PlanManaged {
		e.addSentence("Upgrade it and label its ClusterManagementAddOn with the version, or correct the dependencies of %s.", text.Word(dependent))
		e.suggest("kubectl edit clustermanagementaddon %s", name)
		return
	}
	if e.placesVersion(name, "", dependent) {
		return
	}
	e.addSentence("Change its version, or correct the dependencies of %s.", text.Word(dependent))
	e.suggest("kubectl addon upgrade %s --cluster %s --dry-run", name, e.view.Name)
}

// placesVersion states which Placement decides on the version of an add-on, and where to change it, to that release if it is not empty; false if none decides.
func (e *Explanation) placesVersion(name, release, dependent string) bool {
	addOn := e.view.AddOns[name]
	if addOn == nil {
		return false
	}
	version, placement, placed := install.RolledOutVersion(e.view.Definitions[name].Object, addOn)
	if !placed {
		return false
	}
	subject := fmt.Sprintf("OCM applies OperatorVersion %s/%s of %s to all clusters that Placement %s selects", text.Word(version.Namespace), text.Word(version.Name),
		text.Word(name), text.Word(placement.String()))
	if release == "" {
		e.addSentence("%s: refer to another one in spec.installStrategy of its ClusterManagementAddOn, or correct the dependencies of %s.", subject, text.Word(dependent))
	} else {
		e.addSentence("%s: refer to %s in spec.installStrategy of its ClusterManagementAddOn.", subject, text.Word(release))
	}
	e.suggest("kubectl edit clustermanagementaddon %s", name)
	return true
}

// cycle suggests a dependency of the cycle to remove, the same for each member: an optional dependency if there is one, because it has the
// least impact, the first by name.
func (e *Explanation) cycle(way []string) {
	type edge struct {
		costs    int
		from, to string
	}
	edges := make([]edge, 0, len(way)-1)
	for i, name := range way[:len(way)-1] {
		next := edge{costs: 1, from: name, to: way[i+1]}
		if slices.ContainsFunc(e.view.Needs(name), func(n addonv1alpha1.AddonDependency) bool {
			return slices.Contains(dependency.Candidates(n), next.to) && n.Type == addonv1alpha1.DependencyTypeOptional
		}) {
			next.costs = 0
		}
		edges = append(edges, next)
	}
	first := slices.MinFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.costs, b.costs), cmp.Compare(a.from, b.from))
	})
	if first.from == first.to {
		e.addSentence("%s depends on itself, which can never be satisfied: remove that dependency.", first.from)
	} else {
		e.addSentence("The dependencies %s form a cycle, which can never be satisfied: break it, for example where %s depends on %s.",
			dependency.Way(way), first.from, first.to)
	}
	e.suggest("kubectl edit clustermanagementaddon %s", first.from)
}

// explainFailure states the problem that an installed add-on with all its required dependencies reports.
func (e *Explanation) explainFailure(subject string, addOn *addonv1alpha1.ManagedClusterAddOn, held bool) {
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	seen := e.view.See(addOn.Name)
	switch problem := e.view.Definitions[addOn.Name].Malformed; {
	case problem != nil:
		e.addSentence("%s, which has malformed dependencies, so their last known state applies: %s.", subject, text.JoinMessage(problem.Error()))
		e.suggest("kubectl edit clustermanagementaddon %s", addOn.Name)
		if available == nil || isStale(seen) {
			return
		}
		e.addSentence("%s is %s: %s.", addOn.Name, stateText(available), reasonText(available))
	case held:
		e.addSentence("%s, which was not available when last known.", subject)
		return
	case available == nil:
		e.addSentence("%s, which has not reported its availability yet.", subject)
	case isStale(seen):
		e.addSentence("%s, whose required dependencies are satisfied again.", subject)
	default:
		e.addSentence("%s, which is %s: %s.", subject, stateText(available), reasonText(available))
	}
	if isReportPending(seen) {
		e.explainReporter(addOn)
	}
	e.explainUndefined(addOn, seen)
	e.explainHoldUp(addOn)
	e.suggestDetails(addOn)
	e.suggestRetry(addOn)
	e.suggestFix(addOn)
}

// suggestRetry suggests running a plan again if that fixes the reported problem of a plan-based add-on: missing objects are re-created,
// replicas are restored, and a failed plan restarts from the beginning.
func (e *Explanation) suggestRetry(addOn *addonv1alpha1.ManagedClusterAddOn) {
	instance := e.view.Instances[addOn.Name]
	if instance == nil || instance.Status.Execution == nil || progress.RunningPlan(instance) != "" {
		return
	}
	var again string
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	switch {
	case available == nil || available.Status == metav1.ConditionTrue:
		return
	case plan.IsMissing(*available):
		again = kudo.DeployPlan
		e.addSentence("Plan %s re-creates the missing object: run it again.", again)
	case available.Reason == kudo.ReasonUnhealthy && scaledToZero.MatchString(available.Message):
		again = kudo.DeployPlan
		e.addSentence("Plan %s restores the replicas: run it again.", again)
	case available.Reason == kudo.ReasonPlanFailed:
		again = e.adviseAfterFailure(addOn, instance.Status)
	default:
		return
	}
	e.suggest("kubectl addon plan run %s %s --cluster %s", addOn.Name, again, e.view.Name)
	if available.Reason == kudo.ReasonPlanFailed {
		e.suggestResume(addOn, instance, again)
	}
}

// suggestResume suggests to resume a plan if another execution of it may skip steps.
func (e *Explanation) suggestResume(addOn *addonv1alpha1.ManagedClusterAddOn, instance *kudo.Instance, failed string) {
	if failed != instance.Status.Execution.Plan || !progress.CanResume(instance) {
		return
	}
	e.addSentence("Plan %s can also be resumed without its complete steps.", failed)
	e.suggest("kubectl addon plan resume %s --cluster %s", addOn.Name, e.view.Name)
}

// adviseAfterFailure advises what to do before the plan of a plan-based add-on that has failed runs again, and returns its name.
func (e *Explanation) adviseAfterFailure(addOn *addonv1alpha1.ManagedClusterAddOn, status kudo.InstanceStatus) string {
	failed, retry := status.Execution.Plan, plan.NextRetry(status)
	switch {
	case retry != nil:
		e.addSentence("Fix the cause: plan %s starts again at %s, or run it now.", retry.Plan, retry.RetryTime.UTC().Format(time.RFC3339))
		return retry.Plan
	case plan.IsCancelled(status):
		e.addSentence("Plan %s was cancelled: before it runs again, fix what it was waiting for. If that requires other parameters, set them with "+
			"'%s', which also starts the plan.", failed, e.changeCommand(addOn, " -p NAME=VALUE"))
	default:
		e.addSentence("Fix the cause, then run plan %s again.", failed)
	}
	return failed
}

// explainLastVerdict states that the dependencies are malformed, and which verdict is kept.
func (e *Explanation) explainLastVerdict(addOn *addonv1alpha1.ManagedClusterAddOn, problem error) {
	e.addSentence("Its dependencies are malformed, so their last known state applies: %s.", text.JoinMessage(problem.Error()))
	if last := lastVerdict(addOn); last != nil {
		e.addSentence("The last known state is: %s", sentence(text.JoinMessage(last.Message)))
	}
	e.suggest("kubectl edit clustermanagementaddon %s", addOn.Name)
}

// explainOwnProblems states the problems of the add-on other than its dependencies.
func (e *Explanation) explainOwnProblems(addOn *addonv1alpha1.ManagedClusterAddOn) {
	e.explainUndefined(addOn, e.view.See(addOn.Name))
	e.explainHoldUp(addOn)
	e.explainSoak(addOn)
	degraded := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionDegraded)
	if degraded != nil && degraded.Status == metav1.ConditionTrue && !dependency.IsReason(degraded.Reason) {
		e.addSentence("It reports that it is degraded for a reason other than its dependencies: %s.", reasonText(degraded))
		e.suggestDetails(addOn)
	}
}

// explainDrift states which Instances of an add-on differ from what was applied, if that is not the result of a plan.
func (e *Explanation) explainDrift(addOn *addonv1alpha1.ManagedClusterAddOn) {
	root := e.view.InstanceOf(addOn)
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if root == nil || available == nil || available.Status != metav1.ConditionTrue && available.Reason != kudo.ReasonUnhealthy {
		return
	}
	for _, instance := range append([]kudo.Instance{*root}, fleet.Descendants(root, e.view.InstanceList())...) {
		if meta.IsStatusConditionTrue(instance.Status.Conditions, kudo.ConditionDrifted) {
			e.addSentence("Instance %s has drifted: objects differ from what was applied.", text.Word(instance.Name))
			e.suggest("kubectl addon drift %s --cluster %s", instance.Name, e.view.Name)
		}
	}
}

// explainUndefined states that an add-on is not available because it has no definition, if that is the case.
func (e *Explanation) explainUndefined(addOn *addonv1alpha1.ManagedClusterAddOn, seen dependency.Seen) {
	if !seen.Defined && seen.Available != metav1.ConditionTrue {
		e.addSentence("ClusterManagementAddOn %s does not exist: create it, or delete the add-on if its name is wrong.", addOn.Name)
	}
}

// explainHoldUp states what holds up the installation or a change of a plan-based add-on, if anything.
func (e *Explanation) explainHoldUp(addOn *addonv1alpha1.ManagedClusterAddOn) {
	resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	switch {
	case resolved == nil || resolved.Status == metav1.ConditionTrue:
		e.explainUnseen(addOn)
		if remarks := install.Remarks(resolved); len(remarks) > 0 {
			e.addSentence("A part of the configuration of %s has no effect: %s.", addOn.Name, strings.Join(remarks, "; "))
		}
	case resolved.Reason == addonv1alpha1.ReasonWaitingForConfiguration:
		e.awaitRollout(addOn, resolved)
	case availability.Includes(available, resolved): // already stated
		e.suggestDetails(addOn)
		e.awaitOthers(resolved)
	case resolved.Reason == addonv1alpha1.ReasonWaitingForDependencies:
		e.explainWait(addOn, resolved)
	case resolved.Reason == addonv1alpha1.ReasonConfigurationInvalid:
		e.addSentence("The configuration of %s is invalid: %s.", addOn.Name, reasonText(resolved))
		e.suggestDetails(addOn)
	default:
		e.addSentence("The installation or last change of %s is blocked: %s.", addOn.Name, reasonText(resolved))
		e.suggestDetails(addOn)
	}
}

// explainWait states what an add-on waits for before it is installed, or changes to another version.
func (e *Explanation) explainWait(addOn *addonv1alpha1.ManagedClusterAddOn, resolved *metav1.Condition) {
	switch {
	case e.view.Definitions[addOn.Name].Malformed != nil:
		e.addSentence("%s is installed automatically once its dependencies are valid and the required ones are satisfied.", addOn.Name)
		return
	case e.view.Instances[addOn.Name] == nil && !dependency.IsWaitReason(resolved.Message):
		e.addSentence("%s is installed automatically once its required dependencies are satisfied.", addOn.Name)
		return
	}
	state := "still runs its previous version, and is"
	if e.view.Instances[addOn.Name] == nil {
		state = "is not installed, and is"
	}
	e.addSentence("%s %s %s.", addOn.Name, state, strings.TrimSuffix(text.JoinMessage(resolved.Message), "."))
	e.suggestDetails(addOn)
	isQueued := e.awaitOthers(resolved)
	switch other, release := dependency.ChangeFirst(resolved.Message); {
	case other == "" || isQueued:
	case release != "" && e.placesVersion(other, release, addOn.Name):
	case release != "":
		e.suggest("kubectl addon upgrade %s --cluster %s --version %s", other, e.view.Name, release)
	default:
		e.suggestVersion(other, addOn.Name)
	}
}

// explainUnseen states that the agent has not observed the last change of an add-on, or cannot copy it to the cluster, if that is the case.
func (e *Explanation) explainUnseen(addOn *addonv1alpha1.ManagedClusterAddOn) {
	instance := e.view.Instances[addOn.Name]
	if instance == nil {
		return
	}
	if problem := progress.NotMirroredText(instance); problem != "" {
		e.addSentence("The plans of %s do not run yet: %s.", addOn.Name, problem)
		e.suggestDetails(addOn)
	}
	if progress.Unseen(instance) {
		e.addSentence("Last change of %s: %s.", addOn.Name, progress.UnseenText(e.view.Name))
		e.suggestDetails(addOn)
	}
}
