package main

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/process"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

// deployment holds the audit log of addon-agent from its first request for new Instances until all plans are recorded as complete.
type deployment struct {
	// missing lists the Instances without a plan that is recorded as complete.
	missing map[string]bool
	// began is the arrival of the first write, ended the response to the last one.
	began, ended time.Time
	// requests counts the requests by kind.
	requests map[string]int
	// applied lists the applied objects in order, by Instance.
	applied map[string][]object
	// log holds all requests.
	log []audit.Entry
}

// deployed is a deployment with its costs: the usage of addon-agent, the CPU time of all programs, and addon-agent's requests to the hub.
type deployed struct {
	*deployment
	usage process.Usage
	cpu   stage.CPU
	toHub int
}

// place identifies a step in a plan.
type place struct{ phase, step string }

// object is an object applied by a step, with the bytes of the request.
type object struct {
	place
	types.NamespacedName
	resource schema.GroupVersionResource
	body     []byte
}

// expect starts the observation of a deployment.
func expect(instances []string) *deployment {
	d := &deployment{missing: map[string]bool{}, requests: map[string]int{}, applied: map[string][]object{}}
	for _, name := range instances {
		d.missing[name] = true
	}
	return d
}

func (d *deployment) complete() bool { return len(d.missing) == 0 }

// add processes entries up to the request that completes the deployment.
func (d *deployment) add(entries []audit.Entry) error {
	for i := range entries {
		if d.complete() {
			return nil
		}
		if err := d.addOne(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) addOne(e *audit.Entry) error {
	kind := kindOf(e)
	d.requests[kind]++
	d.log = append(d.log, *e)
	if d.began.IsZero() || e.RequestTime().Before(d.began) {
		d.began = e.RequestTime()
	}
	switch {
	case !e.IsSuccess():
		return nil
	case kind == statusWrites:
		return d.record(e)
	case kind == objectWrites && e.Verb == "patch":
		return d.keep(e)
	}
	return nil
}

// record processes a written status.
func (d *deployment) record(e *audit.Entry) error {
	var written kudo.Instance
	if err := json.Unmarshal(e.RequestObject, &written); err != nil {
		return err
	}
	if d.missing[written.Name] && written.Status.PlanStatus[kudo.DeployPlan].Status == kudo.Complete {
		delete(d.missing, written.Name)
		d.ended = e.ResponseTime()
	}
	return nil
}

// keep records an applied object; an object that is applied again keeps its position, with the bytes of the last request.
func (d *deployment) keep(e *audit.Entry) error {
	var sent metav1.PartialObjectMetadata
	if err := json.Unmarshal(e.RequestObject, &sent); err != nil {
		return err
	}
	o := object{
		place:          place{sent.Annotations[kudo.AnnotationPhase], sent.Annotations[kudo.AnnotationStep]},
		NamespacedName: e.Object(),
		resource:       schema.GroupVersionResource{Group: e.ObjectRef.APIGroup, Version: e.ObjectRef.APIVersion, Resource: e.ObjectRef.Resource},
		body:           e.RequestObject,
	}
	instance := sent.Labels[kudo.LabelInstance]
	same := func(known object) bool {
		return known.resource == o.resource && known.NamespacedName == o.NamespacedName
	}
	if i := slices.IndexFunc(d.applied[instance], same); i >= 0 {
		d.applied[instance][i] = o
		return nil
	}
	d.applied[instance] = append(d.applied[instance], o)
	return nil
}

// objects returns all applied objects.
func (d *deployment) objects() []object {
	var all []object
	for _, name := range slices.Sorted(maps.Keys(d.applied)) {
		all = append(all, d.applied[name]...)
	}
	return all
}

// total returns the number of requests.
func (d *deployment) total() int {
	sum := 0
	for _, count := range d.requests {
		sum += count
	}
	return sum
}

// replay holds the audit log of the bare client.
type replay struct {
	// missing is the number of objects that are not applied yet.
	missing int
	// began is the arrival of the first request, ended the response to the last application. An object of the last step is healthy as
	// soon as it is applied.
	began, ended time.Time
	requests     int
	cpu          stage.CPU
}

// add processes the entries of the bare client.
func (r *replay) add(entries []audit.Entry) {
	for i := range entries {
		e := &entries[i]
		if e.UserAgent != bareAgent {
			continue
		}
		r.requests++
		if r.began.IsZero() || e.RequestTime().Before(r.began) {
			r.began = e.RequestTime()
		}
		if e.Verb == "patch" && e.IsSuccess() {
			r.missing--
			if e.ResponseTime().After(r.ended) {
				r.ended = e.ResponseTime()
			}
		}
	}
}

// The kinds of requests, by purpose.
const (
	objectWrites  = "objectWrites"
	objectReads   = "objectReads"
	statusWrites  = "statusWrites"
	instanceReads = "instanceReads"
	mirror        = "mirror"
	events        = "events"
	caches        = "caches"
	discoveries   = "discoveries"
)

// kindOf returns the kind of a request of addon-agent.
func kindOf(e *audit.Entry) string {
	switch {
	case e.ObjectRef.Resource == "":
		return discoveries
	case e.Is("events", ""):
		return events
	case e.ObjectRef.APIGroup == kudo.GroupVersion.Group:
		return kindOfOwn(e)
	case e.Is("namespaces", ""):
		return mirror
	case e.Verb == "watch" || e.Verb == "list":
		return caches
	case e.Verb == "get":
		return objectReads
	default:
		return objectWrites
	}
}

// kindOfOwn returns the kind of a request for Instances or OperatorVersions.
func kindOfOwn(e *audit.Entry) string {
	switch {
	case e.Is("instances", "status"):
		return statusWrites
	case e.Verb == "watch":
		return caches
	case e.Is("instances", "") && e.Verb == "get":
		return instanceReads
	default:
		return mirror
	}
}
