package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// postReview posts a review of an Instance to the handler for judge, like an API server.
func postReview(t *testing.T, review admissionv1.AdmissionRequest, judge func(context.Context, write[*kudo.Instance]) (opinion, error)) (
	*admissionv1.AdmissionResponse, *admissions,
) {
	t.Helper()
	scheme, err := controller.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	a := &admissions{scheme: scheme, answers: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "x"}, []string{"resource", "answer"})}
	review.UID, review.Resource.Resource = "mine", "whatever the request says"
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &review,
	})
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodPost, "/admit/instance", strings.NewReader(string(body)))
	request.Header.Set("Content-Type", "application/json")
	recorded := httptest.NewRecorder()
	reviewOf(a, "instances", judge).ServeHTTP(recorded, request)
	var answered admissionv1.AdmissionReview
	if err := json.Unmarshal(recorded.Body.Bytes(), &answered); err != nil {
		t.Fatalf("answer %d %s: %v", recorded.Code, recorded.Body, err)
	}
	if answered.Response == nil || answered.Response.UID != "mine" {
		t.Fatalf("the answer %s is to no request", recorded.Body)
	}
	return answered.Response, a
}

// raw returns an object as encoded in a review; none if text is empty.
func raw(text string) runtime.RawExtension {
	if text == "" {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: []byte(text)}
}

const anInstance = `{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","metadata":{"name":"a"}}`

func TestReview(t *testing.T) {
	saying := func(o opinion, err error) func(context.Context, write[*kudo.Instance]) (opinion, error) {
		return func(context.Context, write[*kudo.Instance]) (opinion, error) { return o, err }
	}
	for name, test := range map[string]struct {
		object   string
		judge    func(context.Context, write[*kudo.Instance]) (opinion, error)
		refusal  string // empty for none
		warnings []string
		answer   string
	}{
		"what nothing is said of is admitted": {judge: saying(opinion{}, nil), answer: "admitted"},
		"warnings do not refuse": {
			judge: saying(opinion{warnings: []string{"mind the gap"}}, nil), warnings: []string{"mind the gap"}, answer: "admitted",
		},
		"a refusal says why, beside its warnings": {
			judge:   saying(opinion{warnings: []string{"mind the gap"}, refused: errors.New("no such parameter")}, nil),
			refusal: "no such parameter", warnings: []string{"mind the gap"}, answer: "refused",
		},
		"a write that cannot be checked is allowed with a warning": {
			judge:    saying(opinion{}, errors.New("reading OperatorVersion: no luck")),
			warnings: []string{"this write was admitted without validation, and problems are reported after it is stored: reading OperatorVersion: no luck"},
			answer:   "unjudged",
		},
		"an error goes before a refusal that came of it": {
			judge:    saying(opinion{refused: errors.New("no such parameter")}, errors.New("no luck")),
			warnings: []string{"this write was admitted without validation, and problems are reported after it is stored: no luck"}, answer: "unjudged",
		},
		"a panic is an error as any other": {
			judge:    func(context.Context, write[*kudo.Instance]) (opinion, error) { panic("at the disco") },
			warnings: []string{"this write was admitted without validation, and problems are reported after it is stored: panic: at the disco"}, answer: "unjudged",
		},
		"an object of wrong types is not judged": {
			object: `{"apiVersion":"kudo.dev/v1beta1","kind":"Instance","spec":{"parameters":["a"]}}`, judge: saying(opinion{}, nil),
			warnings: []string{"this write was admitted without validation, and problems are reported after it is stored: reading the object: json: " +
				"cannot unmarshal array into Go struct field InstanceSpec.spec.parameters of type map[string]string"},
			answer: "unjudged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := test.object
			if object == "" {
				object = anInstance
			}
			got, a := postReview(t, admissionv1.AdmissionRequest{Object: raw(object)}, test.judge)
			if refused := test.refusal != ""; got.Allowed == refused {
				t.Errorf("allowed: %v, want %v", got.Allowed, !refused)
			}
			if !got.Allowed && (got.Result.Message != test.refusal || got.Result.Code != http.StatusUnprocessableEntity ||
				got.Result.Reason != metav1.StatusReasonInvalid) {
				t.Errorf("refused with %+v, want %q", got.Result, test.refusal)
			}
			if diff := cmp.Diff(test.warnings, got.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			var counted dto.Metric
			if err := a.answers.WithLabelValues("instances", test.answer).Write(&counted); err != nil || counted.Counter.GetValue() != 1 {
				t.Errorf("counted as %s: %v, %v", test.answer, &counted, err)
			}
		})
	}
}

func TestReviewReadsBothSides(t *testing.T) {
	other := strings.Replace(anInstance, `"a"`, `"b"`, 1)
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"a creation has nothing before":        {after: anInstance, want: []string{"-", "a"}},
		"a deletion has nothing after":         {before: anInstance, want: []string{"a", "-"}},
		"an update has both, by the same user": {before: anInstance, after: other, want: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			review := admissionv1.AdmissionRequest{Object: raw(test.after), OldObject: raw(test.before)}
			review.UserInfo.Username = "somebody"
			nameOf := func(i *kudo.Instance) string {
				if i == nil {
					return "-"
				}
				return i.Name
			}
			var got []string
			postReview(t, review, func(_ context.Context, w write[*kudo.Instance]) (opinion, error) {
				got = []string{nameOf(w.before), nameOf(w.after)}
				if w.user != "somebody" {
					t.Errorf("user %q", w.user)
				}
				return opinion{}, nil
			})
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestReviewLimitsWarnings(t *testing.T) {
	long := opinion{refused: errors.New(strings.Repeat("é", 4000))}
	for i := range 40 {
		long.warnings = append(long.warnings, fmt.Sprintf("%d\n%s", i, strings.Repeat("é", 300)))
	}
	before := slices.Clone(long.warnings)
	got, _ := postReview(t, admissionv1.AdmissionRequest{Object: raw(anInstance)},
		func(context.Context, write[*kudo.Instance]) (opinion, error) { return long, nil })
	if message := got.Result.Message; len(message) > 4096 || len(message) < 4000 || !utf8.ValidString(message) {
		t.Errorf("the refusal has %d bytes", len(message))
	}
	var total int
	for _, warning := range got.Warnings {
		total += len(warning)
		if len(warning) > 256 || !utf8.ValidString(warning) || strings.Contains(warning, "\n") {
			t.Errorf("warning %q has %d bytes", warning, len(warning))
		}
	}
	if total > 4096 || len(got.Warnings) != 16 || got.Warnings[15] != "and 25 more warnings" {
		t.Errorf("%d warnings, %d bytes, the last one %q", len(got.Warnings), total, got.Warnings[len(got.Warnings)-1])
	}
	if !slices.Equal(before, long.warnings) {
		t.Error("the warnings were changed")
	}
}

func TestLosing(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("addon-with-a-name-%02d", i))
	}
	for name, test := range map[string]struct {
		dependents []string
		want       string
	}{
		"one": {[]string{"kafka"}, "kafka on cluster1 requires zookeeper and will become unavailable (kubectl addon dependents zookeeper)"},
		"two, sorted": {
			[]string{"spark", "kafka"},
			"kafka, spark on cluster1 require zookeeper and will become unavailable (kubectl addon dependents zookeeper)",
		},
		"more than fit": {
			many, "addon-with-a-name-00, addon-with-a-name-01, addon-with-a-name-02, addon-with-a-name-03, addon-with-a-name-04, " +
				"addon-with-a-name-05 and 24 more on cluster1 require zookeeper and will become unavailable (kubectl addon dependents zookeeper)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := dependentsOpinion(test.dependents, " on cluster1", "zookeeper", "").warnings[0]
			if got != test.want || len(got) > 256 {
				t.Errorf("got %q (%d bytes), want %q", got, len(got), test.want)
			}
		})
	}
}

func TestChangesOfAddOnsThatAreBeingDeleted(t *testing.T) {
	stays := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: strings.Repeat("z", 63)}}
	going := stays.DeepCopy()
	going.DeletionTimestamp = new(metav1.Now())
	for name, test := range map[string]struct {
		before, after *addonv1alpha1.ManagedClusterAddOn
		warns         bool
	}{
		"a change is lost":                     {before: going, after: going, warns: true},
		"a change of one that stays":           {before: stays, after: stays},
		"deleting one that is deleted already": {before: going},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&admissions{}).addOn(t.Context(), write[*addonv1alpha1.ManagedClusterAddOn]{before: test.before, after: test.after})
			if err != nil || got.refused != nil {
				t.Errorf("got errors %v, %v", err, got.refused)
			}
			if warns := len(got.warnings) == 1 && len(got.warnings[0]) <= warningLimit; warns != test.warns {
				t.Errorf("got warnings %q", got.warnings)
			}
		})
	}
}

func TestSuspensionWarnings(t *testing.T) {
	with := func(value *string) *addonv1alpha1.ClusterManagementAddOn {
		d := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
		if value != nil {
			d.Annotations = map[string]string{kudo.AnnotationSuspend: *value}
		}
		return d
	}
	resumes := `this write resumes add-on "kafka" on all clusters, and its plans start: unless that is intended, suspend it again`
	for name, test := range map[string]struct {
		w    write[*addonv1alpha1.ClusterManagementAddOn]
		want []string
	}{
		"a new definition":            {write[*addonv1alpha1.ClusterManagementAddOn]{after: with(nil)}, nil},
		"a suspension":                {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(nil), after: with(new("storage")), replaces: true}, nil},
		"a patch that resumes it":     {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(new("storage")), after: with(nil)}, nil},
		"a replacement that keeps it": {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(new("")), after: with(new("")), replaces: true}, nil},
		"a replacement without it": {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(new("a bad release")), after: with(nil), replaces: true},
			[]string{resumes, "to suspend it again: kubectl addon suspend kafka --everywhere --reason 'a bad release'"}},
		"a replacement without it and with a reason that does not fit": {write[*addonv1alpha1.ClusterManagementAddOn]{
			before: with(new(strings.Repeat("é", 200))), after: with(nil), replaces: true,
		}, []string{resumes, "to suspend it again: kubectl addon suspend kafka --everywhere"}},
		"a replacement without it and a reason": {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(new("")), after: with(nil), replaces: true},
			[]string{resumes, "to suspend it again: kubectl addon suspend kafka --everywhere"}},
		"a value that looks as if it did not suspend": {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(new("storage")), after: with(new("false"))},
			[]string{`annotation kudo.dev/suspend of ClusterManagementAddOn kafka is "false", and suspends regardless of its value: remove the annotation to resume ` +
				"(kubectl addon resume kafka --everywhere)"}},
		"such a value that exists": {write[*addonv1alpha1.ClusterManagementAddOn]{before: with(new("false")), after: with(new("false"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := suspensionWarnings(test.w)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, limitWarnings(got)); diff != "" {
				t.Errorf("they do not fit:\n%s", diff)
			}
		})
	}
}

func TestRemoving(t *testing.T) {
	declaring := func(annotation string, field ...addonv1alpha1.AddonDependency) *addonv1alpha1.ClusterManagementAddOn {
		d := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
		d.Spec.Dependencies = field
		if annotation != "" {
			d.Annotations = map[string]string{addonv1alpha1.AnnotationDependencies: annotation}
		}
		return d
	}
	var many []addonv1alpha1.AddonDependency
	for i := range 30 {
		many = append(many, addonv1alpha1.AddonDependency{Name: fmt.Sprintf("addon-with-a-name-%02d", i)})
	}
	for name, test := range map[string]struct {
		before, after *addonv1alpha1.ClusterManagementAddOn
		want          []string
	}{
		"nothing is removed": {declaring(`[{"name":"a"}]`), declaring(`[{"name":"b"}]`), nil},
		"the annotation, with the command that restores it": {declaring(`[{"name":"zookeeper"}, {"name":"it","message":"isn't"}]`), declaring(""), []string{
			`this write removes all dependencies of "kafka" (zookeeper, it): unless that is intended, restore annotation ` +
				"addon.open-cluster-management.io/dependencies",
			"to restore them: kubectl annotate clustermanagementaddon kafka 'addon.open-cluster-management.io/dependencies=" +
				`[{"name":"zookeeper","type":"Required"},{"name":"it","type":"Required","message":"isn\u0027t"}]'`,
		}},
		"the field": {declaring("", addonv1alpha1.AddonDependency{Name: "zookeeper", Type: "Optional"}), declaring(""), []string{
			`this write removes all dependencies of "kafka" (zookeeper): unless that is intended, restore spec.dependencies`,
			"to restore them: kubectl patch clustermanagementaddon kafka --type=merge -p " +
				`'{"spec":{"dependencies":[{"name":"zookeeper","type":"Optional"}]}}'`,
		}},
		"more than fit": {declaring("", many...), declaring(""), []string{
			`this write removes all dependencies of "kafka" (addon-with-a-name-00, addon-with-a-name-01, addon-with-a-name-02, addon-with-a-name-03, ` +
				"addon-with-a-name-04, addon-with-a-name-05 and 24 more): unless that is intended, restore spec.dependencies",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := removalWarnings(test.before, test.after)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(got, limitWarnings(got)); diff != "" {
				t.Errorf("they do not fit:\n%s", diff)
			}
		})
	}
}

func TestOutside(t *testing.T) {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kafka"}}
	mirror := instance.DeepCopy()
	mirror.Annotations = map[string]string{kudo.AnnotationHubUID: "x"}
	for name, test := range map[string]struct {
		write write[*kudo.Instance]
		want  []string
	}{
		"an Instance is created": {write[*kudo.Instance]{after: instance}, []string{
			`the Instance cannot run yet: ManagedCluster "default" does not exist or is being deleted: create the Instance in the namespace of a managed cluster`,
		}},
		"an Instance is edited": {write[*kudo.Instance]{before: instance, after: instance}, nil},
		"a mirror is created":   {write[*kudo.Instance]{after: mirror}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := outside(test.write)
			if diff := cmp.Diff(test.want, got.warnings); diff != "" || got.refused != nil {
				t.Errorf("refused: %v; warnings (-want +got):\n%s", got.refused, diff)
			}
		})
	}
}
