package removal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// newObject returns an object of an Instance in namespace apps.
func newObject(version, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind}}
	o.SetNamespace("apps")
	o.SetName(name)
	return o
}

// newSet returns a StatefulSet with a claim template, and its policy for claims.
func newSet(name, template, policy string) *unstructured.Unstructured {
	set := newObject("apps/v1", "StatefulSet", name)
	set.Object["spec"] = map[string]any{
		"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": policy},
		"volumeClaimTemplates":                 []any{map[string]any{"metadata": map[string]any{"name": template}}},
	}
	return set
}

var (
	config     = kudo.InventoryEntry{Kind: "ConfigMap", Namespace: "apps", Name: "config", Task: "t"}
	app        = kudo.InventoryEntry{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "app", Task: "t"}
	widget     = kudo.InventoryEntry{Group: "example.com", Kind: "Widget", Namespace: "apps", Name: "widget", Task: "t"}
	definition = kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "widgets.example.com", Task: "t"}
	claim      = kudo.InventoryEntry{Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data-db-0"}
	volume     = kudo.InventoryEntry{Kind: "PersistentVolume", Name: "disk", Task: "t"}
)

// situation is a removal with all facts, what happens to objects when they are deleted, and what was done.
type situation struct {
	Observation
	// fates are by the names of objects: "stays", "held" by a finalizer, or "refused"; others are gone at once.
	fates map[string]string
	// failing is the fact that cannot be gathered.
	failing Fact
	lines   []string
}

// newSituation returns the removal of an Instance that has run a plan, and has these objects.
func newSituation(inventory ...kudo.InventoryEntry) *situation {
	s := &situation{fates: map[string]string{}}
	s.Now = noon
	s.Instance = &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "db", Annotations: map[string]string{
			kudo.AnnotationHubDeleted: noon.Add(-time.Minute).Format(time.RFC3339),
		}},
		Status: kudo.InstanceStatus{Execution: &kudo.Execution{Plan: "deploy"}, Inventory: inventory},
	}
	s.Tree.Root.Instance = s.Instance
	return s
}

// newChild returns a descendant with these objects.
func newChild(clean bool, inventory ...kudo.InventoryEntry) plan.Branch {
	return plan.Branch{Clean: clean, Instance: &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "db.child", Annotations: map[string]string{kudo.AnnotationParent: "db"}},
		Status:     kudo.InstanceStatus{Inventory: inventory},
	}}
}

// play decides until the pass ends.
func (s *situation) play(t *testing.T) Decision {
	t.Helper()
	o := Observation{
		Observation: s.Observation.Observation, Inventory: s.Instance.Status.Inventory, Known: map[Fact]bool{}, Masker: s.Masker,
	}
	for range 20 {
		instance, inventory := o.Instance.DeepCopy(), slices.Clone(o.Inventory)
		d := Decide(o)
		if diff := cmp.Diff([]any{instance, inventory}, []any{o.Instance, o.Inventory}); diff != "" {
			t.Fatalf("a decision changes what was observed (-before +after):\n%s", diff)
		}
		switch {
		case d.IsFinal():
			return d
		case d.Kind == Delete:
			s.delete(&o, d)
		case o.Known[d.Need]:
			t.Fatalf("asks for %s, which is known", d.Need)
		default:
			s.gather(&o, d)
		}
	}
	t.Fatalf("it never ends: %v", s.lines)
	return Decision{}
}

// gather adds a fact to an observation.
func (s *situation) gather(o *Observation, d Decision) {
	line := "? " + string(d.Need)
	switch d.Need {
	case FactTree:
		o.Tree = s.Tree
	case FactRendered:
		o.Rendered, o.RenderErr = s.Rendered, s.RenderErr
	case FactSearch:
		o.Search = s.Search
		line += " of " + kindsText(d.Kinds)
	case FactBefore:
		o.BeforeWait = s.BeforeWait
	case FactAfter:
		o.AfterWait = s.AfterWait
	case FactRemaining:
		o.Remaining, line = d.Objects, ""
	}
	if d.Need == s.failing {
		o.Err = errors.New("cannot\nbe read with hunter2")
	}
	if o.Known[d.Need] = true; line != "" {
		s.lines = append(s.lines, line)
	}
}

func kindsText(kinds []schema.GroupKind) string {
	if kinds == nil {
		return "all kinds"
	}
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.Kind)
	}
	return strings.Join(names, ", ")
}

// delete deletes the objects of a decision.
func (s *situation) delete(o *Observation, d Decision) {
	s.lines = append(s.lines, "delete "+entriesText(d.Entries))
	var left []plan.Object
	o.Inventory = d.Inventory
	for _, entry := range d.Entries {
		live := newObject(schema.GroupVersion{Group: entry.Group, Version: "v1"}.String(), entry.Kind, entry.Name)
		switch s.fates[entry.Name] {
		case "":
			o.Inventory = plan.Forget(o.Inventory, entry)
			continue
		case "refused":
			o.Err = errors.New("deletion of " + entry.Name + " refused")
			return
		case "held":
			live.SetFinalizers([]string{"example.com/guard"})
		}
		left = append(left, plan.Object{Want: live, Live: live})
	}
	o.Deleted = append(o.Deleted, left)
}

func entriesText(entries []kudo.InventoryEntry) string {
	var names []string
	for _, entry := range entries {
		name := entry.Name
		if entry.Keep {
			name += " (kept)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// text returns what happens.
func (s *situation) text(t *testing.T) string {
	t.Helper()
	d := s.play(t)
	line := string(d.Kind)
	if d.Kind == Record {
		line += ": " + d.Ready.Message
	}
	if d.Again {
		line += "; again"
	}
	if d.MayDelay {
		line += fmt.Sprintf("; may delay since -%v", noon.Sub(d.Since))
	}
	if d.Unsearched != "" {
		line += "; unsearched: " + d.Unsearched
	}
	if d.Kind == Finish && d.Ready.Reason != kudo.ReasonRemoved || d.Kind == Record && d.Ready.Reason != kudo.ReasonRemoving {
		t.Errorf("%s with reason %s", d.Kind, d.Ready.Reason)
	}
	if inventory := entriesText(d.Status.Inventory); inventory != "" {
		line += "; listed: " + inventory
	}
	return strings.Join(append(s.lines, line), "\n")
}

func TestWhatARemovalDeletesAndAwaits(t *testing.T) {
	found := func(objects ...*unstructured.Unstructured) (search Search) {
		for _, live := range objects {
			search.Found = append(search.Found, plan.Object{Want: live, Live: live})
		}
		return search
	}
	dataClaim := newObject("v1", "PersistentVolumeClaim", "data-db-0")
	deniedKind := schema.GroupKind{Kind: "ConfigMap"}
	for what, test := range map[string]struct {
		inventory []kudo.InventoryEntry
		change    func(*situation)
		want      []string
	}{
		"nothing is left": {nil, func(*situation) {}, []string{
			"? tree", "? rendered objects", "? search of PersistentVolumeClaim", "finish"}},
		"custom resources are deleted first, then definitions, and the rest in the reverse order of application": {
			[]kudo.InventoryEntry{definition, config, app, widget}, func(*situation) {}, []string{
				"? tree", "delete widget", "delete widgets.example.com", "delete app", "delete config", "? rendered objects",
				"? search of PersistentVolumeClaim, CustomResourceDefinition, ConfigMap, Deployment, Widget", "finish"}},
		"objects of one kind are deleted together": {
			[]kudo.InventoryEntry{config, {Kind: "ConfigMap", Namespace: "apps", Name: "more"}}, func(s *situation) { s.fates["more"] = "stays" },
			[]string{"? tree", "delete more, config", "record: ConfigMap apps/more: is being deleted; may delay since -1m0s; listed: more"}},
		"everything waits for a held custom resource": {
			[]kudo.InventoryEntry{definition, app, widget}, func(s *situation) { s.fates["widget"] = "held" }, []string{
				"? tree", "delete widget",
				"record: Widget apps/widget: is being deleted, held by finalizer example.com/guard; may delay since -1m0s; " +
					"listed: widgets.example.com, app, widget"}},
		"nothing waits for a custom resource without finalizers, except for the claims": {
			[]kudo.InventoryEntry{definition, app, widget, claim}, func(s *situation) { s.fates["widget"] = "stays" }, []string{
				"? tree", "delete widget", "delete widgets.example.com", "delete app",
				"record: Widget apps/widget: is being deleted; may delay since -1m0s; listed: widget, data-db-0"}},
		"the next wave waits for a held object": {
			[]kudo.InventoryEntry{config, app}, func(s *situation) { s.fates["app"] = "held" }, []string{
				"? tree", "delete app",
				"record: Deployment apps/app: is being deleted, held by finalizer example.com/guard; may delay since -1m0s; listed: config, app"}},
		"several objects are counted": {
			[]kudo.InventoryEntry{config, app}, func(s *situation) { s.fates["app"], s.fates["config"] = "stays", "held" }, []string{
				"? tree", "delete app", "delete config",
				"record: waiting for 2 objects to be deleted: ConfigMap apps/config: is being deleted, held by finalizer example.com/guard; " +
					"may delay since -1m0s; listed: config, app"}},
		"nothing is deleted before the cleanup plan of a descendant with custom resources": {
			[]kudo.InventoryEntry{definition, app}, func(s *situation) { s.Tree.Descendants = []plan.Branch{newChild(false, widget)} }, []string{
				"? tree",
				`record: Instance apps/db.child: its plan "cleanup" runs first; may delay since -1m0s; listed: widgets.example.com, app`}},
		"a descendant's cleanup plan is not awaited if the removal skips it": {
			[]kudo.InventoryEntry{definition, app}, func(s *situation) {
				s.Tree.Descendants = []plan.Branch{newChild(false, widget)}
				s.Instance.Annotations[kudo.AnnotationSkipCleanup] = "true"
			}, []string{
				"? tree", "delete widgets.example.com",
				`record: Instance apps/db.child: its custom resources are deleted first; may delay since -1m0s; listed: app`}},
		"only custom resources are deleted before those of descendants": {
			[]kudo.InventoryEntry{definition, app}, func(s *situation) {
				s.Tree.Descendants = []plan.Branch{newChild(true, widget)}
				s.fates[definition.Name] = "stays"
			}, []string{
				"? tree", "delete widgets.example.com",
				"record: CustomResourceDefinition apps/widgets.example.com: is being deleted; " +
					`Instance apps/db.child: its custom resources are deleted first; may delay since -1m0s; listed: widgets.example.com, app`}},
		"a resource of a group that only a descendant defines is a custom one": {
			[]kudo.InventoryEntry{widget, app}, func(s *situation) { s.Tree.Descendants = []plan.Branch{newChild(true, definition)} }, []string{
				"? tree", "delete widget",
				`record: Instance apps/db.child: its custom resources are deleted first; may delay since -1m0s; listed: app`}},
		"workloads of descendants are not awaited": {
			[]kudo.InventoryEntry{app}, func(s *situation) { s.Tree.Descendants = []plan.Branch{newChild(true, config)} }, []string{
				"? tree", "delete app", "? rendered objects", "? search of PersistentVolumeClaim, Deployment", "finish"}},
		"claims and volumes are deleted last": {
			[]kudo.InventoryEntry{claim, volume, app}, func(s *situation) { s.fates["data-db-0"] = "held" }, []string{
				"? tree", "delete app", "? rendered objects", "delete data-db-0, disk",
				"record: PersistentVolumeClaim apps/data-db-0: is being deleted, held by finalizer example.com/guard; may delay since -1m0s; " +
					"listed: data-db-0"}},
		"claims that the package retains are forgotten": {
			[]kudo.InventoryEntry{claim, {Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "log-db-0"}},
			func(s *situation) {
				s.Rendered = []*unstructured.Unstructured{newSet("db", "data", "Retain"), newSet("db", "log", "Delete")}
			},
			[]string{
				"? tree", "? rendered objects", "delete log-db-0", "? search of PersistentVolumeClaim, PersistentVolumeClaim, PersistentVolumeClaim, StatefulSet, StatefulSet",
				"finish"}},
		"a retained claim that a task has applied is released": {
			[]kudo.InventoryEntry{{Kind: "PersistentVolumeClaim", Namespace: "apps", Name: "data-db-0", Task: "t"}},
			func(s *situation) { s.Rendered = []*unstructured.Unstructured{newSet("db", "data", "Retain")} }, []string{
				"? tree", "? rendered objects", "delete data-db-0 (kept)", "? search of PersistentVolumeClaim, PersistentVolumeClaim, StatefulSet", "finish"}},
		"all claims are retained if the package cannot be rendered": {
			[]kudo.InventoryEntry{claim}, func(s *situation) { s.RenderErr, s.Search = errors.New("broken"), found(dataClaim) }, []string{
				"? tree", "? rendered objects", "delete ", "? search of all kinds", "finish"}},
		"what the search finds is listed, and deleted in the next pass": {
			nil, func(s *situation) { s.Search = found(newObject("v1", "ConfigMap", "lost"), dataClaim) }, []string{
				"? tree", "? rendered objects", "? search of PersistentVolumeClaim",
				"record: waiting for 2 objects to be deleted: ConfigMap apps/lost: is being deleted; again; listed: lost, data-db-0"}},
		"found claims that the package retains stay": {
			nil, func(s *situation) {
				s.Search, s.Rendered = found(dataClaim), []*unstructured.Unstructured{newSet("db", "data", "Retain")}
			}, []string{"? tree", "? rendered objects", "? search of PersistentVolumeClaim, StatefulSet", "finish"}},
		"kinds that the version renders are searched": {
			nil, func(s *situation) {
				s.Rendered = []*unstructured.Unstructured{newObject("example.com/v1", "Widget", "w")}
			}, []string{
				"? tree", "? rendered objects", "? search of PersistentVolumeClaim, Widget", "finish"}},
		"all kinds are searched after the inventory was restored": {
			nil, func(s *situation) { s.Instance.Annotations[kudo.AnnotationInventoryRestored] = "true" }, []string{
				"? tree", "? rendered objects", "? search of all kinds", "finish"}},
		"all kinds are searched after the inventory was restored without an execution": {
			nil, func(s *situation) {
				s.Instance.Annotations[kudo.AnnotationInventoryRestored], s.Instance.Status.Execution = "true", nil
				s.Search = found(newObject("v1", "ConfigMap", "lost"))
			}, []string{
				"? tree", "? rendered objects", "? search of all kinds",
				"record: ConfigMap apps/lost: is being deleted; again; listed: lost"}},
		"an Instance that never had objects is not rendered": {
			nil, func(s *situation) { s.Instance.Status.Execution, s.RenderErr = nil, errors.New("broken") }, []string{
				"? tree", "? search of PersistentVolumeClaim", "finish"}},
		"an Instance that never had objects is rendered if it has claims": {
			nil, func(s *situation) { s.Instance.Status.Execution, s.Search = nil, found(dataClaim) }, []string{
				"? tree", "? search of PersistentVolumeClaim", "? rendered objects",
				"record: PersistentVolumeClaim apps/data-db-0: is being deleted; again; listed: data-db-0"}},
		"nothing is recorded while a search runs": {
			nil, func(s *situation) { s.Search.Running = true }, []string{
				"? tree", "? rendered objects", "? search of PersistentVolumeClaim", "postpone"}},
		"a required kind that cannot be searched stays listed": {
			[]kudo.InventoryEntry{config}, func(s *situation) {
				s.Search = found(dataClaim)
				s.Search.Reads.Kinds = map[schema.GroupKind]error{deniedKind: errors.New("listing ConfigMap: denied")}
			}, []string{
				"? tree", "delete config", "? rendered objects", "? search of PersistentVolumeClaim, ConfigMap",
				"record: listing ConfigMap: denied; again; listed: data-db-0, config"}},
		"another kind that cannot be searched is reported": {
			nil, func(s *situation) {
				s.Search.Reads.Kinds = map[schema.GroupKind]error{deniedKind: errors.New("listing ConfigMap: denied")}
			}, []string{
				"? tree", "? rendered objects", "? search of PersistentVolumeClaim", "finish; unsearched: listing ConfigMap: denied"}},
		"an error of the tree": {
			[]kudo.InventoryEntry{app}, func(s *situation) { s.failing = FactTree }, []string{
				"? tree", "record: cannot be read with *****; listed: app"}},
		"an error of the search": {
			nil, func(s *situation) { s.failing = FactSearch }, []string{
				"? tree", "? rendered objects", "? search of PersistentVolumeClaim", "record: cannot be read with *****"}},
		"an error of a deletion ends the pass": {
			[]kudo.InventoryEntry{config, app}, func(s *situation) { s.fates["app"] = "refused" }, []string{
				"? tree", "delete app", "record: deletion of app refused; listed: config, app"}},
		"an error of a deletion after others": {
			[]kudo.InventoryEntry{config, app}, func(s *situation) { s.fates["config"] = "refused" }, []string{
				"? tree", "delete app", "delete config", "record: deletion of config refused; listed: config"}},
		"an error of the deletion of claims": {
			[]kudo.InventoryEntry{claim, app}, func(s *situation) { s.fates["data-db-0"] = "refused" }, []string{
				"? tree", "delete app", "? rendered objects", "delete data-db-0", "record: deletion of data-db-0 refused; listed: data-db-0"}},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSituation(test.inventory...)
			s.Masker = sensitive.NewMasker(sensitive.Values{"k": "hunter2"})
			test.change(s)
			if diff := cmp.Diff(strings.Join(test.want, "\n"), s.text(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatADescendantDeletesDuringTheRemovalOfAnAncestor(t *testing.T) {
	for what, test := range map[string]struct {
		stage  plan.Stage
		change func(*situation)
		want   []string
	}{
		"nothing while it is held": {plan.StageHold, func(*situation) {}, []string{
			`record: waiting for Instance "top" to be removed; may delay since -1h0m0s; listed: widgets.example.com, app, widget, data-db-0`}},
		"nothing after its cleanup plan, while others run": {plan.StageCleanup, func(*situation) {}, []string{
			`record: waiting for Instance "top" to be removed; may delay since -1h0m0s; listed: widgets.example.com, app, widget, data-db-0`}},
		"its custom resources and their definitions": {plan.StageWithdraw, func(*situation) {}, []string{
			"delete widget", "delete widgets.example.com",
			`record: waiting for Instance "top" to be removed; again; listed: app, data-db-0`}},
		"no definition while a custom resource is held": {plan.StageWithdraw, func(s *situation) { s.fates["widget"] = "held" }, []string{
			"delete widget",
			"record: Widget apps/widget: is being deleted, held by finalizer example.com/guard; listed: widgets.example.com, app, widget, data-db-0"}},
		"nothing more after an error": {plan.StageWithdraw, func(s *situation) { s.fates["widget"] = "refused" }, []string{
			"delete widget", "record: deletion of widget refused; listed: widgets.example.com, app, widget, data-db-0"}},
		"custom resources of groups that its tree defines": {plan.StageWithdraw, func(s *situation) {
			s.Instance.Status.Inventory = []kudo.InventoryEntry{app, widget}
			s.Departure.Groups = plan.Groups{"example.com": true}
		}, []string{"delete widget", `record: waiting for Instance "top" to be removed; again; listed: app`}},
		"nothing without custom resources": {plan.StageWithdraw, func(s *situation) {
			s.Instance.Status.Inventory = []kudo.InventoryEntry{app}
		}, []string{`record: waiting for Instance "top" to be removed; may delay since -1h0m0s; listed: app`}},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSituation(definition, app, widget, claim)
			s.Departure = plan.Departure{Ancestor: "top", Since: noon.Add(-time.Hour), Stage: test.stage}
			test.change(s)
			if diff := cmp.Diff(strings.Join(test.want, "\n"), s.text(t)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestARemovalRendersWhatWasStarted(t *testing.T) {
	running, desired := &kudo.OperatorVersionSpec{Version: "1"}, &kudo.OperatorVersionSpec{Version: "2"}
	o := plan.Observation{Instance: newSituation().Instance, Running: running, Desired: desired}
	o.Instance.Spec.Parameters = map[string]string{"A": "1"}
	if x, version := ExecutionOf(o); x != o.Instance.Status.Execution || version != running {
		t.Errorf("got %v, %v", x, version)
	}
	o.Instance.Status.Execution = nil
	if x, version := ExecutionOf(o); x.Parameters["A"] != "1" || version != desired {
		t.Errorf("nothing was started: got %v, %v", x, version)
	}
}

func TestHooksOfCharts(t *testing.T) {
	hook := kudo.InventoryEntry{Group: "batch", Kind: "Job", Namespace: "apps", Name: "gone", Task: "t", Hook: true}
	of := func(inventory ...kudo.InventoryEntry) *situation {
		s := newSituation(inventory...)
		s.Instance.Status.Tasks = []kudo.TaskRecord{{Task: "t", Digest: "sha256:1"}}
		return s
	}
	before := of(config, hook)
	before.BeforeWait = "hook pre-delete runs"
	running := of(hook)
	running.AfterWait = "hook post-delete runs"
	running.Search.Found = []plan.Object{{Live: newObject("batch/v1", "Job", "gone")}}
	ended := of(hook)
	dropped := newSituation(hook)
	for name, test := range map[string]struct {
		situation *situation
		lines     []string
		kind      Kind
		message   string
		again     bool
	}{
		"nothing is deleted before the hooks before have succeeded": {before, []string{"? tree", "? hooks before the deletion"}, Record, "hook pre-delete runs", false},
		"hooks are not deleted with the other objects": {of(config, hook), []string{"? tree", "? hooks before the deletion", "delete config", "? rendered objects",
			"? search of PersistentVolumeClaim, ConfigMap, Job", "? hooks after the deletion"}, Record, "", true},
		"nor while the hooks after run, although a search finds them": {running, []string{"? tree", "? hooks before the deletion", "? rendered objects",
			"? search of PersistentVolumeClaim, Job", "? hooks after the deletion"}, Record, "hook post-delete runs", false},
		"the removal goes on once they have succeeded": {ended, []string{"? tree", "? hooks before the deletion", "? rendered objects",
			"? search of PersistentVolumeClaim, Job", "? hooks after the deletion"}, Record, "", true},
		"they are deleted once nothing is recorded of the charts": {dropped, []string{"? tree", "delete gone", "? rendered objects",
			"? search of PersistentVolumeClaim, Job"}, Finish, plan.NothingLeft, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := test.situation.play(t)
			if diff := cmp.Diff(test.lines, test.situation.lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Kind != test.kind || d.Again != test.again || !strings.Contains(d.Ready.Message, test.message) {
				t.Errorf("got %s, again %v, %q", d.Kind, d.Again, d.Ready.Message)
			}
		})
	}
}
