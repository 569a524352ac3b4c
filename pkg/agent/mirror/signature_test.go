package mirror

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var keyCreated = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func testSigner() *Signer {
	return NewSigner([]byte("0123456789abcdef0123456789abcdef"), keyCreated)
}

// instanceMirror returns a mirror that was created some time after the key.
func instanceMirror(namespace string, after time.Duration) kudo.Instance {
	return kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "kafka", UID: "local", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(keyCreated.Add(after)),
			Annotations: map[string]string{kudo.AnnotationHubUID: "u", kudo.AnnotationHubGeneration: "7", "example.com/other": "x"},
		},
		Spec: kudo.InstanceSpec{
			OperatorVersion: corev1.ObjectReference{Namespace: namespace, Name: "kafka-1.0.0-abc"}, InstallNamespace: namespace,
			Parameters: map[string]string{"A": "1", "B": "2"},
		},
	}
}

func versionMirror() kudo.OperatorVersion {
	return kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "apps", Name: "kafka-1.0.0-abc", UID: "local", ResourceVersion: "1",
			Annotations: map[string]string{kudo.AnnotationHubUID: "abc-def", kudo.AnnotationHubOperatorVersion: "addon-packages/kafka-1.0.0"},
		},
		Spec: kudo.OperatorVersionSpec{Version: "1.0.0", Templates: map[string]string{"a.yaml": "kind: A"}},
	}
}

func TestASignatureCoversWhateverTheEngineTrusts(t *testing.T) {
	s := testSigner()
	for what, edit := range map[string]func(*kudo.Instance){
		"another name":                func(i *kudo.Instance) { i.Name = "other" },
		"another namespace":           func(i *kudo.Instance) { i.Namespace = "kube-system" },
		"another Instance on the hub": func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubUID] = "v" },
		"no Instance on the hub":      func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationHubUID) },
		"another generation":          func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubGeneration] = "8" },
		"a deletion on the hub":       func(i *kudo.Instance) { i.Annotations[kudo.AnnotationHubDeleted] = "" },
		"a parent":                    func(i *kudo.Instance) { i.Annotations[kudo.AnnotationParent] = "root" },
		"an orphan":                   func(i *kudo.Instance) { i.Annotations[kudo.AnnotationOrphaned] = "true" },
		"a restored inventory":        func(i *kudo.Instance) { i.Annotations[kudo.AnnotationInventoryRestored] = "true" },
		"no cleanup":                  func(i *kudo.Instance) { i.Annotations[kudo.AnnotationSkipCleanup] = "true" },
		"another OperatorVersion":     func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "evil" },
		"another value":               func(i *kudo.Instance) { i.Spec.Parameters["A"] = "2" },
		"another parameter":           func(i *kudo.Instance) { i.Spec.Parameters["C"] = "" },
		"a requested plan":            func(i *kudo.Instance) { i.Spec.PlanExecution = kudo.PlanExecution{PlanName: "backup", UID: "1"} },
		"another service account":     func(i *kudo.Instance) { i.Spec.ServiceAccountName = "admin" },
		"no signature":                func(i *kudo.Instance) { delete(i.Annotations, kudo.AnnotationSignature) },
		"an empty signature":          func(i *kudo.Instance) { i.Annotations[kudo.AnnotationSignature] = "" },
		"a signature of another form": func(i *kudo.Instance) {
			i.Annotations[kudo.AnnotationSignature] = "v1" + i.Annotations[kudo.AnnotationSignature][2:]
		},
		"the signature of another content":            func(i *kudo.Instance) { i.Annotations[kudo.AnnotationSignature] = "v2." },
		"a copy, to which the API server gives a uid": func(i *kudo.Instance) { i.UID = "other" },
		"a copy that is not stored yet":               func(i *kudo.Instance) { i.UID = "" },
	} {
		i := instanceMirror("apps", time.Hour)
		if err := s.Sign(&i); err != nil {
			t.Fatal(err)
		}
		if !s.IsSigned(&i) {
			t.Fatalf("want a signature that is valid, got %q", i.Annotations[kudo.AnnotationSignature])
		}
		if edit(&i); s.IsSigned(&i) {
			t.Errorf("with %s, the signature is still valid", what)
		}
	}
}

func TestASignatureIsIndependentOfTheRest(t *testing.T) {
	s, i := testSigner(), instanceMirror("apps", time.Hour)
	if err := s.Sign(&i); err != nil {
		t.Fatal(err)
	}
	i.ResourceVersion, i.Generation, i.Finalizers = "2", 3, []string{"x"}
	i.Labels, i.Annotations["example.com/other"] = map[string]string{"a": "b"}, "y"
	i.Status.ObservedGeneration = 9
	if !s.IsSigned(&i) {
		t.Error("want the signature to cover the mirror's identity and spec only")
	}
	if other := NewSigner([]byte("another key"), keyCreated); other.IsSigned(&i) {
		t.Error("another key accepts it")
	}
}

// A release that signs the same mirror in another way makes agents ignore all mirrors until the hub confirms them.
func TestASignatureStaysTheSameInLaterReleases(t *testing.T) {
	s, i, v := testSigner(), instanceMirror("apps", time.Hour), versionMirror()
	for want, o := range map[string]client.Object{
		"v2.kB1REDjxGN1CWXq-xBK4OatrAhk8llqAGWVyTBSZmfo": &i,
		"v1.2164MKAmn3T5UjpIGjI19mEb5o_ou2e5J5M81KYLLTs": &v,
	} {
		if got, err := s.signatureOf(o); err != nil || got != want {
			t.Errorf("want %s, got %s, %v", want, got, err)
		}
	}
}

func TestASignatureOfAnOperatorVersionCoversItsContent(t *testing.T) {
	s := testSigner()
	for what, edit := range map[string]func(*kudo.OperatorVersion){
		"another template":                  func(v *kudo.OperatorVersion) { v.Spec.Templates["a.yaml"] = "kind: B" },
		"another OperatorVersion":           func(v *kudo.OperatorVersion) { v.Annotations[kudo.AnnotationHubUID] = "abc-000" },
		"the name of another one":           func(v *kudo.OperatorVersion) { v.Annotations[kudo.AnnotationHubOperatorVersion] = "x/y" },
		"a parameter with another default":  func(v *kudo.OperatorVersion) { v.Spec.Parameters = []kudo.Parameter{{Name: "A", Default: ptr.To("b")}} },
		"another namespace":                 func(v *kudo.OperatorVersion) { v.Namespace = "other" },
		"permissions that it does not have": func(v *kudo.OperatorVersion) { v.Spec.Permissions = &kudo.Permissions{} },
	} {
		v := versionMirror()
		if err := s.Sign(&v); err != nil {
			t.Fatal(err)
		}
		for range 2 { // computed, and remembered
			if !s.IsSigned(&v) {
				t.Fatal("want a valid signature")
			}
		}
		edit(&v)
		v.ResourceVersion = "2"
		for range 2 {
			if s.IsSigned(&v) {
				t.Errorf("with %s, the signature is still valid", what)
			}
		}
		v.ResourceVersion = "" // not stored yet
		if s.IsSigned(&v) {
			t.Errorf("with %s, the signature is valid before it is stored", what)
		}
	}
}

func TestOnlyStoredMirrorsAreSigned(t *testing.T) {
	i := instanceMirror("apps", time.Hour)
	i.UID = ""
	for what, o := range map[string]client.Object{"another kind": &corev1.ConfigMap{}, "an Instance that is not created": &i} {
		if err := testSigner().Sign(o); err == nil {
			t.Errorf("%s: want an error", what)
		}
	}
}

func TestAMirrorThatIsCreatedAgainFromACopyIsNotSigned(t *testing.T) {
	s, i, v := testSigner(), instanceMirror("apps", time.Hour), versionMirror()
	if err := errors.Join(s.Sign(&i), s.Sign(&v)); err != nil {
		t.Fatal(err)
	}
	i.UID, v.UID = "again", "again"
	if s.IsSigned(&i) || s.Predates(&i) {
		t.Error("want an Instance that the agent ignores")
	}
	if !s.IsSigned(&v) {
		t.Error("want an OperatorVersion with the same content to be the same")
	}
}

// formerlySigned signs a mirror that is younger than the key as builds did that did not sign uids.
func formerlySigned(i *kudo.Instance) {
	i.CreationTimestamp = metav1.NewTime(keyCreated.Add(time.Hour))
	i.Annotations[kudo.AnnotationSignature] = "v1.UBHH3QGEqZrHKY9N6pEDE1nkP77W8UkXv2rQKPABvuE"
}

func TestPredates(t *testing.T) {
	s := testSigner()
	for what, c := range map[string]struct {
		edit func(*kudo.Instance)
		want bool
	}{
		"a mirror that is older than the key":                         {func(*kudo.Instance) {}, true},
		"a mirror that was created with the key":                      {func(i *kudo.Instance) { i.CreationTimestamp = keyCreated }, false},
		"a mirror that was created after the key":                     {func(i *kudo.Instance) { i.CreationTimestamp = metav1.NewTime(keyCreated.Add(time.Second)) }, false},
		"a mirror that is not created yet":                            {func(i *kudo.Instance) { i.CreationTimestamp = metav1.Time{} }, false},
		"an Instance that is older and does not claim to be a mirror": {func(i *kudo.Instance) { i.Annotations = nil }, false},
		"a mirror that was signed without its uid":                    {formerlySigned, true},
		"a mirror that was signed without its uid, and changed": {func(i *kudo.Instance) {
			formerlySigned(i)
			i.Spec.Parameters["A"] = "2"
		}, false},
	} {
		i := instanceMirror("apps", -time.Hour)
		c.edit(&i)
		if got := s.Predates(&i); got != c.want {
			t.Errorf("%s: want %t, got %t", what, c.want, got)
		}
	}
}
