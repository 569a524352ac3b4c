package mirror

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// onHub returns an OperatorVersion on the hub.
func onHub() *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: "kafka-1.0.0", UID: "abc-def"},
		Spec:       kudo.OperatorVersionSpec{Version: "1.0.0", Templates: map[string]string{"a.yaml": "kind: A"}},
	}
}

func TestConfirm(t *testing.T) {
	for what, test := range map[string]struct {
		edit     func(existing, original *kudo.OperatorVersion)
		gone     bool
		reported bool
		want     Confirmation
	}{
		"equal content":     {func(_, _ *kudo.OperatorVersion) {}, false, false, Confirmed},
		"different content": {func(existing, _ *kudo.OperatorVersion) { existing.Spec.Templates["a.yaml"] = "theirs" }, false, false, Different},
		"different content, although it is reported": {func(existing, _ *kudo.OperatorVersion) { existing.Spec.Templates["a.yaml"] = "theirs" }, false, true, Different},
		"deleted on the hub":                         {func(_, _ *kudo.OperatorVersion) {}, true, false, Unknown},
		"deleted on the hub, and reported":           {func(_, _ *kudo.OperatorVersion) {}, true, true, Confirmed},
		"replaced on the hub":                        {func(_, original *kudo.OperatorVersion) { original.UID = "other" }, false, false, Unknown},
		"replaced on the hub, and reported":          {func(_, original *kudo.OperatorVersion) { original.UID = "other" }, false, true, Confirmed},
		"the name of another one":                    {func(existing, _ *kudo.OperatorVersion) { existing.Name = "kafka-1.0.0-other" }, false, true, Unknown},
	} {
		original := onHub()
		existing := NewVersion(original.DeepCopy(), "apps")
		test.edit(existing, original)
		if test.gone {
			original = nil
		}
		if got := Confirm(existing, original, test.reported); got != test.want {
			t.Errorf("%s: want %s, got %s", what, test.want, got)
		}
	}
}

func TestAnUnsignedObjectWithTheNameOfAMirroredOperatorVersion(t *testing.T) {
	for what, test := range map[string]struct {
		edit  func(existing *kudo.OperatorVersion)
		keeps bool
		fails bool
	}{
		"is kept if it is equal":                {func(*kudo.OperatorVersion) {}, true, false},
		"is replaced with another content":      {func(existing *kudo.OperatorVersion) { existing.Spec.Version = "theirs" }, false, false},
		"is replaced with another uid":          {func(existing *kudo.OperatorVersion) { existing.Annotations[kudo.AnnotationHubUID] = "other" }, false, false},
		"is kept for its writer without claims": {func(existing *kudo.OperatorVersion) { existing.Annotations = nil }, false, true},
	} {
		existing := NewVersion(onHub(), "apps")
		test.edit(existing)
		if keeps, err := KeepsVersion(existing, NewVersion(onHub(), "apps")); keeps != test.keeps || (err != nil) != test.fails {
			t.Errorf("%s: got %t, %v", what, keeps, err)
		}
	}
}

func TestVersionsOfAnInstance(t *testing.T) {
	wanted, existing := started(), copied()
	reference := func(name string) corev1.ObjectReference { return corev1.ObjectReference{Name: name, UID: "abc-def"} }
	existing.Spec.OperatorVersion.Name = "kafka-2.0.0-abc"
	existing.Status.Execution = &kudo.Execution{OperatorVersion: reference("kafka-1.5.0")}
	wanted.Status.Whole = &kudo.WholeVersion{OperatorVersion: reference("kafka-0.9.0")}
	want := []VersionClaim{{"kafka-0.9.0-abc", true}, {"kafka-1.0.0-abc", true}, {"kafka-1.5.0-abc", false}, {"kafka-2.0.0-abc", false}}
	if diff := cmp.Diff(want, VersionsOf(wanted, existing)); diff != "" {
		t.Error(diff)
	}
}

func TestMirroredOperatorVersionsToDelete(t *testing.T) {
	versions := []kudo.OperatorVersion{*NewVersion(onHub(), "apps"), *NewVersion(onHub(), "other")}
	for what, test := range map[string]struct {
		mirror func(i *kudo.Instance)
		want   int
	}{
		"none that an Instance refers to":       {func(*kudo.Instance) {}, 1},
		"all if the Instance refers to another": {func(i *kudo.Instance) { i.Spec.OperatorVersion.Name, i.Status.Execution = "kafka-2.0.0-abc", nil }, 2},
		"none that an Instance runs":            {func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "kafka-2.0.0-abc" }, 1},
		"none that a plan replaces that is not complete": {func(i *kudo.Instance) {
			i.Spec.OperatorVersion.Name = "kafka-2.0.0-abc"
			i.Status.Whole = &kudo.WholeVersion{OperatorVersion: i.Status.Execution.OperatorVersion}
			i.Status.Execution = nil
		}, 1},
		"none for an Instance in another namespace": {func(i *kudo.Instance) { i.Namespace = "third" }, 2},
	} {
		i := copied()
		test.mirror(i)
		if got := Unneeded(versions, []kudo.Instance{*i}); len(got) != test.want {
			t.Errorf("%s: want %d, got %+v", what, test.want, got)
		}
	}
}

func TestAnOperatorVersionIsKeptForAnInstanceThatMayChooseIt(t *testing.T) {
	versions := []kudo.OperatorVersion{*NewVersion(onHub(), "apps")}
	for what, test := range map[string]struct {
		edit   func(i *kudo.Instance)
		chosen bool
		want   int
	}{
		"it refers to it":                   {func(*kudo.Instance) {}, false, 0},
		"it has chosen":                     {func(*kudo.Instance) {}, true, 1},
		"it is being deleted":               {func(i *kudo.Instance) { i.DeletionTimestamp = &metav1.Time{Time: noon} }, false, 1},
		"it refers to another":              {func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "kafka-2.0.0" }, false, 1},
		"it refers to one in a namespace":   {func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "addon-packages" }, false, 0},
		"it refers to one of another owner": {func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "cluster1" }, false, 1},
		"it is installed elsewhere":         {func(i *kudo.Instance) { i.Spec.InstallNamespace = "other" }, false, 1},
	} {
		i := started()
		i.Spec.OperatorVersion.Namespace = "addon-packages"
		test.edit(i)
		if got := Unexpected(versions, []kudo.Instance{*i}, "cluster1", func(string) bool { return test.chosen }); len(got) != test.want {
			t.Errorf("%s: want %d, got %+v", what, test.want, got)
		}
	}
}

func TestASlotIsFree(t *testing.T) {
	wanted := started()
	wanted.Name = "a.b"
	named := func(name string) *kudo.Instance {
		i := copied()
		i.Name = name
		return i
	}
	signed := Proof{Signed: true}
	for what, test := range map[string]struct {
		candidate Candidate
		taken     bool
	}{
		"beside its own mirror":                        {Candidate{named("a.b"), signed}, false},
		"beside another name":                          {Candidate{named("c"), signed}, false},
		"not beside a mirror with the same labels":     {Candidate{named("a-b"), signed}, true},
		"not beside one of an earlier release":         {Candidate{named("a-b"), Proof{Older: true}}, true},
		"not beside one of a former signature":         {Candidate{named("a-b"), Proof{Former: true}}, true},
		"beside an object that only claims the labels": {Candidate{named("a-b"), Proof{}}, false},
	} {
		if err := Occupied(wanted, []Candidate{test.candidate}); (err != nil) != test.taken {
			t.Errorf("%s: got %v", what, err)
		}
	}
	other := started()
	other.Name = "a-b"
	if !SharesSlot(wanted, []kudo.Instance{*wanted, *other}) || SharesSlot(wanted, []kudo.Instance{*wanted, *started()}) {
		t.Error("another Instance on the hub has the same slot if its name has the same labels")
	}
	wanted.Status.Execution = nil
	if Precedes(wanted, []kudo.Instance{*wanted, *other}) == nil || Precedes(other, []kudo.Instance{*wanted, *other}) != nil {
		t.Error("the Instance that has executed a plan precedes the other")
	}
}
