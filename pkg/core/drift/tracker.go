package drift

import (
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Tracker remembers which version of each applied object was compared last, and what that has found. It is lost with the process, and filled again by the
// first round. It is safe for concurrent use; a Memory is used by one goroutine at a time.
type Tracker struct {
	interval time.Duration

	mutex    sync.Mutex
	memories map[types.UID]*Memory
	drifted  map[types.UID]bool // the objects that differ, by their uids
}

// NewTracker returns a Tracker that has all objects of an Instance compared once an interval.
func NewTracker(interval time.Duration) *Tracker {
	return &Tracker{interval: interval, memories: map[types.UID]*Memory{}, drifted: map[types.UID]bool{}}
}

// IsDrifted reports whether an object differs: then each change of it matters, because the fields that the applier owns do not show that it was put back.
func (t *Tracker) IsDrifted(object types.UID) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.drifted[object]
}

func (t *Tracker) setDrifted(object types.UID, drifted bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if !drifted || object == "" {
		delete(t.drifted, object)
		return
	}
	t.drifted[object] = true
}

// Forget drops the memory of an Instance.
func (t *Tracker) Forget(instance types.UID) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if memory := t.memories[instance]; memory != nil {
		for _, seen := range memory.objects {
			delete(t.drifted, seen.uid)
		}
	}
	delete(t.memories, instance)
}

// Of returns the memory of an Instance after an execution. The first round of a new one begins after half an interval to a whole one, different for each
// Instance, or at once if drift is recorded.
func (t *Tracker) Of(instance, execution types.UID, isRecorded bool, now time.Time) *Memory {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	memory := t.memories[instance]
	if memory == nil {
		memory = &Memory{tracker: t, next: now, objects: map[Key]seen{}, repairs: map[Key]repairs{}}
		if !isRecorded {
			memory.next = now.Add(t.interval/2 + time.Duration(float64(t.interval/2)*spread(instance)))
		}
		t.memories[instance] = memory
	}
	if memory.execution != execution {
		maps.DeleteFunc(memory.objects, func(_ Key, s seen) bool { return !s.finding.IsDrift() })
		memory.execution, memory.isUnsure = execution, isRecorded
	}
	memory.now, memory.hasRepaired = now, false
	return memory
}

// spread returns a number between zero and one that is the same for each call.
func spread(instance types.UID) float64 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(instance)) // never fails
	return float64(hash.Sum32()) / (1 << 32)
}

// Memory is what is remembered of the objects of an Instance since its last execution.
type Memory struct {
	tracker   *Tracker
	execution types.UID
	now, next time.Time
	round     int // zero before the first one
	objects   map[Key]seen

	// repairs holds the objects that were put back lately; isRepairing means that drift is put back.
	repairs     map[Key]repairs
	isRepairing bool
	hasRepaired bool // since now

	// isUnsure means that the recorded drift may be over: objects that are seen for the first time are compared.
	isUnsure bool
}

// repairs are repairs of an object: how many, and when the last one was.
type repairs struct {
	count int
	last  time.Time
}

// seen is the version of an object that was compared last, in which round, and what that has found.
type seen struct {
	uid             types.UID
	digest, version string
	round           int
	finding         Finding

	// failure is why the object could not be compared since; it is compared again at retry.
	// With a retry and without a failure, it was not compared because it was being changed.
	failure error
	retry   time.Time

	// at is when it was compared.
	at time.Time
}

// StartRound starts a round if it is time.
func (m *Memory) StartRound() {
	if !m.now.Before(m.next) {
		m.round++
		m.next = m.now.Add(m.tracker.interval)
	}
}

// IsDue reports whether an object that exists has to be compared: in each round, once another writer has changed a field that manager owned, and at each
// change of one that differs. One that is seen for the first time is compared if manager does not own what it has applied, according to that digest: it
// was changed while the process did not run. Without a digest, it is taken as applied until the next round. One that could not be compared waits until it
// is tried again, so that others are compared meanwhile.
func (m *Memory) IsDue(key Key, live *unstructured.Unstructured, manager, applied string) bool {
	now := seenIn(live, manager)
	before, known := m.objects[key]
	switch {
	case !known && !m.isUnsure && (applied == "" || applied == now.digest):
		now.round = m.round
		m.objects[key] = now
		return false
	case !before.retry.IsZero():
		return !m.IsWaiting(key)
	}
	switch {
	case !known, before.round < m.round:
		return true
	case !before.finding.IsDrift():
		return before.digest != now.digest
	case m.MayRepair(key):
		return true
	}
	return before.uid != now.uid || before.version != now.version && !m.now.Before(before.at.Add(comparisonDelay))
}

// Another writer may change an object all the time. One that differs is compared at most every comparisonDelay, and put back after minRepairDelay, twice
// that, and so on until maxRepairDelay. Repairs before twice that are forgotten.
const (
	comparisonDelay = 5 * time.Second
	minRepairDelay  = 5 * time.Second
	maxRepairDelay  = 10 * time.Minute
)

// SetRepairing sets whether drift is put back.
func (m *Memory) SetRepairing(is bool) { m.isRepairing = is }

// MayRepair reports whether an object that differs is put back now.
func (m *Memory) MayRepair(key Key) bool { return m.isRepairing && !m.now.Before(m.nextRepair(key)) }

// nextRepair returns when an object may be put back again.
func (m *Memory) nextRepair(key Key) time.Time {
	before := m.repairs[key]
	if before.count == 0 {
		return time.Time{}
	}
	return before.last.Add(min(minRepairDelay<<min(before.count-1, maxShift), maxRepairDelay))
}

// maxShift is a number of repairs after which the delay is longer than maxRepairDelay.
const maxShift = 10

// NoteRepair records that an object was put back; live is the result.
func (m *Memory) NoteRepair(key Key, live *unstructured.Unstructured, manager string) {
	m.repairs[key] = repairs{count: m.repairs[key].count + 1, last: m.now}
	m.hasRepaired = true
	m.Note(key, live, manager, Finding{})
}

// wake returns when the first of these objects that differ is compared or put back again, which is immediately after repairs: the health of what was put
// back has to be judged. It is zero if none is.
func (m *Memory) wake(keys []Key) (first time.Time) {
	if m.hasRepaired {
		return m.now.Add(time.Millisecond)
	}
	for _, key := range keys {
		s := m.objects[key]
		next := s.at.Add(comparisonDelay)
		switch {
		case !s.finding.IsDrift(), s.finding.Gone && !m.isRepairing:
			continue
		case m.isRepairing:
			next = m.nextRepair(key)
		}
		if m.now.Before(next) && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

// IsWaiting reports whether an object could not be compared or put back, and is not tried again yet.
func (m *Memory) IsWaiting(key Key) bool {
	s := m.objects[key]
	return m.now.Before(s.retry)
}

// HasLost reports whether another writer has changed a field that manager owned when the object was seen last, or the object differed then.
func (m *Memory) HasLost(key Key, live *unstructured.Unstructured, manager string) bool {
	before, known := m.objects[key]
	return known && (before.finding.IsDrift() || before.uid != "" && before.digest != Digest(live, manager))
}

func seenIn(live *unstructured.Unstructured, manager string) seen {
	if live == nil {
		return seen{}
	}
	return seen{uid: live.GetUID(), digest: Digest(live, manager), version: live.GetResourceVersion()}
}

// Note records what a comparison of an object has found; live is nil if it is gone.
func (m *Memory) Note(key Key, live *unstructured.Unstructured, manager string, finding Finding) {
	now := seenIn(live, manager)
	now.round, now.finding = m.round, finding
	if m.repairs[key].last.Add(2 * maxRepairDelay).Before(m.now) {
		delete(m.repairs, key)
	}
	now.at, now.finding.Key, now.finding.Repairs = m.now, key, m.repairs[key].count
	m.tracker.setDrifted(m.objects[key].uid, false)
	m.tracker.setDrifted(now.uid, finding.IsDrift())
	m.objects[key] = now
}

// NoteFailure records that an object could not be compared or put back, which is tried again after a delay. What was found before is kept.
func (m *Memory) NoteFailure(key Key, live *unstructured.Unstructured, manager string, failure error, delay time.Duration) {
	s, known := m.objects[key]
	if !known {
		s = seenIn(live, manager)
	}
	s.failure, s.retry = failure, m.now.Add(delay)
	m.objects[key] = s
}

// Postpone has an object compared after a delay. What was found before is kept.
func (m *Memory) Postpone(key Key, delay time.Duration) {
	s := m.objects[key]
	s.failure, s.retry = nil, m.now.Add(delay)
	m.objects[key] = s
}

// Ignore records that an object cannot be compared any more, because it is being deleted or belongs to another owner.
func (m *Memory) Ignore(key Key) {
	if s, known := m.objects[key]; known {
		s.failure, s.retry = nil, time.Time{}
		m.objects[key] = s
	}
}

// failureOf returns why the first of these objects could not be compared or put back that could not, and when the next one is tried again; nil if all could.
func (m *Memory) failureOf(keys []Key) (retry time.Time, failure error) {
	for _, key := range keys {
		s := m.objects[key]
		if failure == nil {
			failure = s.failure
		}
		if m.now.Before(s.retry) && (retry.IsZero() || s.retry.Before(retry)) {
			retry = s.retry
		}
	}
	return retry, failure
}

// findings returns what the last comparisons of these objects have found, in their order, and forgets other objects. areCompared is true once a round has
// compared all of them.
func (m *Memory) findings(keys []Key, areAll bool) (findings []Finding, areCompared bool) {
	for key, s := range m.objects {
		if !slices.Contains(keys, key) {
			m.tracker.setDrifted(s.uid, false)
			delete(m.objects, key)
			delete(m.repairs, key)
		}
	}
	for _, key := range keys {
		if finding := m.objects[key].finding; finding.IsDrift() {
			findings = append(findings, finding)
		}
	}
	m.isUnsure = m.isUnsure && !areAll
	return findings, areAll && m.round > 0
}

// Result is what is known of the objects of an Instance.
type Result struct {
	// Findings are what comparisons have found, in the order of the objects, and Failure is why objects could not be compared or put back.
	Findings []Finding
	Failure  error

	// AreCompared means that a round has compared all objects.
	AreCompared bool

	// Again is when there is more to compare or to put back.
	Again time.Time
}

// IsKnown reports whether there is anything to report.
func (r Result) IsKnown() bool { return len(r.Findings) > 0 || r.AreCompared || r.Failure != nil }

// Result returns what is known of these objects, and forgets others. areAll means that all that were due were compared.
func (m *Memory) Result(keys []Key, areAll bool) Result {
	result := Result{Again: m.next}
	result.Findings, result.AreCompared = m.findings(keys, areAll)
	retry, failure := m.failureOf(keys)
	result.Failure = failure
	for _, earlier := range []time.Time{retry, m.wake(keys)} {
		if !earlier.IsZero() && earlier.Before(result.Again) {
			result.Again = earlier
		}
	}
	if !areAll {
		result.Again = m.now.Add(time.Millisecond)
	}
	return result
}
