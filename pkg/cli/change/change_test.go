package change

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/test/sample"
)

// changesAcross returns changes of Instances of one operator: two clusters with identical changes, one with an installation, and two
// refusals.
func changesAcross() ([]change.Change, change.Refusals) {
	version := sample.ViewOf("deploy", kudo.Complete).Version
	version.Spec.Templates = map[string]string{
		"pod.yaml":     "apiVersion: v1\nkind: Pod\n",
		"brokers.yaml": "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: brokers}\nspec: {replicas: {{ .Params.BROKERS }}}\n",
		"secret.yaml":  "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {key: \"{{ .Params.SIZE }}\", same: a, 'b{{ .Params.SIZE }}': c}\n",
	}
	tasks := []string{"brokers", "key", "extra", "files", "child", "wrong"}
	version.Spec.Tasks = []kudo.Task{
		{Name: "brokers", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"brokers.yaml"}}}},
		{Name: "key", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"secret.yaml"}}}},
		{Name: "extra", Kind: kudo.TaskToggle, Spec: kudo.TaskSpec{ToggleTaskSpec: kudo.ToggleTaskSpec{Parameter: "EXTRA"}}},
		{Name: "files", Kind: kudo.TaskPipe, Spec: kudo.TaskSpec{PipeTaskSpec: kudo.PipeTaskSpec{Pod: "pod.yaml", Pipe: []kudo.PipeSpec{{File: "/tmp/a", Kind: "ConfigMap", Key: "a"}}}}},
		{Name: "child", Kind: kudo.TaskKudoOperator, Spec: kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{Package: "zookeeper"}}},
		{Name: "wrong", Kind: kudo.TaskDummy, Spec: kudo.TaskSpec{DummyTaskSpec: kudo.DummyTaskSpec{WantErr: true, Fatal: true}}},
	}
	off := "false"
	version.Spec.Parameters = append(version.Spec.Parameters, kudo.Parameter{Name: "EXTRA", Default: &off, Type: kudo.BooleanType})
	all := kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "all", Tasks: tasks}}}}}
	version.Spec.Plans = map[string]kudo.Plan{"deploy": all, "backup": all}
	child := kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{Plans: map[string]kudo.Plan{"deploy": {}}}}
	child.Name, child.Namespace, child.Spec.Operator.Name = "zookeeper-1.0.0", version.Namespace, "zookeeper"

	of := func(cluster string, before bool) change.Change {
		c := change.Change{Cluster: cluster, Change: preview.Change{Version: version, Candidates: []kudo.OperatorVersion{child}}}
		c.After = sample.Instance()
		c.After.Namespace = cluster
		if before {
			c.Before = sample.ViewOf("deploy", kudo.Complete).Instance
			c.Before.Namespace, c.Started = cluster, version
			c.Before.Status.Inventory = []kudo.InventoryEntry{
				{Group: "apps", Kind: "StatefulSet", Namespace: cluster, Name: "brokers", Task: "brokers"},
				{Kind: "Secret", Namespace: cluster, Name: "key", Task: "key"},
			}
			c.After.Spec.Parameters = map[string]string{"BROKERS": "5", "SIZE": "2"}
		}
		return c
	}
	changes := []change.Change{of("cluster1", true), of("cluster2", false), of("cluster3", true)}
	changes[1].Warnings = []string{"the Instance cannot run yet: it is too early"}
	return changes, change.Refusals{
		"cluster4": errors.New(`Instance cluster4/kafka: parameter "BROKERS": must be an integer`),
		"cluster5": errors.New(`Instance cluster5/kafka: parameter "BROKERS": must be an integer`),
		"cluster6": errors.New(`cluster cluster6: Instance "kafka" cannot run: PackageNotFound: OperatorVersion kafka/kafka-4.0.0 does not exist`),
	}
}

func TestDryRun(t *testing.T) {
	data := change.DryRunOf(changesAcross())
	clitest.Golden(t, "change", dryRunText(data, false))
	clitest.Golden(t, "change-wide", dryRunText(data, true))
	clitest.Golden(t, "change-data", clitest.Render(t, "yaml", terminal.Shown{Data: data}))
}

func TestDryRunFailsWhereAChangeWould(t *testing.T) {
	changes, refused := changesAcross()
	o := terminal.NewOutput()
	for name, test := range map[string]struct {
		changes []change.Change
		refused change.Refusals
		want    string
	}{
		"on clusters that refuse it, and where a task fails": {changes, refused, "the change would fail on 6 clusters (cluster1, cluster2, cluster3, …); nothing was written"},
		"nowhere": {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, clitest.ErrorText(showChanges(clitest.StreamsOf(""), o, test.changes, test.refused))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangesThatWouldFailAreNotWritten(t *testing.T) {
	all, _ := changesAcross()
	decide := func(_ context.Context, _ *change.State, cluster string) (change.Change, error) {
		chosen := all[slices.IndexFunc(all, func(c change.Change) bool { return c.Cluster == cluster })]
		if cluster == "cluster2" { // without the task that fails
			chosen.Version = chosen.Version.DeepCopy()
			chosen.Version.Spec.Plans["deploy"] = kudo.Plan{}
		}
		return chosen, nil
	}
	for name, test := range map[string]struct {
		options changeOptions
		changed []string
		refused []string
	}{
		"where a plan would fail":    {changed: []string{"cluster2"}, refused: []string{"cluster1", "cluster3"}},
		"unless it is forced":        {options: changeOptions{refusalFlags: refusalFlags{force: true}}, changed: []string{"cluster1", "cluster2", "cluster3"}},
		"but are shown by --dry-run": {options: changeOptions{dryRunFlags: dryRunFlags{dryRun: true}}, changed: []string{"cluster1", "cluster2", "cluster3"}},
	} {
		t.Run(name, func(t *testing.T) {
			changes, refused, err := test.options.changes(t.Context(), nil, []string{"cluster1", "cluster2", "cluster3"}, decide)
			if err != nil {
				t.Fatal(err)
			}
			var changed []string
			for _, c := range changes {
				changed = append(changed, c.Cluster)
			}
			if diff := cmp.Diff(test.changed, changed); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.refused, slices.Sorted(maps.Keys(refused))); diff != "" {
				t.Error(diff)
			}
			for cluster, err := range refused {
				want := "cluster " + cluster + `: a plan of Instance "kafka" would fail: task "wrong": the Dummy task is configured to fail permanently; ` +
					"fix the cause, or use --force to make the change anyway"
				if diff := cmp.Diff(want, err.Error()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestWarningsOfTasksAreShown(t *testing.T) {
	all, _ := changesAcross()
	shown := all[1]
	shown.Version.Spec.Tasks[5].Spec.DummyTaskSpec = kudo.DummyTaskSpec{}
	if diff := cmp.Diff("  plan deploy runs: no plan has run yet\n  warning: task \"wrong\": the Dummy task is configured to wait\n", comingText(&shown)); diff != "" {
		t.Error(diff)
	}
	shown.Before = shown.After.DeepCopy()
	shown.Before.Spec.SuspendedBy = `ClusterManagementAddOn kafka ("incident")`
	if got, want := comingText(&shown), "\n  it waits: the Instance is suspended by ClusterManagementAddOn kafka (\"incident\")\n"; !strings.Contains(got, want) {
		t.Errorf("got %q, want the suspension", got)
	}
	var b strings.Builder
	writeChange(&b, shown.Data(), false)
	if !strings.Contains(b.String(), "task wrong (Dummy)\n      warning: the Dummy task is configured to wait\n") {
		t.Errorf("got %s", b.String())
	}
	if err := shown.Validate(); err != nil {
		t.Error(err)
	}
}

func TestParametersOfClusters(t *testing.T) {
	for name, test := range map[string]struct {
		texts, unset []string
		want         map[string]string
		err          string
	}{
		"parameters of all clusters":                {texts: []string{"A=1"}, want: map[string]string{"OLD": "0", "A": "1"}},
		"parameters of the cluster take precedence": {texts: []string{"A=1", "cluster1/A=2", "cluster2/A=3"}, want: map[string]string{"OLD": "0", "A": "2"}},
		"a value with a slash":                      {texts: []string{"A=a/b=c"}, want: map[string]string{"OLD": "0", "A": "a/b=c"}},
		"unset parameters are removed":              {unset: []string{"OLD"}, want: map[string]string{}},
		"no name for a cluster":                     {texts: []string{"cluster1/=2"}, err: "invalid argument \"cluster1/\" for \"--parameter\" flag: must be NAME=VALUE or CLUSTER/NAME=VALUE\nSee 'update --help' for usage."},
		"set and unset":                             {texts: []string{"A=1"}, unset: []string{"A"}, err: "parameter A cannot be both set and unset\nSee 'update --help' for usage."},
		"a cluster that is not selected":            {texts: []string{"cluster/A=1"}, err: "parameters are given for cluster cluster, which is not selected (did you mean cluster1?)"},
	} {
		t.Run(name, func(t *testing.T) {
			given := givenParameters{texts: test.texts, unset: test.unset}
			err := given.parse(NewCmdUpdate(clitest.Factory(""), nil))
			if err == nil {
				err = given.elsewhere([]string{"cluster1", "cluster2"})
			}
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(test.want, change.WithChanges(map[string]string{"OLD": "0"}, given.of("cluster1"), given.unset)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatDiffersInItsVersionAloneIsCounted(t *testing.T) {
	objects := []preview.ObjectData{
		{Kind: "ConfigMap", Namespace: "data", Name: "settings", Effect: preview.Annotated},
		{Kind: "StatefulSet", Namespace: "data", Name: "brokers", Effect: preview.Restarted},
		{Kind: "Service", Namespace: "data", Name: "brokers", Effect: preview.Annotated},
	}
	for name, test := range map[string]struct {
		wide bool
		want string
	}{
		"unless all objects are shown": {wide: true,
			want: "annotate   ConfigMap data/settings\nrestart    StatefulSet data/brokers\nannotate   Service data/brokers\n"},
		"below the others": {
			want: "restart    StatefulSet data/brokers\nannotate   2 objects: only the version in an annotation changes\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			writeObjects(&b, "", objects, test.wide)
			if diff := cmp.Diff(test.want, b.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDryRunListsRemovalsOfChild(t *testing.T) {
	gone := preview.Data{Children: []preview.ChildData{{Instance: "kafka.zookeeper", Effect: preview.Removed, Data: &preview.Data{
		Plans:   []preview.PlanData{{Plan: "cleanup", Cause: plan.RemovalRequested, Tasks: []preview.TaskData{{Task: "drain", Problem: "no template"}}}},
		Removed: []preview.ObjectData{{Kind: "Service", Namespace: "data", Name: "zookeeper", Effect: preview.Removed}},
	}}}}
	var b strings.Builder
	writeComing(&b, gone, "", false)
	if text := b.String(); !strings.Contains(text, "remove     Instance kafka.zookeeper\n  plan cleanup runs") || !strings.HasSuffix(text, "\n  remove     Service data/zookeeper\n") {
		t.Errorf("got %q", text)
	}
	if diff := cmp.Diff(`task "drain": no template`, clitest.ErrorText(gone.Err())); diff != "" {
		t.Error(diff)
	}
}

func TestAtOnceReportsInOrder(t *testing.T) {
	const count = 3 * writesAtOnce
	last := make(chan struct{})
	var printed []int
	atOnce(count, func(i int) {
		switch i {
		case writesAtOnce - 1:
			close(last)
		case 0:
			<-last // the first one completes after others that started with it
		}
	}, func(i int) { printed = append(printed, i) })
	for i := range count {
		if i >= len(printed) || printed[i] != i {
			t.Fatalf("got %v", printed)
		}
	}
}

// An update that stops rendering a definition says what that deletes.
func TestUpdateNamesWhatPruningDeletes(t *testing.T) {
	before, version := sample.Instance(), sample.Version()
	version.Name, version.Namespace, version.UID = "kafka-2.0.0", "addon-packages", "2"
	before.Status.Execution = &kudo.Execution{Plan: "deploy", UID: "1", OperatorVersion: corev1.ObjectReference{Name: "kafka-1.0.0", UID: "1"}}
	before.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {UID: "1", Status: kudo.Complete}}
	definition := kudo.InventoryEntry{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "topics.example.com", Task: "gone"}
	kept := kudo.InventoryEntry{Kind: "Secret", Namespace: "kafka", Name: "key", Task: "gone", Keep: true}
	before.Status.Inventory = []kudo.InventoryEntry{definition, kept}
	after := before.DeepCopy()
	after.Spec.OperatorVersion.Name = version.Name
	got := comingText(&change.Change{Change: preview.Change{Before: before, After: after, Version: version}})
	const want = "  plan deploy runs: change of OperatorVersion\n" +
		"  at the end: remove CustomResourceDefinition topics.example.com: with every object of its kind on the cluster, including those that users have created, " +
		"which the hub does not know; Instances have 0 objects of API group example.com\n" +
		"  at the end: keep Secret kafka/key: the package keeps it\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
