package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/agent/remote"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/diagnosis"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/core/soak"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/text"
)

// withDiagnosis returns a status with the answer to the request for a diagnosis, and when to look at it again; zero means never.
func (p *pass) withDiagnosis(ctx context.Context, o plan.Observation, status kudo.InstanceStatus) (kudo.InstanceStatus, time.Duration) {
	request := diagnosis.RequestOf(o.Instance)
	if dropped, _ := p.dropped.Get(o.Instance.UID); request != "" && dropped == request && status.Diagnosis == nil {
		return status, 0
	}
	decision := diagnosis.Decide(request, status.Diagnosis, p.clock())
	if decision.Next == nil {
		status.Diagnosis = nil
		return status, decision.After
	}
	d := *decision.Next
	if decision.Gather {
		limited, cancel := context.WithTimeout(ctx, diagnosisTimeout)
		defer cancel()
		p.diagnose(limited, o, status.Inventory, &d)
		if limited.Err() != nil {
			d.Truncated = true
		}
	}
	status.Diagnosis = new(diagnosis.Bound(p.view.Masker().Diagnosis(d))) // masks can lengthen an earlier answer, too
	return status, decision.After
}

// noteDropped emits an event if the API server of the managed cluster has not stored the answer in a status, and remembers its request.
func (p *pass) noteDropped(written *kudo.Instance, status kudo.InstanceStatus) {
	if status.Diagnosis == nil || written.Status.Diagnosis != nil {
		return
	}
	p.dropped.Add(written.UID, status.Diagnosis.Request)
	p.events.Eventf(written, nil, corev1.EventTypeWarning, eventDiagnosisDropped, "Diagnose", "the API server drops the diagnosis that was requested at %s: "+
		"CustomResourceDefinition instances.kudo.dev is older than this agent; apply the one of this version, and ask again", status.Diagnosis.Request)
}

// eventDiagnosisDropped is the reason of the event of an answer that is not stored.
const eventDiagnosisDropped = "DiagnosisDropped"

// diagnose reads the pods of the workloads of an Instance, the Events about both, and the logs of the pods.
func (p *pass) diagnose(ctx context.Context, o plan.Observation, inventory []kudo.InventoryEntry, d *kudo.Diagnosis) {
	x := p.executionOf(ctx, o)
	var pods, events []unstructured.Unstructured
	for _, workload := range p.workloads(ctx, x, inventory, d) {
		if selector := plan.PodSelector(workload); selector == nil {
			pods = append(pods, *workload)
		} else if found, err := p.podsOf(ctx, x, workload, selector); err != nil {
			d.Message = "pods cannot be read: " + diagnosis.Clean(err.Error())
		} else {
			pods = append(pods, found...)
		}
		events = append(events, p.eventsOf(ctx, workload, "")...)
	}
	pods, omitted := diagnosis.Choose(pods)
	d.Truncated = d.Truncated || omitted
	for i := range pods {
		if p.view.IsOpaque(&pods[i]) {
			d.Message, d.Truncated = omittedOpaque, true
			continue
		}
		events = append(events, p.eventsOf(ctx, &pods[i], "")...)
		described := diagnosis.Describe(&pods[i])
		described.Logs = p.logsOf(ctx, &pods[i], d)
		d.Pods = append(d.Pods, described)
	}
	d.Events = diagnosis.Events(events)
}

// omittedOpaque is the message of a diagnosis without some of the pods.
const omittedOpaque = "pods of objects that hold parts of sensitive values, which cannot be masked, are omitted"

// workloads returns the applied objects of an Instance that are pods, or create them. It skips objects with parts of sensitive values that cannot be
// masked, and objects that cannot be read.
func (p *pass) workloads(ctx context.Context, x *execution, inventory []kudo.InventoryEntry, d *kudo.Diagnosis) []*unstructured.Unstructured {
	var workloads []*unstructured.Unstructured
	for _, entry := range inventory {
		if entry.Pending || !plan.HasPods(entry) {
			continue
		}
		switch object, err := p.objects.readEntry(ctx, entry, asSeen); {
		case err != nil:
			d.Message = "objects cannot be read: " + diagnosis.Clean(err.Error())
		case !x.owner().HasApplied(object):
		case p.view.IsOpaque(object.Live):
			d.Message, d.Truncated = omittedOpaque, true
		default:
			workloads = append(workloads, p.view.Masker().Object(object.Live))
		}
	}
	return workloads
}

// logsOf returns the last lines of the logs of a pod, without sensitive values. They are read with the identity of the plan, which may lack the
// permission.
func (p *pass) logsOf(ctx context.Context, pod *unstructured.Unstructured, d *kudo.Diagnosis) []kudo.DiagnosedLog {
	if p.hindrance != nil {
		d.Message = "logs are not read: " + diagnosis.Clean(p.hindrance.Error())
		return nil
	}
	var logs []kudo.DiagnosedLog
	for _, log := range diagnosis.Logs(pod) {
		limited, cancel := context.WithTimeout(ctx, logTimeout)
		text, err := p.acting.remote.Log(limited, client.ObjectKeyFromObject(pod), log.Container, log.Previous, diagnosis.LogLines)
		cancel()
		if err != nil {
			d.Message = "logs cannot be read: " + diagnosis.Clean(err.Error())
			continue
		}
		d.Truncated = d.Truncated || len(text) >= remote.MaxLogBytes
		log.Lines = diagnosis.Lines(text, p.view.Masker().Foreign)
		logs = append(logs, log)
	}
	return logs
}

// soakOf decides whether an Instance with a status has been healthy for long enough. Pods are read while the time counts.
func (p *pass) soakOf(ctx context.Context, o plan.Observation, status kudo.InstanceStatus) soak.Decision {
	known, _ := p.soaks.Get(o.Instance.UID)
	memory, _ := known.(soak.Memory)
	seen := soak.Observation{Now: p.clock(), Uptime: time.Since(p.startTime), Status: status, Memory: memory}
	if required := o.Instance.Spec.HealthyFor; required != nil && !o.IsLeaving() {
		seen.HealthyFor = required.Duration
	}
	if soak.IsUnderWay(seen) {
		p.readTree(ctx, o, &seen)
	}
	decision := soak.Decide(seen)
	if failed := decision.Condition; failed != nil && failed.Reason == kudo.ReasonSoakFailed {
		failed.Message += o.ReturnProblem()
	}
	p.soaks.Remove(o.Instance.UID)
	if decision.After > 0 {
		p.soaks.Add(o.Instance.UID, decision.Memory)
	}
	return decision
}

// readTree reads the drift of the descendants of an Instance, and their pods and its own if they are needed.
func (p *pass) readTree(ctx context.Context, o plan.Observation, seen *soak.Observation) {
	x := p.executionOf(ctx, o)
	tree := []*kudo.Instance{{ObjectMeta: o.Instance.ObjectMeta, Status: seen.Status}}
	for _, descendant := range p.descendantsOf(ctx, o.Instance) {
		switch child, err := p.readInstance(ctx, descendant.NamespacedName); {
		case err != nil || !p.signer.IsSigned(child):
			continue
		case meta.IsStatusConditionTrue(child.Status.Conditions, kudo.ConditionDrifted):
			seen.ChildDrift = fmt.Sprintf("Instance %s: %s", child.Name, meta.FindStatusCondition(child.Status.Conditions, kudo.ConditionDrifted).Message)
			fallthrough
		default:
			tree = append(tree, child)
		}
	}
	if !soak.NeedsPods(*seen) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, diagnosisTimeout)
	defer cancel()
	var pods []unstructured.Unstructured
	for _, i := range tree {
		found, err := p.livePods(limited, x, i)
		if err != nil {
			seen.Pods = &soak.Pods{Problem: p.view.Masker().Text(err.Error())}
			return
		}
		pods = append(pods, found...)
	}
	seen.Pods = soak.PodsOf(pods)
}

// livePods reads the pods of the workloads that the plans of an Instance have applied.
func (p *pass) livePods(ctx context.Context, x *execution, i *kudo.Instance) ([]unstructured.Unstructured, error) {
	owner := plan.Owner{Namespace: i.Namespace, Name: render.InstanceName(i.Name), UID: i.UID}
	var pods []unstructured.Unstructured
	for _, entry := range i.Status.Inventory {
		if entry.Pending || entry.Manual || entry.Hook || !plan.HasPods(entry) {
			continue
		}
		workload, err := p.objects.readEntry(ctx, entry, asSeen)
		if err != nil {
			return nil, err
		}
		if !owner.HasApplied(workload) {
			continue
		}
		selector := plan.PodSelector(workload.Live)
		if selector == nil {
			pods = append(pods, *workload.Live)
			continue
		}
		found, err := p.podsOf(ctx, x, workload.Live, selector)
		if err != nil {
			return nil, err
		}
		pods = append(pods, found...)
	}
	return pods, nil
}

// explain adds to the message of a slow or failed step what is wrong with the pods of its workload: that one cannot be created, an image that cannot
// be pulled, a command that fails, a probe that does not pass, a volume that is not provisioned. The workload's own status does not include this. A claim whose
// StorageClass does not exist is an error.
func (p *pass) explain(ctx context.Context, x *execution, placed plan.Placed, objects []plan.Object, outcome plan.Outcome) plan.Outcome {
	workload, selector := plan.AwaitedPods(objects)
	late := outcome.Status == kudo.InProgress && x.age(placed, p.clock()) >= recheckInterval
	if workload == nil || !late && outcome.Status != kudo.FatalError || p.view.IsOpaque(workload) {
		return outcome
	}
	pods, err := p.podsOf(ctx, x, workload, selector)
	if err != nil {
		return outcome // keep the outcome without the diagnosis
	}
	pod, why := plan.FirstUnhealthyPod(pods, p.clock())
	if pod == nil {
		outcome.Message += p.creationFailure(ctx, workload, pods)
		return outcome
	}
	outcome.Message = strings.TrimSuffix(outcome.Message, ".") + ": " + why + p.failureText(ctx, pod)
	if claim := plan.FirstUnboundClaim(p.claimsOf(ctx, pod)); claim.Status != health.Healthy {
		outcome.Message += ": " + claim.Message
		if claim.Blocked && late {
			outcome.Status = kudo.Error
		}
	}
	return outcome
}

// explainSettled adds to condition Ready of an Instance without a running plan what is wrong with the pods of the workload that it names, like
// explain, once it has not been ready for a while. It returns when to look again, because pods are not watched; zero means never.
func (p *pass) explainSettled(ctx context.Context, o plan.Observation, ready metav1.Condition, objects []plan.Object) (metav1.Condition, time.Time) {
	x := p.executionOf(ctx, o)
	blamed := plan.FirstProblem(x.owner(), objects)
	workload, _ := plan.AwaitedPods(blamed)
	if ready.Reason != kudo.ReasonUnhealthy || workload == nil {
		return ready, time.Time{}
	}
	recorded := meta.FindStatusCondition(o.Instance.Status.Conditions, kudo.ConditionReady)
	if recorded == nil || recorded.Reason != kudo.ReasonUnhealthy || o.Now.Sub(recorded.LastTransitionTime.Time) < recheckInterval {
		return ready, o.Now.Add(recheckInterval)
	}
	failed := plan.Outcome{Status: kudo.FatalError, Message: ready.Message}
	message := p.view.Masker().Text(p.explain(ctx, x, plan.Placed{}, blamed, failed).Message)
	ready.Message = p.objects.steady(o.Instance.UID, p.view.Masker().Text(recorded.Message), plan.OneLine(message), o.Now)
	return ready, o.Now.Add(maxBackoff)
}

// explained is the message of a condition Ready, and since when it is known.
type explained struct {
	message string
	since   time.Time
}

// steady returns the message of condition Ready: the recorded one, or the current one if it is worth a write.
func (o *objects) steady(of types.UID, recorded, current string, now time.Time) string {
	noted, _ := o.explained.Get(of)
	last, known := noted.(explained)
	if !known || last.message != recorded {
		last = explained{recorded, now}
	}
	message := plan.Steady(recorded, current, now.Sub(last.since))
	if message != last.message {
		last = explained{message, now}
	}
	o.explained.Add(of, last)
	return message
}

// creationFailure returns why no further pod of a workload can be created, as a part of a sentence; empty if that is not known.
func (p *pass) creationFailure(ctx context.Context, workload *unstructured.Unstructured, pods []unstructured.Unstructured) string {
	failure := plan.CreationFailure(p.eventsOf(ctx, workload, plan.ReasonFailedCreate), pods)
	if failure == "" {
		return ""
	}
	return ": " + failure
}

// refusal is why the API server has refused an update of an object, empty if it did not, and when it was asked.
type refusal struct {
	at     time.Time
	reason string
}

// probe adds to the object whose deletion is stuck why the API server refuses the update that removes its finalizers: usually an admission
// webhook whose server was removed. The object's own status does not include this.
func (p *pass) probe(ctx context.Context, objects []plan.Object) []plan.Object {
	at := plan.FindStuck(objects, p.clock())
	if at < 0 || p.view.IsOpaque(objects[at].Live) {
		return objects
	}
	live := objects[at].Live
	noted, _ := p.objects.refusals.Get(live.GetUID())
	last, known := noted.(refusal)
	if !known || p.clock().Sub(last.at) >= answerLifetime {
		limited, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		last = refusal{at: p.clock()}
		if err := apply.Probe(limited, p.own.client, live); err != nil && limited.Err() == nil {
			last.reason = text.Prefix(plan.OneLine(p.view.Masker().Text(p.conceal(live, err).Error())), maxRefusal)
		}
		p.objects.refusals.Add(live.GetUID(), last)
	}
	objects = slices.Clone(objects)
	objects[at].Refusal = last.reason
	return objects
}

// maxRefusal is the maximum length of a refusal in a message.
const maxRefusal = 1024

// crashLoop describes a pod that fails repeatedly, of a workload that counts as available with one ready pod; empty if there is none, or if the
// pods cannot be listed. Like explain, it looks at the pods only while a slow plan waits for the workload.
func (p *pass) crashLoop(ctx context.Context, x *execution, status kudo.InstanceStatus, workload plan.Object) string {
	started := ptr.Deref(status.PlanStatus[x.Plan].StartedTimestamp, metav1.Time{})
	if now := p.clock(); now.Sub(started.Time) < recheckInterval || !workload.NeedsLookAtPods() {
		return ""
	}
	pods, err := p.podsOf(ctx, x, workload.Live, plan.PodSelector(workload.Live))
	if err != nil {
		return ""
	}
	return plan.FirstCrashLoop(pods, p.clock())
}

// podsOf lists the pods that a workload controls, once in a pass. Its selector may match pods of others.
func (p *pass) podsOf(
	ctx context.Context, x *execution, workload *unstructured.Unstructured, selector labels.Selector,
) ([]unstructured.Unstructured, error) {
	if pods, listed := x.inventory.listedPods(workload); listed {
		return pods, nil
	}
	pods := &unstructured.UnstructuredList{}
	pods.SetAPIVersion("v1")
	pods.SetKind("PodList")
	err := p.live.List(ctx, pods, client.InNamespace(workload.GetNamespace()), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, err
	}
	p.mask(pods)
	controlled := plan.PodsOf(workload, pods.Items)
	x.inventory.keepPods(workload, controlled)
	return controlled, nil
}

// logLines is the number of lines in which the last one that is not blank is searched, and maxEvents the number of Events about an object that are read.
const (
	logLines  = 5
	maxEvents = 500
)

// failureText returns what a pod's containers and probes say about their failure, as a part of a sentence. The log is read with the
// identity of the plan, which may lack the permission.
func (p *pass) failureText(ctx context.Context, pod *unstructured.Unstructured) string {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	container, previous := health.FailedContainer(pod)
	words := ""
	if probe := plan.ProbeFailure(p.eventsOf(ctx, pod, plan.ReasonUnhealthy), container != ""); probe != "" {
		words = ": " + probe
	}
	if container == "" {
		return words
	}
	log, err := p.acting.remote.Log(ctx, client.ObjectKeyFromObject(pod), container, previous, logLines)
	if line := plan.LastLine(p.view.Masker().Foreign(log)); err == nil && line != "" {
		words += plan.LastLogLine + line
	}
	return words
}

// eventsOf returns the Events about an object, if they can be read: those of a reason, or all if it is empty.
func (p *pass) eventsOf(ctx context.Context, object *unstructured.Unstructured, reason string) []unstructured.Unstructured {
	events := &unstructured.UnstructuredList{}
	events.SetAPIVersion("v1")
	events.SetKind("EventList")
	fields := client.MatchingFields{"involvedObject.uid": string(object.GetUID())}
	if reason != "" {
		fields["reason"] = reason
	}
	if p.live.List(ctx, events, client.InNamespace(object.GetNamespace()), fields, client.Limit(maxEvents)) != nil {
		return nil
	}
	p.mask(events)
	return events.Items
}

// mask masks the messages of a list of objects, before they are shortened.
func (p *pass) mask(list *unstructured.UnstructuredList) {
	masker := p.view.Masker()
	for i := range list.Items {
		list.Items[i] = *masker.Object(&list.Items[i])
	}
}

// claimsOf returns the volume claims of a pod that can be read.
func (p *pass) claimsOf(ctx context.Context, pod *unstructured.Unstructured) []plan.Object {
	var claims []plan.Object
	for _, name := range plan.ClaimsOf(pod) {
		claim := &unstructured.Unstructured{}
		claim.SetAPIVersion("v1")
		claim.SetKind("PersistentVolumeClaim")
		if p.live.Get(ctx, client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}, claim) == nil {
			claims = append(claims, plan.Object{Want: claim, Live: claim})
		}
	}
	if classed, err := p.objects.withClasses(ctx, claims); err == nil {
		claims = classed
	}
	return p.view.MaskObjects(claims)
}
