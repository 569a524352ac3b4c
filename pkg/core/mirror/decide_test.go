package mirror

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// version is the mirrored OperatorVersion of the desired state.
var version = corev1.ObjectReference{Namespace: "apps", Name: "kafka-1.0.0-abc"}

// started returns an Instance on the hub that has resolved it, and to which its agent has reported an execution.
func started() *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka", UID: "u", Generation: 7},
		Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Name: "kafka-1.0.0"}, InstallNamespace: "apps", Parameters: map[string]string{"A": "1", "B": "2"},
		},
		Status: kudo.InstanceStatus{
			Conditions: []metav1.Condition{{Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, ObservedGeneration: 7}},
			Execution: &kudo.Execution{
				UID: "e", Generation: 7, Parameters: map[string]string{"A": "1", "B": "2"},
				OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-1.0.0", UID: "abc-def"},
			},
			HandledRequests: []types.UID{"handled"},
			History:         []kudo.HistoryEntry{{Revision: 1, UID: "e", Plan: "deploy"}},
			Inventory:       []kudo.InventoryEntry{{Kind: "ConfigMap", Namespace: "apps", Name: "a", Task: "t"}},
		},
	}
}

// copied returns the mirror of that Instance.
func copied() *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "apps", Name: "kafka", UID: "local", ResourceVersion: "1", Finalizers: []string{kudo.Finalizer},
			Annotations: map[string]string{kudo.AnnotationHubUID: "u", kudo.AnnotationHubGeneration: "7", "example.com/other": "x"},
		},
		Spec: kudo.InstanceSpec{OperatorVersion: version, InstallNamespace: "apps", Parameters: map[string]string{"A": "1", "B": "2"}},
		Status: kudo.InstanceStatus{
			Execution: started().Status.Execution, Inventory: started().Status.Inventory,
		},
	}
}

// condition adds condition Ready to an Instance.
func condition(i *kudo.Instance, reason string) {
	meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: reason})
}

// situation is an Observation with all its facts; those that a decision does not ask for stay unknown to it.
type situation struct {
	Observation
	asked []Fact
}

// play decides until nothing has to be gathered.
func (s *situation) play(t *testing.T) Decision {
	t.Helper()
	o := s.Observation
	o.Known = map[Fact]bool{}
	o.Namespace, o.Parent, o.Detached, o.Version = "", nil, false, corev1.ObjectReference{}
	for range 10 {
		before := []*kudo.Instance{o.Wanted.DeepCopy(), o.Mirror.DeepCopy()}
		decision := Decide(o)
		if diff := cmp.Diff(before, []*kudo.Instance{o.Wanted, o.Mirror}); diff != "" {
			t.Fatalf("a decision changes what was observed (-before +after):\n%s", diff)
		}
		if decision.Need == "" {
			return decision
		}
		if len(decision.Writes) > 0 || decision.Removed || decision.Err != nil || o.Known[decision.Need] {
			t.Fatalf("asks for %s, although it is known (%t) or with %+v", decision.Need, o.Known[decision.Need], decision)
		}
		s.asked = append(s.asked, decision.Need)
		o.Known[decision.Need] = true
		switch decision.Need {
		case FactNamespace:
			o.Namespace = s.Namespace
		case FactParent:
			o.Parent = s.Parent
		case FactDetached:
			o.Detached = s.Detached
		case FactVersion:
			o.Version = s.Version
		}
	}
	t.Fatalf("it asks for ever: %v", s.asked)
	return Decision{}
}

// text returns what happens: facts, writes with what they change of the mirror, and the error.
func (s *situation) text(t *testing.T) string {
	t.Helper()
	decision := s.play(t)
	var lines []string
	for _, fact := range s.asked {
		lines = append(lines, "? "+string(fact))
	}
	if decision.Removed {
		lines = append(lines, "removed")
	}
	was := s.Mirror
	for _, write := range decision.Writes {
		lines = append(lines, writeText(write, was))
		if write.Kind != RestoreVersion && write.Kind != UpdateStatus {
			was = write.Mirror
		}
	}
	if decision.Err != nil {
		lines = append(lines, "error: "+decision.Err.Error())
	}
	return strings.Join(lines, "\n")
}

// writeText returns a write as one line, with the fields that differ from the mirror before it.
func writeText(write Write, was *kudo.Instance) string {
	if write.Kind == RestoreVersion {
		return fmt.Sprintf("%s %s/%s in %s", write.Kind, write.Version.Namespace, write.Version.Name, write.Mirror.Namespace)
	}
	words := []string{string(write.Kind)}
	if write.Unsigned {
		words = append(words, "unsigned")
	}
	if was == nil {
		was = &kudo.Instance{}
	}
	is := write.Mirror
	if write.Kind == UpdateStatus {
		return strings.Join(append(words, statusText(is.Status)), " ")
	}
	if is.Namespace != was.Namespace {
		words = append(words, "in "+is.Namespace)
	}
	var names []string
	for name := range is.Annotations {
		names = append(names, name)
	}
	for name := range was.Annotations {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		before, existed := was.Annotations[name]
		after, exists := is.Annotations[name]
		switch short := strings.TrimPrefix(name, "kudo.dev/"); {
		case !exists:
			words = append(words, "-"+short)
		case !existed || before != after:
			words = append(words, "+"+short+"="+after)
		}
	}
	if !cmp.Equal(is.Spec, was.Spec) {
		words = append(words, fmt.Sprintf("%s in %s %v", is.Spec.OperatorVersion.Name, is.Spec.InstallNamespace, is.Spec.Parameters))
		if is.Spec.SuspendedBy != was.Spec.SuspendedBy {
			words = append(words, "suspended by "+is.Spec.SuspendedBy)
		}
		if !cmp.Equal(is.Spec.ChangedBy, was.Spec.ChangedBy) {
			words = append(words, "changed by "+is.Spec.ChangedBy.Kind)
		}
		if is.Spec.PlanExecution != was.Spec.PlanExecution {
			words = append(words, fmt.Sprintf("cancel=%t", is.Spec.PlanExecution.Cancel))
		}
	}
	if held := slices.Contains(is.Finalizers, kudo.Finalizer); held != slices.Contains(was.Finalizers, kudo.Finalizer) {
		words = append(words, fmt.Sprintf("finalizer=%t", held))
	}
	return strings.Join(words, " ")
}

func statusText(status kudo.InstanceStatus) string {
	execution := types.UID("none")
	if status.Execution != nil {
		execution = status.Execution.UID
	}
	return fmt.Sprintf("execution %s, inventory %d, handled %v, history %d, children %d, resolved %t", execution, len(status.Inventory), status.HandledRequests,
		len(status.History), len(status.Children), meta.FindStatusCondition(status.Conditions, kudo.ConditionResolved) != nil)
}

const (
	createFirst = "create in apps +hub-uid=u kafka-1.0.0-abc in apps map[A:1 B:2] finalizer=true"
	signCopy    = "update +hub-generation=7"
	restored    = "restore version addon-packages/kafka-1.0.0 in apps\nupdate status execution e, inventory 1, handled [handled], history 1, children 0, resolved false"
)

func play(t *testing.T, tests map[string]decisionTest) {
	t.Helper()
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			s := &situation{Observation: Observation{
				Now: noon, Wanted: started(), Mirror: copied(), Proof: Proof{Signed: true}, Namespace: NamespaceActive, Version: version,
				Rights: rights.Policy{Reserved: []string{"kube-system"}},
			}}
			test.edit(s)
			if diff := cmp.Diff(test.want, s.text(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type decisionTest struct {
	edit func(s *situation)
	want string
}

const (
	versions = "? confirmed OperatorVersions\n"
	chosen   = "? mirrored OperatorVersion\n? content of the mirrored OperatorVersion\n"
)

func deleted(s *situation) { s.Wanted.DeletionTimestamp = &metav1.Time{Time: noon} }

func deletedLocally(s *situation) { s.Mirror.DeletionTimestamp = &metav1.Time{Time: noon} }

func asks(s *situation) {
	s.Wanted.Annotations = map[string]string{kudo.AnnotationDiagnose: "2026-01-01T12:00:00Z"}
}

func removing(s *situation) { s.Mirror.Annotations[kudo.AnnotationHubDeleted] = "2026-01-01T11:00:00Z" }

func unresolved(s *situation) { s.Wanted.Status.Conditions[0].ObservedGeneration = 6 }

func absent(s *situation) { s.Mirror, s.Proof = nil, Proof{} }

func edits(edits ...func(*situation)) func(*situation) {
	return func(s *situation) {
		for _, edit := range edits {
			edit(s)
		}
	}
}

func TestCopy(t *testing.T) {
	play(t, map[string]decisionTest{
		"nothing has changed": {func(*situation) {}, strings.TrimSpace(chosen)},
		"a new Instance":      {edits(absent, func(s *situation) { s.Wanted.Status.Execution = nil }), chosen + createFirst + "\n" + signCopy},
		"a new Instance that the hub has not resolved": {edits(absent, unresolved, func(s *situation) { s.Wanted.Status.Execution = nil }), ""},
		"a lost mirror": {absent, "? namespace\n" + chosen +
			"create in apps +hub-uid=u +inventory-restored=true kafka-1.0.0-abc in apps map[A:1 B:2] finalizer=true\n" + restored + "\n" + signCopy},
		"a lost mirror during an upgrade, after which it may return": {edits(absent, func(s *situation) {
			s.Wanted.Status.Former = &kudo.FormerVersion{OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-0.9.0", UID: "before"}}
		}), "? namespace\n" + chosen + "create in apps +hub-uid=u +inventory-restored=true kafka-1.0.0-abc in apps map[A:1 B:2] finalizer=true\n" +
			strings.Replace(restored, "\n", "\nrestore version addon-packages/kafka-0.9.0 in apps\n", 1) + "\n" + signCopy},
		"a lost mirror whose namespace is lost, too": {edits(absent, func(s *situation) { s.Namespace = NamespaceMissing }),
			"? namespace\nerror: " + (&NamespaceError{Name: "apps"}).Error()},
		"a lost mirror whose namespace is being deleted": {edits(absent, func(s *situation) { s.Namespace = NamespaceTerminating }),
			"? namespace\nerror: " + (&NamespaceError{Name: "apps", Deleting: true}).Error()},
		"a mirror that was created, and not signed": {func(s *situation) {
			s.Proof, s.Mirror.Status = Proof{}, kudo.InstanceStatus{}
			delete(s.Mirror.Annotations, kudo.AnnotationHubGeneration)
		}, versions + chosen + restored + "\nupdate +hub-generation=7 +inventory-restored=true"},
		"a mirror without a status that was copied": {func(s *situation) { s.Mirror.Status = kudo.InstanceStatus{} }, strings.TrimSpace(chosen)},
		"a mirror that a backup has restored": {func(s *situation) {
			s.Proof, s.Mirror.Status = Proof{}, kudo.InstanceStatus{}
		}, versions + chosen + restored + "\nupdate +inventory-restored=true"},
		"a mirror that another writer has changed": {func(s *situation) {
			s.Proof, s.Mirror.Spec.Parameters = Proof{}, map[string]string{"A": "theirs"}
		}, versions + chosen + "update kafka-1.0.0-abc in apps map[A:1 B:2]"},
		"a mirror that only lacks its signature": {func(s *situation) { s.Proof = Proof{} }, versions + chosen + "update"},
		"a request for a diagnosis":              {asks, chosen + "update +diagnose=2026-01-01T12:00:00Z"},
		"a request for a diagnosis that is copied": {edits(asks, func(s *situation) {
			s.Mirror.Annotations[kudo.AnnotationDiagnose] = s.Wanted.Annotations[kudo.AnnotationDiagnose]
		}), strings.TrimSpace(chosen)},
		"a request for a diagnosis that is withdrawn":                            {func(s *situation) { s.Mirror.Annotations[kudo.AnnotationDiagnose] = "x" }, chosen + "update -diagnose"},
		"a request for a diagnosis of an Instance that the hub has not resolved": {edits(asks, unresolved), "update +diagnose=2026-01-01T12:00:00Z"},
		"a long request for a diagnosis": {func(s *situation) {
			s.Wanted.Annotations = map[string]string{kudo.AnnotationDiagnose: strings.Repeat("x", 1000)}
		}, chosen + "update +diagnose=" + strings.Repeat("x", 64)},
		"a suspension": {func(s *situation) { s.Wanted.Spec.SuspendedBy = "ManagedCluster c" },
			chosen + "update kafka-1.0.0-abc in apps map[A:1 B:2] suspended by ManagedCluster c"},
		"an author": {func(s *situation) {
			s.Wanted.Spec.ChangedBy, s.Mirror.Spec.ChangedBy = &kudo.ChangeAuthor{Kind: "b"}, &kudo.ChangeAuthor{Kind: "a"}
		}, chosen + "update kafka-1.0.0-abc in apps map[A:1 B:2] changed by b"},
		"authors that the API server of the cluster drops": {func(s *situation) {
			s.Wanted.Spec.ChangedBy, s.Wanted.Spec.RequestedBy = &kudo.ChangeAuthor{Kind: "b"}, &kudo.ChangeAuthor{Kind: "b"}
		}, strings.TrimSpace(chosen)},
		"another parameter": {func(s *situation) { s.Wanted.Spec.Parameters["A"] = "2" },
			chosen + "update kafka-1.0.0-abc in apps map[A:2 B:2]"},
		"another generation":       {func(s *situation) { s.Mirror.Annotations[kudo.AnnotationHubGeneration] = "6" }, chosen + "update +hub-generation=7"},
		"another OperatorVersion":  {func(s *situation) { s.Version.Name = "kafka-1.0.0-def" }, chosen + "update kafka-1.0.0-def in apps map[A:1 B:2]"},
		"a finalizer that is lost": {func(s *situation) { s.Mirror.Finalizers = nil }, chosen + "update finalizer=true"},
		"an orphan whose Instance exists again": {func(s *situation) { s.Mirror.Annotations[kudo.AnnotationOrphaned] = "true" },
			chosen + "update -orphaned"},
		"an orphan of another Instance of that name": {func(s *situation) {
			s.Mirror.Annotations[kudo.AnnotationOrphaned], s.Mirror.Annotations[kudo.AnnotationHubUID] = "true", "before"
		}, chosen + "update +hub-uid=u -orphaned"},
		"an orphan of a partial removal": {func(s *situation) {
			removing(s)
			s.Mirror.Annotations[kudo.AnnotationOrphaned] = "true"
			s.Mirror.Status.Inventory = append(s.Mirror.Status.Inventory, kudo.InventoryEntry{Kind: "Secret", Name: "found"})
			s.Mirror.Status.HandledRequests = []types.UID{"handled"}
			s.Mirror.Status.History = started().Status.History
		}, chosen + "update status execution none, inventory 1, handled [handled], history 1, children 0, resolved false\nupdate -hub-deleted -orphaned"},
		"the parent of a child": {func(s *situation) {
			s.Wanted.Name = "root.kafka"
			s.Wanted.Labels = map[string]string{kudo.LabelRoot: "root"}
			s.Wanted.OwnerReferences = []metav1.OwnerReference{
				{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "root", UID: "r", Controller: new(true)}}
		}, chosen + "update +parent=root"},
		"a parent that is gone before its child": {func(s *situation) { s.Mirror.Annotations[kudo.AnnotationParent] = "root" }, strings.TrimSpace(chosen)},
		"a parent in a mirror of a former signature": {func(s *situation) {
			s.Mirror.Annotations[kudo.AnnotationParent], s.Proof = "root", Proof{Former: true}
		}, versions + chosen + "update"},
		"a parent that another writer has set": {func(s *situation) {
			s.Mirror.Annotations[kudo.AnnotationParent], s.Proof = "root", Proof{Older: true}
		}, versions + chosen + "update -parent"},
		"another install namespace": {func(s *situation) { s.Wanted.Spec.InstallNamespace = "other" },
			`error: its workloads run in namespace "apps": set spec.installNamespace to that namespace, or delete Instance "kafka" there first`},
		"the status of children": {func(s *situation) { s.Wanted.Status.Children = []kudo.ChildStatus{{Task: "t"}} },
			chosen + "update status execution e, inventory 1, handled [], history 0, children 1, resolved false"},
		"a change and the status of children": {func(s *situation) {
			s.Wanted.Spec.Parameters["A"], s.Wanted.Status.Children = "2", []kudo.ChildStatus{{Task: "t"}}
		}, chosen + "update kafka-1.0.0-abc in apps map[A:2 B:2]\nupdate status execution e, inventory 1, handled [], history 0, children 1, resolved false"},
		"a reserved namespace": {edits(absent, func(s *situation) {
			s.Wanted.Status.Execution, s.Wanted.Spec.InstallNamespace = nil, "kube-system"
		}), "error: " + rights.Policy{Reserved: []string{"kube-system"}}.CheckInstall("kube-system").Error()},
		"an object of another writer in a reserved namespace": {func(s *situation) {
			s.Wanted.Status.Execution, s.Wanted.Spec.InstallNamespace, s.Mirror.Namespace = nil, "kube-system", "kube-system"
			s.Mirror.Annotations[kudo.AnnotationHubUID], s.Proof = "other", Proof{}
		}, versions + "error: " + rights.Policy{Reserved: []string{"kube-system"}}.CheckInstall("kube-system").Error()},
		"a namespace that was reserved later": {func(s *situation) {
			s.Rights.Reserved, s.Wanted.Spec.Parameters["A"] = []string{"apps"}, "2"
		}, chosen + "update kafka-1.0.0-abc in apps map[A:2 B:2]"},
	})
}

func TestAcknowledge(t *testing.T) {
	play(t, map[string]decisionTest{
		"nothing has changed": {unresolved, ""},
		"a change that the hub has not resolved": {edits(unresolved, func(s *situation) { s.Wanted.Spec.Parameters["A"] = "2" }),
			""},
		"a suspension before the hub has resolved the change": {edits(unresolved, func(s *situation) { s.Wanted.Spec.SuspendedBy = "ManagedCluster c" }),
			"update kafka-1.0.0-abc in apps map[A:1 B:2] suspended by ManagedCluster c"},
		"a suspension that another writer has removed, and that the hub has yet to restore": {edits(unresolved, func(s *situation) {
			s.Mirror.Spec.SuspendedBy = "ManagedCluster c"
		}), ""},
		"the end of a suspension, of an Instance that cannot run": {func(s *situation) {
			s.Wanted.Status.Conditions[0].Status, s.Mirror.Spec.SuspendedBy = metav1.ConditionFalse, "ManagedCluster c"
		}, "update kafka-1.0.0-abc in apps map[A:1 B:2] suspended by "},
		"a suspension that the hub cannot store": {func(s *situation) {
			s.Wanted.Status.Conditions[0].Status, s.Mirror.Spec.SuspendedBy = metav1.ConditionFalse, "ManagedCluster c"
			s.Wanted.Status.Conditions[0].Reason = kudo.ReasonFieldNotStored
		}, ""},
		"a condition of which an earlier generation was resolved is false": {func(s *situation) {
			s.Wanted.Status.Conditions[0].Status = metav1.ConditionFalse
			s.Wanted.Spec.Parameters["A"] = "2"
		}, ""},
		"a request to cancel": {edits(unresolved, func(s *situation) {
			s.Wanted.Spec.PlanExecution, s.Wanted.Status.Children = kudo.PlanExecution{UID: "c", Cancel: true}, []kudo.ChildStatus{{Task: "t"}}
		}), "update kafka-1.0.0-abc in apps map[A:1 B:2] cancel=true"},
		"a request to run a plan": {edits(unresolved, func(s *situation) {
			s.Wanted.Spec.PlanExecution = kudo.PlanExecution{UID: "c", PlanName: "backup"}
		}), ""},
		"the status of children": {edits(unresolved, func(s *situation) { s.Wanted.Status.Children = []kudo.ChildStatus{{Task: "t"}} }),
			"update status execution e, inventory 1, handled [], history 0, children 1, resolved false"},
		"a mirror of another Instance": {edits(unresolved, func(s *situation) {
			s.Wanted.UID, s.Wanted.Status.Children = "later", []kudo.ChildStatus{{Task: "t"}}
		}), ""},
	})
}

func TestNamespaceOfAMirrorThatIsBeingDeleted(t *testing.T) {
	play(t, map[string]decisionTest{
		"a deletion of the mirror alone": {edits(deletedLocally, unresolved), "? namespace"},
		"with its namespace": {edits(deletedLocally, func(s *situation) { s.Namespace = NamespaceTerminating }),
			"? namespace\nleave finalizer=false\nerror: " + (&NamespaceError{Name: "apps", Deleting: true}).Error()},
		"with its namespace, and it has no finalizer": {edits(deletedLocally, func(s *situation) {
			s.Namespace, s.Mirror.Finalizers = NamespaceTerminating, []string{"example.com/other"}
		}), "? namespace\nerror: " + (&NamespaceError{Name: "apps", Deleting: true}).Error()},
		"its namespace is gone": {edits(deletedLocally, func(s *situation) { s.Namespace = NamespaceMissing }),
			"? namespace\nerror: " + (&NamespaceError{Name: "apps"}).Error()},
		"without a signature, with its namespace, before the hub has resolved it": {edits(deletedLocally, unresolved, func(s *situation) {
			s.Namespace, s.Proof = NamespaceTerminating, Proof{Older: true}
		}), versions + "? namespace\nupdate\nleave finalizer=false\nerror: " + (&NamespaceError{Name: "apps", Deleting: true}).Error()},
	})
}

func TestRelease(t *testing.T) {
	orphaned := "orphan +orphaned=true finalizer=false"
	gone := func(s *situation) { s.Wanted = nil }
	play(t, map[string]decisionTest{
		"an Instance that the hub no longer has":                 {gone, orphaned},
		"without a mirror":                                       {edits(gone, absent), ""},
		"an orphan":                                              {edits(gone, func(s *situation) { s.Mirror.Annotations[kudo.AnnotationOrphaned], s.Mirror.Finalizers = "", nil }), ""},
		"an orphan with a finalizer":                             {edits(gone, func(s *situation) { s.Mirror.Annotations[kudo.AnnotationOrphaned] = "true" }), "orphan finalizer=false"},
		"a mirror of an earlier release":                         {edits(gone, func(s *situation) { s.Proof = Proof{Older: true} }), "orphan unsigned +orphaned=true finalizer=false"},
		"a mirror of a former signature":                         {edits(gone, func(s *situation) { s.Proof = Proof{Former: true} }), orphaned},
		"an older mirror that is signed":                         {edits(gone, func(s *situation) { s.Proof.Older = true }), orphaned},
		"an object of another writer":                            {edits(gone, func(s *situation) { s.Proof = Proof{} }), ""},
		"a removal in progress":                                  {edits(gone, removing), orphaned},
		"a removal in progress of a mirror that is deleted, too": {edits(gone, removing, deletedLocally), ""},
		"a removal that is complete":                             {edits(gone, removing, func(s *situation) { condition(s.Mirror, kudo.ReasonRemoved) }), "delete"},
		"a removal that is complete, of an Instance that exists again": {edits(removing, func(s *situation) {
			condition(s.Mirror, kudo.ReasonRemoved)
			s.Wanted.UID = "later"
		}), "delete"},
		"a removal that is complete, and not reported": {edits(removing, deleted, func(s *situation) { condition(s.Mirror, kudo.ReasonRemoved) }),
			""},
		"a release by force": {edits(deleted, func(s *situation) {
			s.Wanted.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
		}), orphaned},
		"a release by force after the removal": {edits(deleted, removing, func(s *situation) {
			s.Wanted.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
			condition(s.Mirror, kudo.ReasonRemoved)
		}), "delete"},
		"a deletion that a restore of the hub has undone": {removing, orphaned},
	})
}

func child(s *situation) {
	s.Wanted.Name, s.Mirror.Name = "root.kafka", "root.kafka"
	s.Wanted.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "root", UID: "r", Controller: new(true)}}
	s.Parent = &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "root", UID: "r", DeletionTimestamp: &metav1.Time{Time: noon}}}
}

func TestRemove(t *testing.T) {
	const handOver = "update +hub-deleted=2026-01-01T12:00:00Z"
	skips := func(s *situation) { s.Wanted.Annotations = map[string]string{kudo.AnnotationSkipCleanup: "true"} }
	play(t, map[string]decisionTest{
		"a mirror":                   {deleted, "? detached\n" + handOver},
		"before the cluster is gone": {edits(deleted, func(s *situation) { s.Detached = true }), "? detached\norphan +orphaned=true finalizer=false"},
		"an orphan": {edits(deleted, func(s *situation) { s.Mirror.Annotations[kudo.AnnotationOrphaned], s.Mirror.Finalizers = "true", nil }),
			"? detached\n" + handOver + " -orphaned finalizer=true"},
		"without cleanup":                  {edits(deleted, skips), "? detached\n" + handOver + " +skip-cleanup=true"},
		"of a mirror that is deleted, too": {edits(deleted, deletedLocally), "? detached\n? namespace\n" + handOver},
		"in a namespace that is deleted, too": {edits(deleted, deletedLocally, func(s *situation) { s.Namespace = NamespaceTerminating }),
			"? detached\n? namespace\n" + handOver + " +skip-cleanup=true"},
		"a mirror without a status": {edits(deleted, func(s *situation) { s.Mirror.Status = kudo.InstanceStatus{} }),
			"? detached\n" + restored + "\n" + handOver + " +inventory-restored=true"},
		"in progress":                                   {edits(deleted, removing), ""},
		"in progress, then without cleanup":             {edits(deleted, removing, skips), "update +skip-cleanup=true"},
		"in progress, of a mirror that is deleted, too": {edits(deleted, removing, deletedLocally), "? namespace"},
		"in progress, then its namespace is deleted": {edits(deleted, removing, deletedLocally, func(s *situation) { s.Namespace = NamespaceTerminating }),
			"? namespace\nupdate +skip-cleanup=true"},
		"in progress without cleanup": {edits(deleted, removing, skips, func(s *situation) { s.Mirror.Annotations[kudo.AnnotationSkipCleanup] = "true" }),
			""},
		"of another Instance of that name": {edits(deleted, func(s *situation) { s.Wanted.UID = "later" }),
			"removed\norphan +orphaned=true finalizer=false"},
		"of an Instance that has started nothing": {edits(deleted, absent, func(s *situation) { s.Wanted.Status.Execution = nil }), "removed"},
		"of an Instance that was removed":         {edits(deleted, absent, func(s *situation) { condition(s.Wanted, kudo.ReasonRemoved) }), "removed"},
		"a lost mirror": {edits(deleted, absent), "? namespace\n? detached\n" +
			"create in apps +hub-uid=u +inventory-restored=true kafka-1.0.0 in apps map[A:1 B:2] finalizer=true\n" + restored + "\n" + handOver},
		"a lost mirror that had objects elsewhere": {edits(deleted, absent, func(s *situation) { s.Wanted.Status.Inventory[0].Namespace = "other" }),
			"? detached\ncreate in apps +hub-uid=u +inventory-restored=true kafka-1.0.0 in apps map[A:1 B:2] finalizer=true\n" + restored + "\n" + handOver},
		"a lost mirror without an inventory": {edits(deleted, absent, func(s *situation) { s.Wanted.Status.Inventory = nil }), "? detached\n" +
			"create in apps +hub-uid=u +inventory-restored=true kafka-1.0.0 in apps map[A:1 B:2] finalizer=true\n" +
			strings.Replace(restored, "inventory 1", "inventory 0", 1) + "\n" + handOver},
		"a lost mirror during an upgrade, after which it may return": {edits(absent, func(s *situation) {
			s.Wanted.Status.Former = &kudo.FormerVersion{OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-0.9.0", UID: "before"}}
		}), "? namespace\n" + chosen + "create in apps +hub-uid=u +inventory-restored=true kafka-1.0.0-abc in apps map[A:1 B:2] finalizer=true\n" +
			strings.Replace(restored, "\n", "\nrestore version addon-packages/kafka-0.9.0 in apps\n", 1) + "\n" + signCopy},
		"a lost mirror whose namespace is lost, too": {edits(deleted, absent, func(s *situation) { s.Namespace = NamespaceMissing }), "? namespace\nremoved"},
		"a lost mirror before the cluster is gone":   {edits(deleted, absent, func(s *situation) { s.Detached = true }), "? namespace\n? detached"},
		"a child whose parent is being removed":      {edits(deleted, child), "? parent"},
		"a child whose parent is removed": {edits(deleted, child, func(s *situation) { condition(s.Parent, kudo.ReasonRemoved) }),
			"? parent\n? detached\n" + handOver},
		"a child whose parent is released": {edits(deleted, child, func(s *situation) {
			s.Parent.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
		}), "? parent\n? detached\n" + handOver},
		"a child whose parent stays": {edits(deleted, child, func(s *situation) { s.Parent.DeletionTimestamp = nil }),
			"? parent\n? detached\n" + handOver},
		"a child whose parent is gone": {edits(deleted, child, func(s *situation) { s.Parent = nil }), "? parent\n? detached\n" + handOver},
		"a child of another parent of that name": {edits(deleted, child, func(s *situation) { s.Parent.UID = "later" }),
			"? parent\n? detached\n" + handOver},
	})
}

func TestSignature(t *testing.T) {
	older := func(s *situation) { s.Proof = Proof{Older: true} }
	changed := func(s *situation) { s.Mirror.Spec.Parameters = map[string]string{"A": "theirs"} }
	play(t, map[string]decisionTest{
		"what was started last, before the hub has resolved it": {edits(unresolved, older), versions + "update"},
		"and then the status of children": {edits(unresolved, older, func(s *situation) { s.Wanted.Status.Children = []kudo.ChildStatus{{Task: "t"}} }),
			versions + "update\nupdate status execution e, inventory 1, handled [], history 0, children 1, resolved false"},
		"a change of another writer, before the hub has resolved it": {edits(unresolved, older, changed),
			"error: " + unconfirmedError(copied()).Error()},
		"a change of another writer":                          {edits(older, changed), versions + chosen + "update kafka-1.0.0-abc in apps map[A:1 B:2]"},
		"an object of another Instance and another writer":    {edits(unresolved, func(s *situation) { s.Proof, s.Wanted.UID = Proof{}, "later" }), "? namespace"},
		"a mirror of an earlier release and another Instance": {edits(unresolved, older, func(s *situation) { s.Wanted.UID = "later" }), ""},
		"a changed mirror of an Instance that is being deleted": {edits(deleted, older, changed),
			versions + "? detached\nupdate +hub-deleted=2026-01-01T12:00:00Z +inventory-restored=true kafka-1.0.0 in apps map[A:1 B:2]"},
		"a mirror without install namespace of an Instance that is being deleted": {
			edits(deleted, older, changed, func(s *situation) { s.Mirror.Spec.InstallNamespace = "" }),
			versions + "? detached\nupdate +hub-deleted=2026-01-01T12:00:00Z +inventory-restored=true kafka-1.0.0 in  map[A:1 B:2]"},
		"a forged removal of an Instance that is being deleted": {edits(deleted, removing, older, func(s *situation) { condition(s.Mirror, kudo.ReasonRemoved) }),
			versions + "? detached\nupdate +hub-deleted=2026-01-01T12:00:00Z +inventory-restored=true kafka-1.0.0 in apps map[A:1 B:2]"},
		"a forged orphan of an Instance that is released by force": {edits(deleted, older, func(s *situation) {
			s.Wanted.Annotations = map[string]string{kudo.AnnotationForceRelease: "true"}
		}), versions + "orphan unsigned +inventory-restored=true +orphaned=true kafka-1.0.0 in apps map[A:1 B:2] finalizer=false"},
		"an object of another writer, of an Instance that is being deleted": {edits(deleted, func(s *situation) {
			s.Proof, s.Mirror.Annotations[kudo.AnnotationHubUID] = Proof{}, "other"
			s.Wanted.Status.Execution = nil
		}), "removed"},
	})
}

func TestAWriteContinuesWithWhatIsStored(t *testing.T) {
	made := newMirror(started(), version)
	stored := made.DeepCopy()
	stored.UID, stored.ResourceVersion, stored.Labels = "local", "5", map[string]string{"default": "x"}
	changed := made.DeepCopy()
	changed.Annotations[kudo.AnnotationHubGeneration] = "7"
	changed.Status.Inventory = started().Status.Inventory
	update := Write{Kind: Update, Mirror: changed}.Onto(stored)
	if update.UID != "local" || update.ResourceVersion != "5" || update.Labels["default"] != "x" || update.HubGeneration() != 7 || len(update.Status.Inventory) != 0 {
		t.Errorf("an update writes %+v", update)
	}
	status := Write{Kind: UpdateStatus, Mirror: changed}.Onto(stored)
	if status.ResourceVersion != "5" || status.HubGeneration() != 0 || len(status.Status.Inventory) != 1 {
		t.Errorf("an update of the status writes %+v", status)
	}
	if first := (Write{Kind: Update, Mirror: changed}).Onto(nil); !cmp.Equal(first, changed) || first == changed {
		t.Errorf("the first write is not a copy of the mirror: %+v", first)
	}
}
