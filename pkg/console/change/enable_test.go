package change

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestEnableSteps(t *testing.T) {
	shop := func() sample.Cluster {
		return sample.NewCluster("shop: kafka graphs?", "kafka: zookeeper", "zookeeper:", "graphs:")
	}
	const lacks = "shop is waiting for required add-ons: Required kafka (NotInstalled)"
	for name, test := range map[string]struct {
		view    sample.Cluster
		desired Desired
		// want lists the add-ons to write, each with its namespace.
		want    []string
		waiting string
		// removals lists the add-ons that have to be gone first.
		removals []string
		err      string
	}{
		"an add-on that requires nothing":        {view: sample.NewCluster("shop:"), want: []string{"shop "}},
		"one whose required add-on is missing":   {view: shop(), want: []string{"shop "}, waiting: lacks},
		"one whose required add-on is available": {view: shop().With("kafka", sample.Works), want: []string{"shop "}},
		"one whose required add-on fails":        {view: shop().With("kafka", sample.Fails), want: []string{"shop "}, waiting: "shop is waiting for required add-ons: Required kafka (NotAvailable)"},
		"with all required add-ons":              {view: shop(), desired: Desired{WithDependencies: true}, want: []string{"zookeeper ", "kafka ", "shop "}},
		"with missing required add-ons":          {view: shop().With("kafka", sample.Fails), desired: Desired{WithDependencies: true}, want: []string{"zookeeper ", "shop "}},
		"with the first alternative that exists": {
			view: sample.NewCluster("shop: kafka|redpanda", "redpanda: disk", "disk:"), desired: Desired{WithDependencies: true}, want: []string{"disk ", "redpanda ", "shop "}},
		"with the alternative that is on the cluster": {
			view: sample.NewCluster("shop: kafka|redpanda", "kafka:", "redpanda: disk", "disk:").With("redpanda", sample.Fails), desired: Desired{WithDependencies: true},
			want: []string{"disk ", "shop "}},
		"while no alternative is there": {
			view: sample.NewCluster("shop: kafka|redpanda", "kafka:", "redpanda:"), want: []string{"shop "},
			waiting: "shop is waiting for required add-ons: Required kafka (NotInstalled) or redpanda (NotInstalled)"},
		"without what exists on other clusters": {
			view: sample.NewCluster("shop: kafka gpu@gpu", "kafka:", "gpu:").Labelled(), desired: Desired{WithDependencies: true}, want: []string{"kafka ", "shop "}},
		"while it is not known whether a dependency exists on this cluster": {
			view: sample.NewCluster("shop: kafka gpu@gpu", "kafka:", "gpu:"), desired: Desired{WithDependencies: true}, want: []string{"kafka ", "shop "},
			waiting: "shop requires gpu on some clusters. Whether it does on this one is unknown, because you are not allowed to get ManagedCluster cluster1"},
		"with what exists on this cluster": {
			view: sample.NewCluster("shop: gpu@gpu", "gpu:").Labelled("gpu"), desired: Desired{WithDependencies: true}, want: []string{"gpu ", "shop "}},
		"in a namespace, which the other plan-based ones join": {
			view: shop().Plans("zookeeper"), desired: Desired{WithDependencies: true, Namespace: "data"}, want: []string{"zookeeper data", "kafka ", "shop data"}},
		"with missing required add-ons of an enabled one, in its namespace": {
			view: shop().With("shop", sample.HeldBack).In("shop", "data").Plans("kafka").Plans("zookeeper"), desired: Desired{WithDependencies: true},
			want: []string{"zookeeper data", "kafka data", "shop data"}},
		"one that is enabled in another namespace": {
			view: sample.NewCluster("shop:").With("shop", sample.Works).In("shop", "data"), desired: Desired{Namespace: "other"},
			err: `add-on "shop" is already enabled on cluster cluster1 in namespace "data"; to move it, disable it first ('kubectl addon disable shop --cluster cluster1')`},
		"one that is being removed": {
			view: sample.NewCluster("shop:").With("shop", sample.Works).WithDeletion("shop"),
			want: []string{"shop "}, removals: []string{"shop"}},
		"one that is being removed, in another namespace": {
			view: sample.NewCluster("shop:").With("shop", sample.Works).In("shop", "data").WithDeletion("shop"), desired: Desired{Namespace: "other"},
			want: []string{"shop other"}, removals: []string{"shop"}},
		"one that is being removed, where OCM enables it": {
			view:     sample.NewCluster("shop:").PlacedBy("shop", "shops").With("shop", sample.Works).WithDeletion("shop"),
			removals: []string{"shop"},
			err: `OCM enables add-on "shop" only on clusters that these Placements select: default/shops; make one of them select cluster cluster1, ` +
				`for example with a label that it requires ('kubectl label managedcluster cluster1 NAME=VALUE'), or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
		"with required add-ons, some of which are being removed": {
			view: shop().With("kafka", sample.Works).WithDeletion("kafka").With("graphs").WithDeletion("graphs"), desired: Desired{WithDependencies: true},
			want: []string{"zookeeper ", "kafka ", "shop "}, removals: []string{"kafka"}},
		"alone, while a required add-on is being removed": {
			view: shop().With("kafka", sample.Works).WithDeletion("kafka"), want: []string{"shop "},
			waiting: "shop is waiting for required add-ons: Required kafka (Deleting)"},
		"with a dependency that is not defined": {
			view: sample.NewCluster("shop: kafka", "kafka: zookeper"), desired: Desired{WithDependencies: true},
			err: `add-on "kafka" requires "zookeper", but there is no ClusterManagementAddOn of that name; create it, or correct the dependencies ` +
				`('kubectl edit clustermanagementaddon kafka')`},
		"with a cycle": {
			view: sample.NewCluster("shop: kafka", "kafka: shop"), desired: Desired{WithDependencies: true},
			err: `add-on "kafka" cannot be installed: circular dependency: kafka -> shop -> kafka; see 'kubectl addon why kafka --cluster cluster1'`},
		"with dependencies that cannot be read": {
			view: shop().WithAnnotation("kafka", "{"), desired: Desired{WithDependencies: true},
			err: `the dependencies of add-on "kafka" cannot be read: ClusterManagementAddOn "kafka": annotation addon.open-cluster-management.io/dependencies: ` +
				`must be a JSON array such as [{"name":"other-addon","type":"Required"}]; remove the annotation if there are no dependencies`},
		"where OCM enables it": {
			view: sample.NewCluster("shop:").PlacedBy("shop", "shops"),
			err: `OCM enables add-on "shop" only on clusters that these Placements select: default/shops; make one of them select cluster cluster1, ` +
				`for example with a label that it requires ('kubectl label managedcluster cluster1 NAME=VALUE'), or set spec.installStrategy.type of the ClusterManagementAddOn to Manual`},
		"where OCM has enabled it": {view: sample.NewCluster("shop:").PlacedBy("shop", "shops").With("shop", sample.Works), want: []string{"shop "}},
		"with parameters that it does not support": {
			view: sample.NewCluster("shop:"), desired: Desired{Parameters: map[string]string{"SIZE": "2"}},
			err: `add-on "shop" does not support parameters: its ClusterManagementAddOn does not list addondeploymentconfigs in spec.supportedConfigs`},
	} {
		t.Run(name, func(t *testing.T) {
			e := EnableRequest{View: test.view.Cluster, AddOn: "shop", Desired: test.desired}
			var removals []string
			for _, removed := range e.Removals() {
				removals = append(removals, removed.Name)
			}
			if diff := cmp.Diff(test.removals, removals); diff != "" {
				t.Error(diff)
			}
			e = e.After(e.Removals())
			found, names, err := e.names()
			var got []string
			for _, name := range names {
				var s Step
				if s, err = e.step(name); err == nil && len(test.desired.Parameters) > 0 {
					s, err = s.withConfig(context.Background(), nil, e.View.Definitions[name].Object, e.Desired)
				}
				if err != nil {
					break
				}
				got = append(got, s.Wanted.Name+" "+s.Wanted.Spec.InstallNamespace)
			}
			if diff := cmp.Diff(test.err, errorText(err)); diff != "" {
				t.Error(diff)
			}
			if err == nil {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error(diff)
				}
			}
			if diff := cmp.Diff(test.waiting, found.Waiting); diff != "" {
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
		existing []upstream.AddOnConfig
		want     []upstream.AddOnConfig
		err      string
	}{
		"the first":         {want: []upstream.AddOnConfig{referTo("cluster1", "shop-parameters")}},
		"beside a version":  {existing: []upstream.AddOnConfig{version}, want: []upstream.AddOnConfig{version, referTo("cluster1", "shop-parameters")}},
		"again":             {existing: []upstream.AddOnConfig{referTo("cluster1", "shop-parameters")}, want: []upstream.AddOnConfig{referTo("cluster1", "shop-parameters")}},
		"after the default": {defaults: &upstream.ConfigReferent{Namespace: "hub", Name: "all"}, want: []upstream.AddOnConfig{referTo("hub", "all"), referTo("cluster1", "shop-parameters")}},
		"beside another config": {existing: []upstream.AddOnConfig{referTo("hub", "mine")},
			err: `add-on "shop" on cluster cluster1 takes its parameters from AddOnDeploymentConfig hub/mine; change them there ('kubectl edit addondeploymentconfig mine -n hub')`},
	} {
		t.Run(name, func(t *testing.T) {
			definition := sample.Define("shop:")
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: configResource, DefaultConfig: test.defaults}}
			addOn := sample.NewCluster().With("shop").AddOns["shop"]
			addOn.Spec.Configs = test.existing
			err := addReference(definition, addOn, own)
			if diff := cmp.Diff(test.err, errorText(err)); diff != "" {
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
	first := withVariables(nil, name, Desired{Parameters: map[string]string{"B": "1", "A": "2"}})
	if first.Namespace != "cluster1" || first.Name != "shop-parameters" {
		t.Errorf("got %s/%s", first.Namespace, first.Name)
	}
	before := first.DeepCopy()
	next := withVariables(first, name, Desired{Parameters: map[string]string{"C": "3", "A": ""}})
	if diff := cmp.Diff([]upstream.CustomizedVariable{{Name: "A"}, {Name: "B", Value: "1"}, {Name: "C", Value: "3"}}, next.Spec.CustomizedVariables); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, first); diff != "" {
		t.Errorf("the input was changed: %s", diff)
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
		"none":                                 {version: version},
		"a defined one, whatever its value":    {map[string]string{"SIZE": "two"}, version, ""},
		"an unknown version":                   {map[string]string{"SIZES": "2"}, nil, ""},
		"a misspelt one":                       {map[string]string{"SIZES": "2"}, version, `add-on "shop" on cluster cluster1: parameter "SIZES": not defined: did you mean SIZE?`},
		"one that resembles no other":          {map[string]string{"COLOUR": "red"}, version, `add-on "shop" on cluster cluster1: parameter "COLOUR": not defined: the operator has SIZE, NEEDED`},
		"one beside a defined one of bad type": {map[string]string{"SIZE": "two", "SIZES": "2"}, version, `add-on "shop" on cluster cluster1: parameter "SIZES": not defined: did you mean SIZE?`},
	} {
		t.Run(name, func(t *testing.T) {
			e := EnableRequest{View: sample.NewCluster("shop:").Cluster, AddOn: "shop", Desired: Desired{Parameters: test.given}}
			if diff := cmp.Diff(test.err, errorText(e.checkParameters(test.version))); diff != "" {
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
	a.DeploymentConfigs = map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{own: withVariables(nil, own, Desired{Parameters: map[string]string{"SIZES": "2"}})}
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		want map[string]bool
	}{
		"it is read":         {nil, map[string]bool{"SIZES": false}},
		"it may not be read": {fmt.Errorf("listing: %w", forbidden), map[string]bool{"SIZES": true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Reader{others: func() (install.Others, error) { return install.Others{}, test.err }}.definedElsewhere(a)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
