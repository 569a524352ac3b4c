package change

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestEnableWaitsUntilItIsAvailable(t *testing.T) {
	resolvedAt := func(generation int64) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Generation = generation
			c := sample.Condition(addonv1alpha1.ConditionResolved, "True", "Resolved", "")
			c.ObservedGeneration = 1
			a.Status.Conditions = append(a.Status.Conditions, c)
		}
	}
	for name, test := range map[string]struct {
		view    sample.Cluster
		change  func(*addonv1alpha1.ManagedClusterAddOn)
		current *addonv1alpha1.ManagedClusterAddOn
		Find    *progress.View
		given   map[string]string
		settled bool
		err     string
		tree    string
		message string
	}{
		"one that is not plan-based and is available": {
			view: sample.NewCluster("kafka:").With("kafka", sample.Works), settled: true, tree: "kafka on cluster1: available"},
		"one that lacked a required add-on, which the hub still reports": {view: sample.NewCluster("kafka:").With("kafka", sample.Works,
			sample.Condition(addonv1alpha1.ConditionDegraded, "True", addonv1alpha1.ReasonRequiredDependencyNotSatisfied, "requires zookeeper")),
			tree: "kafka on cluster1: Available True (PlanComplete)"},
		"one that is degraded": {view: sample.NewCluster("kafka:").With("kafka", sample.Works,
			sample.Condition(addonv1alpha1.ConditionDegraded, "True", "Slow", "is slow")), settled: true, tree: "kafka on cluster1: available"},
		"one that is being updated": {view: sample.NewCluster("kafka:").With("kafka", sample.Updates), change: resolvedAt(1),
			Find: new(sample.ViewOf("deploy", kudo.Complete)), tree: `kafka on cluster1: Available True (Updating): plan "upgrade" is running`},
		"one that is not available yet": {view: sample.NewCluster("kafka:").With("kafka", sample.Fails),
			tree: "kafka on cluster1: Available False (PlanFailed): plan deploy: Deployment kafka/kafka: image not found."},
		"one that reports nothing yet": {view: sample.NewCluster("kafka:").With("kafka"), tree: "kafka on cluster1: Available Unknown: not reported yet"},
		"one that waits for others": {view: sample.NewCluster("kafka:").With("kafka", sample.Held),
			tree: "kafka on cluster1: False (WaitingForDependencies): waits for zookeeper"},
		"one whose configuration is wrong": {view: sample.NewCluster("kafka:").With("kafka", sample.BadConfig), settled: true,
			err: `add-on kafka on cluster cluster1 cannot run: ConfigurationInvalid: variable "X" is not defined`},
		"one whose configuration was wrong, which the hub still reports": {view: sample.NewCluster("kafka:").With("kafka", sample.BadConfig),
			current: sample.NewCluster("kafka:").With("kafka", sample.BadConfig).AddOns["kafka"],
			tree:    `kafka on cluster1: False (ConfigurationInvalid): variable "X" is not defined`},
		"one whose configuration is wrong in another way": {view: sample.NewCluster("kafka:").With("kafka", sample.BadConfig), settled: true,
			current: sample.NewCluster("kafka:").With("kafka", sample.Condition("Resolved", "False", "ConfigurationInvalid", "")).AddOns["kafka"],
			err:     `add-on kafka on cluster cluster1 cannot run: ConfigurationInvalid: variable "X" is not defined`},
		"one whose plans are complete": {view: sample.NewCluster("kafka:").With("kafka", sample.Works), change: resolvedAt(1),
			Find: new(sample.ViewOf("deploy", kudo.Complete)), settled: true, tree: "kafka on cluster1: available",
			message: "kafka on cluster1: plan \"deploy\": COMPLETE: no more disks\nkafka on cluster1: available\n"},
		"one that the hub has not processed yet": {view: sample.NewCluster("kafka:").With("kafka", sample.Works), change: resolvedAt(2),
			Find: new(sample.ViewOf("deploy", kudo.Complete)), tree: "kafka on cluster1: Available True (PlanComplete)"},
		"one whose plan runs": {view: sample.NewCluster("kafka:").With("kafka", sample.Works), change: resolvedAt(1),
			Find: new(sample.ViewOf("deploy", kudo.InProgress)), tree: "kafka on cluster1: Plan deploy (serial strategy) [IN_PROGRESS]: no more disks"},
		"one whose plan has failed": {view: sample.NewCluster("kafka:").With("kafka", sample.Works), change: resolvedAt(1),
			Find: new(sample.ViewOf("deploy", kudo.FatalError)), settled: true,
			err: `plan "deploy" of Instance kafka on cluster cluster1 failed: no more disks; see 'kubectl addon plan status kafka --cluster cluster1', ` +
				`fix the cause, and run the plan again: 'kubectl addon plan run kafka deploy --cluster cluster1'`},
		"one whose Instance does not have its parameters yet": {view: sample.NewCluster("kafka:").With("kafka", sample.Works), change: resolvedAt(1),
			Find: new(sample.ViewOf("deploy", kudo.FatalError)), given: map[string]string{"SIZE": "2"},
			tree: "kafka on cluster1: Plan deploy (serial strategy) [FATAL_ERROR]: no more disks"},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := test.view.AddOns["kafka"]
			if test.change != nil {
				test.change(addOn)
			}
			got := &target{Step: change.Step{Current: test.current, Wanted: addOn, Parameters: test.given}}
			got.judge(addOn, test.Find)
			if diff := cmp.Diff(test.err, clitest.ErrorText(got.problem)); diff != "" {
				t.Error(diff)
			}
			if got.settled != test.settled {
				t.Errorf("settled is %v", got.settled)
			}
			if test.err == "" {
				if diff := cmp.Diff(test.tree, got.trees[len(got.trees)-1].Text); diff != "" {
					t.Error(diff)
				}
			}
			var out bytes.Buffer
			progress := terminal.NewProgress(&out)
			if err := errors.Join(progress.Show(), progress.Show(got.trees...)); err != nil {
				t.Fatal(err)
			}
			if news := out.String(); test.message != "" && !strings.HasSuffix(news, test.message) {
				t.Errorf("got %q", news)
			}
		})
	}
}

func TestEnablePrintsWhatItWaitsFor(t *testing.T) {
	leaving := func(cluster string) installed {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka"}}
		return installed{ObjectKey: client.ObjectKeyFromObject(addOn), AddOn: addOn}
	}
	const removal = "the removal of managedclusteraddon.addon.open-cluster-management.io/kafka%s is still in progress after 3s: Removing " +
		"(see 'kubectl addon uninstall --help' for --release)"
	pending := &target{trees: []terminal.Node{{Text: "kafka on c3: Available Unknown (ProbeUnavailable): its lease is unknown."}}}
	pending.Wanted = leaving("c3").AddOn
	const unavailable = "add-ons are still not available after 3s: kafka on c3: Available Unknown (ProbeUnavailable): its lease is unknown; " +
		"see 'kubectl addon why kafka --cluster c3'"
	for name, test := range map[string]struct {
		going   []installed
		targets []*target
		want    string
	}{
		"a removal": {
			going: []installed{leaving("c1")}, want: `add-on "kafka" is not enabled on cluster c1: ` + fmt.Sprintf(removal, "")},
		"removals on several clusters": {
			going: []installed{leaving("c1"), leaving("c2")},
			want:  `add-on "kafka" is not enabled on 2 clusters (c1, c2): ` + fmt.Sprintf(removal, " on 2 clusters (c1, c2)")},
		"one that is not available": {targets: []*target{pending, {settled: true}}, want: unavailable},
		"a removal, and one that is not available elsewhere": {
			going: []installed{leaving("c1")}, targets: []*target{pending},
			want: `add-on "kafka" is not enabled on cluster c1: ` + fmt.Sprintf(removal, "") + "\n" + unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := enableWait{goneWait: goneWait{going: test.going, waiting: "Removing"}, addOn: "kafka", targets: test.targets}
			if diff := cmp.Diff(test.want, clitest.ErrorText(w.timeoutError(" after 3s"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnableShowsADryRun(t *testing.T) {
	all, _ := changesAcross()
	of := func(i int, addOn string) change.Change {
		c := all[i]
		c.Warnings, c.Remarks = nil, []string{"the add-on stays"}
		c.Step = &change.Step{Wanted: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: c.Cluster, Name: addOn}}}
		return c
	}
	graphs := func(cluster, unknown string) change.Change {
		c := of(0, "graphs")
		c.Cluster, c.Change, c.Remarks, c.Unknown = cluster, preview.Change{}, nil, unknown
		return c
	}
	removed := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka"}}
	kafka := of(1, "kafka")
	forbidden := func(cluster string) change.Change {
		return graphs(cluster, "reading Instance "+cluster+"/graphs: forbidden")
	}
	streams := clitest.StreamsOf("")
	o := &EnableOptions{Factory: &hubclient.Factory{IOStreams: streams}, dryRunFlags: dryRunFlags{dryRun: true, output: terminal.NewOutput()}}
	err := o.preview([]enabling{
		{cluster: "cluster2", removals: []*addonv1alpha1.ManagedClusterAddOn{removed}, EnableResult: change.EnableResult{
			Changes: []change.Change{graphs("cluster2", ""), kafka}, Waiting: "kafka is waiting for required add-ons: Required zookeeper (NotInstalled)",
			Remarks: []string{"kafka: the add-on stays"},
		}},
		{cluster: "cluster4", EnableResult: change.EnableResult{Changes: []change.Change{forbidden("cluster4")}}},
		{cluster: "cluster5", EnableResult: change.EnableResult{Changes: []change.Change{forbidden("cluster5")}}},
		{cluster: "cluster6", refused: errors.New("OCM enables it"), EnableResult: change.EnableResult{Remarks: []string{"kafka: ignored"}}},
	})
	if diff := cmp.Diff("the change would fail on 2 clusters (cluster2, cluster6); nothing was written", clitest.ErrorText(err)); diff != "" {
		t.Error(diff)
	}
	clitest.Golden(t, "enable-dry-run", streams.Out.(*bytes.Buffer).String())
}

func TestDisableAsks(t *testing.T) {
	kafka := dependency.Dependent{Name: "kafka", Type: addonv1alpha1.DependencyTypeRequired}
	graphs := dependency.Dependent{Name: "graphs", Type: addonv1alpha1.DependencyTypeOptional}
	reenabled := change.CheckNotPlaced(sample.NewCluster("zookeeper:").PlacedBy("zookeeper", "all").Definitions["zookeeper"].Object, "unselect it")
	for name, test := range map[string]struct {
		dependents []dependency.Dependent
		options    DisableOptions
		losses     []string
		returns    error
		shown, err string
	}{
		"what else is deleted": {options: DisableOptions{yes: true}, dependents: []dependency.Dependent{graphs}, losses: []string{"on cluster c1: more"},
			shown: "Warning: on cluster c1: without zookeeper, add-on graphs becomes degraded\nWarning: on cluster c1: more\n"},
		"no terminal": {err: `add-on "zookeeper" was not disabled on cluster c1: cannot prompt for confirmation without a terminal; ` +
			`use --yes, and --force if other add-ons require it`},
		"no prompt": {options: DisableOptions{yes: true}},
		"no prompt, and one is degraded": {options: DisableOptions{yes: true}, dependents: []dependency.Dependent{graphs},
			shown: "Warning: on cluster c1: without zookeeper, add-on graphs becomes degraded\n"},
		"no prompt, and one requires it": {options: DisableOptions{yes: true}, dependents: []dependency.Dependent{kafka},
			shown: "Warning: on cluster c1: without zookeeper, add-on kafka becomes unavailable\n",
			err:   `add-on "zookeeper" is required by other add-ons on cluster c1; disable those first, or use --force`},
		"force does not answer the prompt": {options: DisableOptions{force: true}, dependents: []dependency.Dependent{kafka},
			shown: "Warning: on cluster c1: without zookeeper, add-on kafka becomes unavailable\n",
			err: `add-on "zookeeper" was not disabled on cluster c1: cannot prompt for confirmation without a terminal; ` +
				`use --yes, and --force if other add-ons require it`},
		"force ignores dependents": {options: DisableOptions{yes: true, force: true}, dependents: []dependency.Dependent{kafka}, returns: reenabled,
			shown: "Warning: on cluster c1: without zookeeper, add-on kafka becomes unavailable\n"},
		"OCM would enable it again": {options: DisableOptions{yes: true}, returns: reenabled,
			err: `add-on "zookeeper" would be enabled again: OCM enables add-on "zookeeper" only on clusters that these Placements select: ` +
				`default/all; unselect it, or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
	} {
		t.Run(name, func(t *testing.T) {
			i := installed{Dependents: test.dependents}
			i.Namespace, i.Name = "c1", "zookeeper"
			streams := clitest.StreamsOf("yes\n")
			test.options.Factory = &hubclient.Factory{IOStreams: streams}
			err := disabling{addOn: "zookeeper", there: []installed{i}, losses: test.losses, returns: test.returns}.agree(&test.options)
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.shown, streams.ErrOut.(*bytes.Buffer).String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConfirmTakesAYes(t *testing.T) {
	for typed, want := range map[string]error{
		"y\n": nil, "Yes\n": nil, " YES ": nil, "\n": terminal.ErrDeclined, "": terminal.ErrDeclined, "n\n": terminal.ErrDeclined, "yesterday\n": terminal.ErrDeclined, "no\nyes\n": terminal.ErrDeclined,
	} {
		streams := clitest.StreamsOf(typed)
		if diff := cmp.Diff(want, terminal.Confirm(streams, "Really?"), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%q: %s", typed, diff)
		}
		if shown := streams.ErrOut.(*bytes.Buffer).String(); shown != "Really? [y/N] " {
			t.Errorf("got prompt %q", shown)
		}
	}
}
