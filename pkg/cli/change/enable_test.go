package change

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/action"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/dependency"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/progress"
)

func TestEnableSteps(t *testing.T) {
	shop := func() clitest.Cluster {
		return clitest.Defined("shop: kafka graphs?", "kafka: zookeeper", "zookeeper:", "graphs:")
	}
	const lacks = "shop is waiting for required add-ons: Required kafka (NotInstalled); enable missing ones with --with-dependencies"
	for name, test := range map[string]struct {
		view    clitest.Cluster
		desired desired
		// want lists the add-ons to write, each with its namespace.
		want  []string
		hints []string
		// removals lists the add-ons that have to be gone first.
		removals []string
		err      string
	}{
		"an add-on that requires nothing":        {view: clitest.Defined("shop:"), want: []string{"shop "}},
		"one whose required add-on is missing":   {view: shop(), want: []string{"shop "}, hints: []string{lacks}},
		"one whose required add-on is available": {view: shop().With("kafka", clitest.Works), want: []string{"shop "}},
		"one whose required add-on fails":        {view: shop().With("kafka", clitest.Fails), want: []string{"shop "}, hints: []string{"shop is waiting for required add-ons: Required kafka (NotAvailable); enable missing ones with --with-dependencies"}},
		"with all required add-ons":              {view: shop(), desired: desired{withDependencies: true}, want: []string{"zookeeper ", "kafka ", "shop "}},
		"with missing required add-ons":          {view: shop().With("kafka", clitest.Fails), desired: desired{withDependencies: true}, want: []string{"zookeeper ", "shop "}},
		"in a namespace, which the other plan-based ones join": {
			view: shop().Plans("zookeeper"), desired: desired{withDependencies: true, namespace: "data"}, want: []string{"zookeeper data", "kafka ", "shop data"}},
		"with missing required add-ons of an enabled one, in its namespace": {
			view: shop().With("shop", clitest.HeldBack).In("shop", "data").Plans("kafka").Plans("zookeeper"), desired: desired{withDependencies: true},
			want: []string{"zookeeper data", "kafka data", "shop data"}},
		"one that is enabled in another namespace": {
			view: clitest.Defined("shop:").With("shop", clitest.Works).In("shop", "data"), desired: desired{namespace: "other"},
			err: `add-on "shop" is already enabled on cluster cluster1 in namespace "data"; to move it, disable it first ('kubectl addon disable shop --cluster cluster1')`},
		"one that is being removed": {
			view: clitest.Defined("shop:").With("shop", clitest.Works).Deleting("shop"),
			want: []string{"shop "}, removals: []string{"shop"}},
		"one that is being removed, in another namespace": {
			view: clitest.Defined("shop:").With("shop", clitest.Works).In("shop", "data").Deleting("shop"), desired: desired{namespace: "other"},
			want: []string{"shop other"}, removals: []string{"shop"}},
		"one that is being removed, where OCM enables it": {
			view:     clitest.Defined("shop:").PlacedBy("shop", "shops").With("shop", clitest.Works).Deleting("shop"),
			removals: []string{"shop"},
			err: `OCM enables add-on "shop" only on clusters that these Placements select: default/shops; make one of them select cluster cluster1, ` +
				`for example with a label that it requires ('kubectl label managedcluster cluster1 NAME=VALUE'), or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
		"with required add-ons, some of which are being removed": {
			view: shop().With("kafka", clitest.Works).Deleting("kafka").With("graphs").Deleting("graphs"), desired: desired{withDependencies: true},
			want: []string{"zookeeper ", "kafka ", "shop "}, removals: []string{"kafka"}},
		"alone, while a required add-on is being removed": {
			view: shop().With("kafka", clitest.Works).Deleting("kafka"), want: []string{"shop "},
			hints: []string{"shop is waiting for required add-ons: Required kafka (Deleting); enable missing ones with --with-dependencies"}},
		"with a dependency that is not defined": {
			view: clitest.Defined("shop: kafka", "kafka: zookeper"), desired: desired{withDependencies: true},
			err: `add-on "kafka" requires "zookeper", but there is no ClusterManagementAddOn of that name; create it, or correct the dependencies ` +
				`('kubectl edit clustermanagementaddon kafka')`},
		"with a cycle": {
			view: clitest.Defined("shop: kafka", "kafka: shop"), desired: desired{withDependencies: true},
			err: `add-on "kafka" cannot be installed: circular dependency: kafka -> shop -> kafka; see 'kubectl addon why kafka --cluster cluster1'`},
		"with dependencies that cannot be read": {
			view: shop().Annotated("kafka", "{"), desired: desired{withDependencies: true},
			err: `the dependencies of add-on "kafka" cannot be read: ClusterManagementAddOn "kafka": annotation addon.open-cluster-management.io/dependencies: ` +
				`must be a JSON array such as [{"name":"other-addon","type":"Required"}]; remove the annotation if there are no dependencies`},
		"where OCM enables it": {
			view: clitest.Defined("shop:").PlacedBy("shop", "shops"),
			err: `OCM enables add-on "shop" only on clusters that these Placements select: default/shops; make one of them select cluster cluster1, ` +
				`for example with a label that it requires ('kubectl label managedcluster cluster1 NAME=VALUE'), or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
		"where OCM has enabled it": {view: clitest.Defined("shop:").PlacedBy("shop", "shops").With("shop", clitest.Works), want: []string{"shop "}},
		"with parameters that it does not support": {
			view: clitest.Defined("shop:"), desired: desired{parameters: map[string]string{"SIZE": "2"}},
			err: `add-on "shop" does not support parameters: its ClusterManagementAddOn does not list addondeploymentconfigs in spec.supportedConfigs`},
	} {
		t.Run(name, func(t *testing.T) {
			hints := terminal.ClusterTexts{}
			e := enabling{view: test.view.Cluster, addOn: "shop", desired: test.desired}
			var removals []string
			for _, removed := range e.removals() {
				removals = append(removals, removed.Name)
			}
			if diff := cmp.Diff(test.removals, removals); diff != "" {
				t.Error(diff)
			}
			e = e.after(e.removals())
			names, err := e.names(hints)
			var got []string
			for _, name := range names {
				var s step
				if s, err = e.step(name); err == nil && len(test.desired.parameters) > 0 {
					s, err = e.configured(context.Background(), nil, s)
				}
				if err != nil {
					break
				}
				got = append(got, s.wanted.Name+" "+s.wanted.Spec.InstallNamespace)
			}
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if err == nil {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
			var want []string
			for _, hint := range test.hints {
				want = append(want, "on cluster cluster1: "+hint)
			}
			if diff := cmp.Diff(want, hints.Texts()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnableRefersToParameters(t *testing.T) {
	own := types.NamespacedName{Namespace: "cluster1", Name: "shop-parameters"}
	referTo := func(namespace, name string) upstream.AddOnConfig {
		return upstream.AddOnConfig{ConfigGroupResource: configResource, ConfigReferent: upstream.ConfigReferent{Namespace: namespace, Name: name}}
	}
	version := upstream.AddOnConfig{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		ConfigReferent:      upstream.ConfigReferent{Namespace: "addon-packages", Name: "shop-1"},
	}
	for name, test := range map[string]struct {
		defaults *upstream.ConfigReferent
		stands   []upstream.AddOnConfig
		want     []upstream.AddOnConfig
		err      string
	}{
		"the first":         {want: []upstream.AddOnConfig{referTo("cluster1", "shop-parameters")}},
		"beside a version":  {stands: []upstream.AddOnConfig{version}, want: []upstream.AddOnConfig{version, referTo("cluster1", "shop-parameters")}},
		"again":             {stands: []upstream.AddOnConfig{referTo("cluster1", "shop-parameters")}, want: []upstream.AddOnConfig{referTo("cluster1", "shop-parameters")}},
		"after the default": {defaults: &upstream.ConfigReferent{Namespace: "hub", Name: "all"}, want: []upstream.AddOnConfig{referTo("hub", "all"), referTo("cluster1", "shop-parameters")}},
		"beside another config": {stands: []upstream.AddOnConfig{referTo("hub", "mine")},
			err: `add-on "shop" on cluster cluster1 takes its parameters from AddOnDeploymentConfig hub/mine; change them there ('kubectl edit addondeploymentconfig mine -n hub')`},
	} {
		t.Run(name, func(t *testing.T) {
			definition := clitest.Define("shop:")
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: configResource, DefaultConfig: test.defaults}}
			addOn := clitest.Defined().With("shop").AddOns["shop"]
			addOn.Spec.Configs = test.stands
			err := refer(definition, addOn, own)
			if diff := cmp.Diff(test.err, clitest.ErrorText(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.want, addOn.Spec.Configs); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnableChangesTheParametersThatAreGiven(t *testing.T) {
	name := types.NamespacedName{Namespace: "cluster1", Name: "shop-parameters"}
	first := withVariables(nil, name, map[string]string{"B": "1", "A": "2"}, nil)
	if first.Namespace != "cluster1" || first.Name != "shop-parameters" {
		t.Errorf("got %s/%s", first.Namespace, first.Name)
	}
	before := first.DeepCopy()
	next := withVariables(first, name, map[string]string{"C": "3", "A": ""}, nil)
	if diff := cmp.Diff([]upstream.CustomizedVariable{{Name: "A"}, {Name: "B", Value: "1"}, {Name: "C", Value: "3"}}, next.Spec.CustomizedVariables); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, first); diff != "" {
		t.Errorf("the input was changed: %s", diff)
	}
}

func TestEnableWaitsUntilItIsAvailable(t *testing.T) {
	resolvedAt := func(generation int64) func(*addonv1alpha1.ManagedClusterAddOn) {
		return func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Generation = generation
			c := clitest.Condition(addonv1alpha1.ConditionResolved, "True", "Resolved", "")
			c.ObservedGeneration = 1
			a.Status.Conditions = append(a.Status.Conditions, c)
		}
	}
	for name, test := range map[string]struct {
		view    clitest.Cluster
		change  func(*addonv1alpha1.ManagedClusterAddOn)
		current *addonv1alpha1.ManagedClusterAddOn
		Find    *progress.View
		given   map[string]string
		settled bool
		err     string
		tree    string
		told    string
	}{
		"one that is not plan-based and is available": {
			view: clitest.Defined("kafka:").With("kafka", clitest.Works), settled: true, tree: "kafka on cluster1: available"},
		"one that is not available yet": {view: clitest.Defined("kafka:").With("kafka", clitest.Fails),
			tree: "kafka on cluster1: Available False (PlanFailed): plan deploy: Deployment kafka/kafka: image not found."},
		"one that reports nothing yet": {view: clitest.Defined("kafka:").With("kafka"), tree: "kafka on cluster1: Available Unknown: not reported yet"},
		"one that waits for others": {view: clitest.Defined("kafka:").With("kafka", clitest.Held),
			tree: "kafka on cluster1: False (WaitingForDependencies): waits for zookeeper"},
		"one whose configuration is wrong": {view: clitest.Defined("kafka:").With("kafka", clitest.BadConfig), settled: true,
			err: `add-on kafka on cluster cluster1 cannot run: ConfigurationInvalid: variable "X" is not defined`},
		"one whose configuration was wrong, which the hub still reports": {view: clitest.Defined("kafka:").With("kafka", clitest.BadConfig),
			current: clitest.Defined("kafka:").With("kafka", clitest.BadConfig).AddOns["kafka"],
			tree:    `kafka on cluster1: False (ConfigurationInvalid): variable "X" is not defined`},
		"one whose configuration is wrong in another way": {view: clitest.Defined("kafka:").With("kafka", clitest.BadConfig), settled: true,
			current: clitest.Defined("kafka:").With("kafka", clitest.Condition("Resolved", "False", "ConfigurationInvalid", "")).AddOns["kafka"],
			err:     `add-on kafka on cluster cluster1 cannot run: ConfigurationInvalid: variable "X" is not defined`},
		"one whose plans are complete": {view: clitest.Defined("kafka:").With("kafka", clitest.Works), change: resolvedAt(1),
			Find: new(ranOf("deploy", kudo.Complete)), settled: true, tree: "kafka on cluster1: available",
			told: "kafka on cluster1: plan \"deploy\": no more disks\nkafka on cluster1: available\n"},
		"one that the hub has not processed yet": {view: clitest.Defined("kafka:").With("kafka", clitest.Works), change: resolvedAt(2),
			Find: new(ranOf("deploy", kudo.Complete)), tree: "kafka on cluster1: Available True (PlanComplete)"},
		"one whose plan runs": {view: clitest.Defined("kafka:").With("kafka", clitest.Works), change: resolvedAt(1),
			Find: new(ranOf("deploy", kudo.InProgress)), tree: "kafka on cluster1: Plan deploy (serial strategy) [IN_PROGRESS]: no more disks"},
		"one whose plan has failed": {view: clitest.Defined("kafka:").With("kafka", clitest.Works), change: resolvedAt(1),
			Find: new(ranOf("deploy", kudo.FatalError)), settled: true,
			err: `plan "deploy" of Instance kafka on cluster cluster1 failed: no more disks; see 'kubectl addon plan status kafka --cluster cluster1', ` +
				`fix the cause, and run the plan again: 'kubectl addon plan run kafka deploy --cluster cluster1'`},
		"one whose Instance does not have its parameters yet": {view: clitest.Defined("kafka:").With("kafka", clitest.Works), change: resolvedAt(1),
			Find: new(ranOf("deploy", kudo.FatalError)), given: map[string]string{"SIZE": "2"},
			tree: "kafka on cluster1: Plan deploy (serial strategy) [FATAL_ERROR]: no more disks"},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := test.view.AddOns["kafka"]
			if test.change != nil {
				test.change(addOn)
			}
			got := &target{step: step{current: test.current, wanted: addOn, parameters: test.given}}
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
			if news := out.String(); test.told != "" && !strings.HasSuffix(news, test.told) {
				t.Errorf("got %q", news)
			}
		})
	}
}

func TestEnableSaysWhatItStillWaitsFor(t *testing.T) {
	leaving := func(cluster string) installed {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka"}}
		return installed{ObjectKey: client.ObjectKeyFromObject(addOn), addOn: addOn}
	}
	const removal = "the removal of managedclusteraddon.addon.open-cluster-management.io/kafka%s is still in progress after 3s: Removing " +
		"(see 'kubectl addon uninstall --help' for --force)"
	pending := &target{trees: []terminal.Node{{Text: "kafka on c3: Available Unknown: not reported yet"}}}
	const unavailable = "add-ons are still not available after 3s: kafka on c3: Available Unknown: not reported yet; " +
		"see 'kubectl addon why ADDON --cluster CLUSTER'"
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
			if diff := cmp.Diff(test.want, clitest.ErrorText(w.unfinished(" after 3s"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDisableAsks(t *testing.T) {
	kafka := dependency.Dependent{Name: "kafka", Type: addonv1alpha1.DependencyTypeRequired}
	graphs := dependency.Dependent{Name: "graphs", Type: addonv1alpha1.DependencyTypeOptional}
	comesBack := action.ByPlacement(clitest.Defined("zookeeper:").PlacedBy("zookeeper", "all").Definitions["zookeeper"].Object, "unselect it")
	for name, test := range map[string]struct {
		dependents []dependency.Dependent
		options    DisableOptions
		returns    error
		shown, err string
	}{
		"no terminal": {err: `add-on "zookeeper" was not disabled on cluster c1: cannot prompt for confirmation without a terminal; ` +
			`use --yes, or --force if other add-ons require it`},
		"no prompt": {options: DisableOptions{yes: true}},
		"no prompt, and one is degraded": {options: DisableOptions{yes: true}, dependents: []dependency.Dependent{graphs},
			shown: "Warning: on cluster c1: without zookeeper, add-on graphs becomes degraded\n"},
		"no prompt, and one requires it": {options: DisableOptions{yes: true}, dependents: []dependency.Dependent{kafka},
			shown: "Warning: on cluster c1: without zookeeper, add-on kafka becomes unavailable\n",
			err:   `add-on "zookeeper" is required by other add-ons on cluster c1; disable those first, or use --force`},
		"force ignores dependents": {options: DisableOptions{force: true}, dependents: []dependency.Dependent{kafka}, returns: comesBack,
			shown: "Warning: on cluster c1: without zookeeper, add-on kafka becomes unavailable\n"},
		"OCM would enable it again": {options: DisableOptions{yes: true}, returns: comesBack,
			err: `add-on "zookeeper" would be enabled again: OCM enables add-on "zookeeper" only on clusters that these Placements select: ` +
				`default/all; unselect it, or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
	} {
		t.Run(name, func(t *testing.T) {
			i := installed{dependents: test.dependents}
			i.Namespace, i.Name = "c1", "zookeeper"
			streams := clitest.StreamsOf("yes\n")
			test.options.Factory = &hubclient.Factory{IOStreams: streams}
			err := disabling{addOn: "zookeeper", there: []installed{i}, returns: test.returns}.agree(&test.options)
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

func TestUndefinedParametersAreRefused(t *testing.T) {
	version := &kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{Parameters: []kudo.Parameter{
		{Name: "SIZE", Type: kudo.IntegerType}, {Name: "NEEDED", Required: new(true)},
	}}}
	for name, test := range map[string]struct {
		given   map[string]string
		version *kudo.OperatorVersion
		err     string
	}{
		"none":                                   {version: version},
		"a defined one, whatever its value":      {map[string]string{"SIZE": "two"}, version, ""},
		"an unknown version":                     {map[string]string{"SIZES": "2"}, nil, ""},
		"a misspelt one":                         {map[string]string{"SIZES": "2"}, version, `add-on "shop" on cluster cluster1: parameter "SIZES": not defined: did you mean SIZE?`},
		"one that is close to none":              {map[string]string{"COLOUR": "red"}, version, `add-on "shop" on cluster cluster1: parameter "COLOUR": not defined: the operator has SIZE, NEEDED`},
		"one beside a defined one of wrong type": {map[string]string{"SIZE": "two", "SIZES": "2"}, version, `add-on "shop" on cluster cluster1: parameter "SIZES": not defined: did you mean SIZE?`},
	} {
		t.Run(name, func(t *testing.T) {
			e := enabling{view: clitest.Defined("shop:").Cluster, addOn: "shop", desired: desired{parameters: test.given}}
			if diff := cmp.Diff(test.err, clitest.ErrorText(e.undefined(test.version))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatAUserMayNotReadIsJudgedByTheHub(t *testing.T) {
	a := install.AddOn{
		ManagedAddOn: &addonv1alpha1.ManagedClusterAddOn{},
		Version:      &kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{Parameters: []kudo.Parameter{{Name: "SIZE"}}}},
	}
	own := types.NamespacedName{Namespace: "cluster1", Name: "shop-parameters"}
	a.Configuration.DeploymentConfigs = []types.NamespacedName{own}
	a.DeploymentConfigs = map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{own: withVariables(nil, own, map[string]string{"SIZES": "2"}, nil)}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		want map[string]bool
	}{
		"it is read":         {nil, map[string]bool{"SIZES": false}},
		"it may not be read": {fmt.Errorf("listing: %w", forbidden), map[string]bool{"SIZES": true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := hubReader{others: func() (install.Others, error) { return install.Others{}, test.err }}.definedElsewhere(a)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}
