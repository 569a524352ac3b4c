package author

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// entry returns the managed fields of a manager that has written some minutes after noon.
func entry(manager string, minutes int, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Time: &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
	}
}

func TestTheLastWriterOfThePartIsTheAuthor(t *testing.T) {
	const (
		labels     = `{"f:metadata":{"f:labels":{"f:a":{}}}}`
		parameters = `{"f:spec":{"f:parameters":{}}}`
		version    = `{"f:spec":{".":{},"f:operatorVersion":{"f:name":{}}}}`
		request    = `{"f:spec":{"f:planExecution":{"f:planName":{}}}}`
		suspended  = `{"f:spec":{"f:suspend":{},"f:windows":{},"f:drift":{}}}`
		placed     = `{"f:spec":{"f:installStrategy":{"f:placements":{"k:{\"name\":\"p\"}":{"f:configs":{}}}}}}`
		rollout    = `{"f:spec":{"f:installStrategy":{"f:placements":{"k:{\"name\":\"p\"}":{"f:rolloutStrategy":{}}}}}}`
	)
	inStatus := entry("late", 9, parameters)
	inStatus.Subresource = "status"
	undated := entry("undated", 9, parameters)
	undated.Time = nil
	fieldless := entry("fieldless", 9, parameters)
	fieldless.FieldsV1 = nil
	for what, test := range map[string]struct {
		kind                      string
		entries                   []metav1.ManagedFieldsEntry
		values, request, creation string
	}{
		"one writer":                             {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, parameters)}, "a", "", "a"},
		"the latest of two":                      {"Instance", []metav1.ManagedFieldsEntry{entry("b", 2, version), entry("a", 1, parameters)}, "b", "", "b"},
		"a later write of labels":                {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, parameters), entry("b", 2, labels)}, "a", "", "a"},
		"a later suspension":                     {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, parameters), entry("b", 2, suspended)}, "a", "", "b"},
		"a request beside a change":              {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, parameters), entry("b", 2, request)}, "a", "b", "b"},
		"a status":                               {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, parameters), inStatus}, "a", "", "a"},
		"entries without a time or fields":       {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, parameters), undated, fieldless}, "a", "", "a"},
		"the programs' own managers":             {"Instance", []metav1.ManagedFieldsEntry{entry("addon-manager-instance", 1, parameters), entry("addon-agent", 1, version)}, "", "", ""},
		"a manager with a similar name":          {"Instance", []metav1.ManagedFieldsEntry{entry("addon-managers", 1, parameters)}, "addon-managers", "", "addon-managers"},
		"malformed fields":                       {"Instance", []metav1.ManagedFieldsEntry{entry("a", 0, `{`), entry("b", 0, `{"f:spec":[]}`)}, "", "", "b"},
		"nothing":                                {"Instance", nil, "", "", ""},
		"variables":                              {"AddOnDeploymentConfig", []metav1.ManagedFieldsEntry{entry("a", 0, `{"f:spec":{"f:customizedVariables":{}}}`), entry("b", 1, labels)}, "a", "", "a"},
		"other fields of a config":               {"AddOnDeploymentConfig", []metav1.ManagedFieldsEntry{entry("a", 0, `{"f:spec":{"f:registries":{}}}`), entry("b", 1, `{"f:spec":{"f:nodePlacement":{}}}`)}, "a", "", "b"},
		"a manager that hides":                   {"AddOnDeploymentConfig", []metav1.ManagedFieldsEntry{entry("a", 0, `{"f:spec":{"f:registries":{}}}`), entry("addon-manager-x", 1, `{"f:spec":{"f:registries":{}}}`)}, "addon-manager-x", "", "addon-manager-x"},
		"data":                                   {"ConfigMap", []metav1.ManagedFieldsEntry{entry("a", 0, `{"f:data":{"f:A":{}}}`), entry("b", 1, labels)}, "a", "", "a"},
		"configs of a placement":                 {"ClusterManagementAddOn", []metav1.ManagedFieldsEntry{entry("a", 0, placed), entry("b", 1, rollout)}, "a", "", "b"},
		"an add-on that is enabled, and labeled": {"ManagedClusterAddOn", []metav1.ManagedFieldsEntry{entry("a", 0, `{"f:spec":{".":{},"f:installNamespace":{}}}`), entry("b", 1, labels)}, "", "", "a"},
		"an add-on without a spec, and labeled":  {"ManagedClusterAddOn", []metav1.ManagedFieldsEntry{entry("b", 1, labels), entry("a", 0, labels)}, "", "", "a"},
	} {
		t.Run(what, func(t *testing.T) {
			o := &metav1.ObjectMeta{Namespace: "c", Name: "n", ManagedFields: test.entries}
			got := WritersOf(test.kind, o)
			if got.Values.Manager != test.values || got.Request.Manager != test.request || got.Creation.Manager != test.creation {
				t.Errorf("%q, %q and %q, want %q, %q and %q", got.Values.Manager, got.Request.Manager, got.Creation.Manager, test.values, test.request, test.creation)
			}
			if got.Values.Manager != "" && (got.Values.Kind != test.kind || got.Values.Name != "c/n") {
				t.Errorf("%s %s", got.Values.Kind, got.Values.Name)
			}
		})
	}
}

func TestTheLatestAuthorIsChosen(t *testing.T) {
	of := func(name string, minutes int) kudo.ChangeAuthor {
		return kudo.ChangeAuthor{Kind: "ConfigMap", Name: name, Time: &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}}
	}
	for what, test := range map[string]struct {
		authors []kudo.ChangeAuthor
		want    string
	}{
		"none":                      {nil, ""},
		"none that is known":        {make([]kudo.ChangeAuthor, 2), ""},
		"the latest":                {[]kudo.ChangeAuthor{of("a", 0), of("b", 2), {}, of("c", 1)}, "b"},
		"the first of the same age": {[]kudo.ChangeAuthor{of("a", 1), of("b", 1)}, "a"},
	} {
		if got := Latest(test.authors); got.Name != test.want {
			t.Errorf("%s: %q, want %q", what, got.Name, test.want)
		}
	}
}

func TestAWriterOfBeforeIsNotTheAuthorOfARemoval(t *testing.T) {
	of := func(manager string, age time.Duration) kudo.ChangeAuthor {
		return kudo.ChangeAuthor{Manager: manager, Kind: "ConfigMap", Name: "n", Time: &metav1.Time{Time: noon.Add(-age)}}
	}
	for what, test := range map[string]struct {
		found    kudo.ChangeAuthor
		recorded *kudo.ChangeAuthor
		want     string
	}{
		"nothing is recorded":                {of("a", time.Hour), nil, "a"},
		"a parent is recorded":               {of("a", time.Hour), &kudo.ChangeAuthor{Kind: "Instance"}, "a"},
		"a later write":                      {of("b", time.Minute), new(of("a", time.Hour)), "b"},
		"a later write of the same writer":   {of("a", time.Minute), new(of("a", time.Hour)), "a"},
		"another writer in the same second":  {of("b", time.Hour), new(of("a", time.Hour)), "b"},
		"the same write":                     {of("a", time.Hour), new(of("a", time.Hour)), ""},
		"an earlier write":                   {of("b", 2*time.Hour), new(of("a", time.Hour)), ""},
		"the same writer, a few seconds ago": {of("a", time.Second), new(of("a", time.Second)), "a"},
		"none":                               {kudo.ChangeAuthor{}, new(of("a", time.Hour)), ""},
	} {
		if got := Newer(test.found, test.recorded, noon); got.Manager != test.want {
			t.Errorf("%s: %q, want %q", what, got.Manager, test.want)
		}
	}
}

func TestAnAuthorBelongsToOneChange(t *testing.T) {
	version := types.NamespacedName{Namespace: "p", Name: "kafka-1.0.0"}
	spec := kudo.InstanceSpec{Parameters: map[string]string{"A": "1"}}
	recorded := With(kudo.ChangeAuthor{Manager: "kubectl", Kind: "Instance", Name: "c/n", Time: &metav1.Time{Time: noon}}, Values(version, spec))
	for what, test := range map[string]struct {
		change func(a *kudo.ChangeAuthor, version *types.NamespacedName, spec *kudo.InstanceSpec)
		want   bool
	}{
		"nothing": {func(*kudo.ChangeAuthor, *types.NamespacedName, *kudo.InstanceSpec) {}, true},
		"another time zone": {func(a *kudo.ChangeAuthor, _ *types.NamespacedName, _ *kudo.InstanceSpec) {
			a.Time = &metav1.Time{Time: noon.Local()}
		}, true},
		"an empty list": {func(_ *kudo.ChangeAuthor, _ *types.NamespacedName, s *kudo.InstanceSpec) {
			s.ParametersFrom = []kudo.ParameterFrom{}
		}, true},
		"a suspension": {func(_ *kudo.ChangeAuthor, _ *types.NamespacedName, s *kudo.InstanceSpec) {
			s.Suspend, s.SuspendedBy = true, "x"
		}, true},
		"windows": {func(_ *kudo.ChangeAuthor, _ *types.NamespacedName, s *kudo.InstanceSpec) {
			s.Windows, s.ClusterWindows = "x", "x"
		}, true},
		"another parameter": {func(_ *kudo.ChangeAuthor, _ *types.NamespacedName, s *kudo.InstanceSpec) { s.Parameters = nil }, false},
		"another version":   {func(_ *kudo.ChangeAuthor, v *types.NamespacedName, _ *kudo.InstanceSpec) { v.Name = "kafka-2.0.0" }, false},
		"other registries": {func(_ *kudo.ChangeAuthor, _ *types.NamespacedName, s *kudo.InstanceSpec) {
			s.ImageRegistries = []kudo.ImageRegistry{{Mirror: "m"}}
		}, false},
		"another manager":     {func(a *kudo.ChangeAuthor, _ *types.NamespacedName, _ *kudo.InstanceSpec) { a.Manager = "me" }, false},
		"another object":      {func(a *kudo.ChangeAuthor, _ *types.NamespacedName, _ *kudo.InstanceSpec) { a.Name = "c/m" }, false},
		"a lost digest":       {func(a *kudo.ChangeAuthor, _ *types.NamespacedName, _ *kudo.InstanceSpec) { a.Change = "" }, false},
		"a time that is lost": {func(a *kudo.ChangeAuthor, _ *types.NamespacedName, _ *kudo.InstanceSpec) { a.Time = nil }, false},
	} {
		a, v, s := recorded.DeepCopy(), version, *spec.DeepCopy()
		test.change(a, &v, &s)
		if got := IsOf(a, Values(v, s)); got != test.want {
			t.Errorf("%s: %t, want %t", what, got, test.want)
		}
	}
	if With(kudo.ChangeAuthor{}, Values(version, spec)) != nil || IsOf(nil, Values(version, spec)) {
		t.Error("there is an author although none is known")
	}
	if Request(kudo.PlanExecution{PlanName: "p", UID: "1"}) == Request(kudo.PlanExecution{PlanName: "p", UID: "2"}) {
		t.Error("two requests are the same change")
	}
}

func TestTextsAreBoundedAndVisible(t *testing.T) {
	for what, test := range map[string]struct {
		author kudo.ChangeAuthor
		want   string
	}{
		"a writer":              {kudo.ChangeAuthor{Manager: "kubectl-addon", Kind: "AddOnDeploymentConfig", Name: "cluster1/kafka"}, "kubectl-addon (AddOnDeploymentConfig cluster1/kafka)"},
		"a cluster-wide object": {kudo.ChangeAuthor{Manager: "helm", Kind: "ClusterManagementAddOn", Name: "kafka"}, "helm (ClusterManagementAddOn kafka)"},
		"a parent":              {kudo.ChangeAuthor{Kind: "Instance", Name: "cluster1/kafka"}, "(Instance cluster1/kafka)"},
		"control characters":    {kudo.ChangeAuthor{Manager: "a\x1b[31m\n\u202eb", Kind: "Instance", Name: "c/\x1bn"}, `a^[[31m \u202eb (Instance c/^[n)`},
		"a long name":           {kudo.ChangeAuthor{Manager: strings.Repeat("m", 500), Kind: "Instance", Name: "n"}, strings.Repeat("m", 128) + " (Instance n)"},
	} {
		if got := Text(With(test.author, "change"), "change"); got != test.want {
			t.Errorf("%s: %q, want %q", what, got, test.want)
		}
		if got := Text(With(test.author, "change"), "another"); got != "" {
			t.Errorf("%s: %q of another change", what, got)
		}
	}
	long := kudo.ChangeAuthor{Manager: strings.Repeat("\u202e", 500), Kind: strings.Repeat("k", 500), Name: strings.Repeat("n", 500)}
	if got := Text(With(long, "change"), "change"); len(got) > maxText {
		t.Errorf("%d bytes", len(got))
	}
	o := &metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{entry(strings.Repeat("\u202e", 500), 0, `{"f:data":{}}`)}}
	if got := WritersOf("ConfigMap", o).Values; len(got.Manager) > maxManager || strings.Contains(got.Manager, "\u202e") || got.Name != "n" {
		t.Errorf("%q of %q", got.Manager, got.Name)
	}
}

func FuzzWritersOf(f *testing.F) {
	f.Add("kubectl", `{"f:spec":{"f:parameters":{}}}`)
	f.Add("a\x00", `{"f:spec":{"f:planExecution":[]}}`)
	f.Fuzz(func(t *testing.T, manager, fields string) {
		got := WritersOf("Instance", &metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{entry(manager, 0, fields)}})
		for _, a := range []kudo.ChangeAuthor{got.Values, got.Request, got.Creation} {
			if len(a.Manager) > maxManager || strings.ContainsAny(a.Manager, "\x1b\n\x00") {
				t.Errorf("%q", a.Manager)
			}
		}
	})
}
