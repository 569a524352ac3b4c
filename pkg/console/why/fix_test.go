package why_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/test/sample"
)

// TestWhySuggestsACommandThatFixes: what a condition reports leads to a command that changes something, and to none that a message makes up.
func TestWhySuggestsACommandThatFixes(t *testing.T) {
	blocked := func(reason, message string) metav1.Condition {
		return sample.Condition(addonv1alpha1.ConditionResolved, "False", reason, message)
	}
	fails := func(reason, message string) metav1.Condition {
		return sample.Condition(addonv1alpha1.ConditionAvailable, "False", reason, message)
	}
	const update = "kubectl addon update shop --cluster cluster1 -p "
	for name, test := range map[string]struct {
		condition metav1.Condition
		want      []string
	}{
		"an integer": {blocked(kudo.ReasonParametersInvalid, `parameter "SIZE": value "two": must be an integer, such as 3`), []string{update + "SIZE=3"}},
		"a number":   {blocked(kudo.ReasonParametersInvalid, `parameter "CPU": value "x": must be a decimal number, such as 0.5 or 1e6`), []string{update + "CPU=0.5"}},
		"an enum and a boolean": {
			blocked(kudo.ReasonParametersInvalid, `parameter "MODE": value "c": must be one of "a b", "b"; parameter "TLS": value "yes": must be true or false`),
			[]string{update + "'MODE=a b' -p TLS=true"},
		},
		"a value without an example": {blocked(kudo.ReasonParametersInvalid, `parameter "LIST": value "a": must be a list, such as [a, b]`), []string{update + "LIST=VALUE"}},
		"a value that looks like an example": {
			blocked(kudo.ReasonParametersInvalid, `parameter "SIZE": value "x, such as 9": must be an integer, such as 3`), []string{update + "SIZE=3"},
		},
		"a name with a quotation mark for the shell": {blocked(kudo.ReasonParametersInvalid, `parameter "a';b": value "": unknown type`), []string{update + `'a'\'';b=VALUE'`}},
		"many values": {
			blocked(kudo.ReasonParametersInvalid, strings.Repeat(`parameter "A": x; `, 3)+`parameter "B": x; parameter "C": x; parameter "D": x; parameter "E": x; parameter "F": x`),
			[]string{update + "A=VALUE -p B=VALUE -p C=VALUE -p D=VALUE -p E=VALUE -p F=VALUE"},
		},
		"missing and invalid values": {
			blocked(kudo.ReasonParametersInvalid, `parameter "OWNER": required, but has neither a value nor a default: set it; parameter "SIZE": value "two": must be `+
				`an integer, such as 3; parameter "PASS": required and sensitive: refer to a Secret on the managed cluster (spec.parametersFrom, or -p PASS=secret:NAME/KEY)`),
			[]string{update + "OWNER=VALUE -p SIZE=3 -p PASS=secret:NAME/KEY"},
		},
		"a value in a ConfigMap that is no reference": {
			blocked(addonv1alpha1.ReasonConfigurationInvalid, `ConfigMap cluster1/files: variable PASSWORD: sensitive: must be secret:NAME/KEY, which refers to a Secret`),
			[]string{"kubectl edit configmap files --namespace cluster1"},
		},
		"a plain value of a sensitive parameter": {
			blocked(addonv1alpha1.ReasonConfigurationInvalid, `AddOnDeploymentConfig addon-packages/all: variable PASSWORD: sensitive: must be secret:NAME/KEY, which refers to a Secret`),
			[]string{update + "PASSWORD=secret:NAME/KEY"},
		},
		"a misspelt variable": {
			blocked(addonv1alpha1.ReasonConfigurationInvalid, `AddOnDeploymentConfig addon-packages/all sets variable BROKR, which OperatorVersion "kafka" does not define: did you mean BROKERS?`),
			[]string{"kubectl edit addondeploymentconfig all --namespace addon-packages"},
		},
		"binary values": {
			blocked(addonv1alpha1.ReasonConfigurationInvalid, "ConfigMap cluster1/files has binary values (a), and values of parameters are text: remove them"),
			[]string{"kubectl edit configmap files --namespace cluster1"},
		},
		"no configuration": {
			blocked(addonv1alpha1.ReasonConfigurationNotFound, "AddOnDeploymentConfig a/b does not exist: create it, or remove it from the add-on's configs"),
			[]string{"kubectl edit managedclusteraddon shop --namespace cluster1"},
		},
		"no version": {
			blocked(kudo.ReasonOperatorVersionNotFound, "OperatorVersion addon-packages/shop-1.0.0 does not exist: push its package (kubectl addon package push DIR -n addon-packages), or use another version"),
			[]string{"kubectl addon package push DIR --namespace addon-packages"},
		},
		"a suspension": {
			sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonSuspended, `plan "deploy" waits: the Instance is suspended`),
			[]string{"kubectl addon resume shop --cluster cluster1"},
		},
		"a suspension by objects of the hub": {
			sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonSuspended,
				`plan "deploy" waits: the Instance is suspended by ManagedCluster cluster1 ("storage"), ClusterManagementAddOn shop`),
			[]string{"kubectl addon resume --all --cluster cluster1", "kubectl addon resume shop --everywhere"},
		},
		"a maintenance window": {
			sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonWindow, `plan "deploy" waits for a maintenance window, closed by the hub (ManagedCluster): opens at 2026-12-01T22:00:00Z`),
			[]string{"kubectl addon plan run shop deploy --cluster cluster1 --now"},
		},
		"a maintenance window of the cluster's administrator": {
			sample.Condition(kudo.ConditionWaiting, "True", kudo.ReasonWindow, `plan "deploy" waits for a maintenance window, closed by the managed cluster (ConfigMap tandem-system/tandem-windows): opens at 2026-12-01T22:00:00Z`), nil,
		},
		"no signature": {
			blocked(kudo.ReasonOperatorVersionNotSigned, "the hub runs only packages that are signed with a key or by an identity in ConfigMap tandem-system/keys; sign the package and push it again (kubectl addon package push DIR -n addon-packages --sign-key FILE): OperatorVersion addon-packages/shop-1.0.0: it has no signature"),
			[]string{"kubectl addon package push DIR --namespace addon-packages --sign-key FILE"},
		},
		"no keys of signatures": {
			blocked(kudo.ReasonOperatorVersionNotSigned, "the hub runs only packages that are signed with a key or by an identity in ConfigMap tandem-system/keys (it does not exist); store the public keys of the signers in it (kubectl create configmap keys -n tandem-system --from-file=cosign.pub --dry-run=client -o yaml | kubectl apply -f -): OperatorVersion addon-packages/shop-1.0.0: it has no signature"),
			[]string{"kubectl create configmap keys --namespace tandem-system --from-file=cosign.pub --dry-run=client --output yaml | kubectl apply --filename -"},
		},
		"a replaced version": {
			blocked(kudo.ReasonOperatorVersionNotFound, `OperatorVersion a/b was replaced: run a plan of Instance "shop" to use the new one`),
			[]string{"kubectl addon plan run shop deploy --cluster cluster1"},
		},
		"no Secret": {
			fails(kudo.ReasonSecretNotFound, `plan deploy waits for the values of sensitive parameters: Secret web/db does not exist: create it with key "password" in namespace "web" of the managed cluster`),
			[]string{"kubectl create secret generic db --namespace web --from-literal=password=VALUE --context cluster1"},
		},
		"no key": {
			fails(kudo.ReasonSecretNotFound, `plan deploy waits for the values of sensitive parameters: Secret web/db has no key "password": add it`),
			[]string{`kubectl patch secret db --namespace web --patch '{"stringData":{"password":"VALUE"}}' --context cluster1`},
		},
		"a Secret that is made up": {
			fails(kudo.ReasonSecretNotFound, `Secret web/db; rm -rf / does not exist: create it with key "password"`), nil,
		},
		"no StorageClass": {
			fails(kudo.ReasonPlanError, `PersistentVolumeClaim web/data-0: is not bound: StorageClass fast does not exist`),
			[]string{"kubectl get storageclass --context cluster1", update + "CLASS=STORAGECLASS"},
		},
		"another StorageClass": {
			fails(kudo.ReasonPlanError, `PersistentVolumeClaim web/data-0: is not bound: StorageClass slow does not exist`),
			[]string{"kubectl get storageclass --context cluster1", update + "NAME=STORAGECLASS"},
		},
		"no default StorageClass": {
			fails(kudo.ReasonPlanError, `PersistentVolumeClaim web/data-0: is not bound: it has no StorageClass, and the cluster has no default StorageClass`),
			[]string{"kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true --context cluster1"},
		},
		"a quota": {
			fails(kudo.ReasonPlanError, `StatefulSet web/db: 0 of 1 replicas ready: pods "db-0" is forbidden: exceeded quota: small, requested: cpu=1`),
			[]string{"kubectl edit resourcequota small --namespace web --context cluster1"},
		},
		"a version in between": {
			blocked(addonv1alpha1.ReasonWaitingForDependencies, "waiting to change to shop-3: shop-3 requires db >=2, which runs version 1; deadlock: db cannot change "+
				"before it; change db to db-1.5 first\nvariables are ignored"),
			[]string{"kubectl addon upgrade db --cluster cluster1 --version db-1.5"},
		},
		"a version that satisfies": {
			blocked(addonv1alpha1.ReasonWaitingForDependencies, "waiting to change to shop-3: shop-3 requires db >=2, which runs version 1; change db to a version that satisfies >=2"),
			[]string{"kubectl edit clustermanagementaddon db"},
		},
		"others that change first": {
			blocked(addonv1alpha1.ReasonWaitingForDependencies, "waiting to change to shop-3: shop-3 requires db >=2, which runs version 1; first changes db"), nil,
		},
		"nothing known": {fails("Unhealthy", "StatefulSet web/db: 0 of 3 pods ready"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			view := sample.NewCluster("shop:").Plans("shop").With("shop", test.condition)
			view.Instances = map[string]*kudo.Instance{"shop": instanceOf("shop", func(i *kudo.Instance) {
				i.Spec.InstallNamespace, i.Spec.Parameters = "web", map[string]string{"CLASS": "fast", "SIZE": "fast-2"}
			})}
			got := why.Of(view.Cluster, "shop", sample.Now).Data("shop").Commands
			want := append([]string{"kubectl addon plan status shop --cluster cluster1"}, test.want...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestWhyNamesThePlacementThatDecidesOnAVersion: upgrade refuses such an add-on.
func TestWhyNamesThePlacementThatDecidesOnAVersion(t *testing.T) {
	const decides = "OCM applies OperatorVersion addon-packages/db-1 of db to all clusters that Placement default/all selects: refer to "
	for name, test := range map[string]struct{ message, want string }{
		"a version in between": {"deadlock: db cannot change before it; change db to db-1.5 first", decides + "db-1.5 in spec.installStrategy of its ClusterManagementAddOn."},
		"a version that satisfies": {"change db to a version that satisfies >=2",
			decides + "another one in spec.installStrategy of its ClusterManagementAddOn, or correct the dependencies of shop."},
	} {
		t.Run(name, func(t *testing.T) {
			view := sample.NewCluster("shop:", "db:").Plans("shop").Plans("db").With("db", sample.Works).VersionPlacedBy("db", "all", "db-1").With("shop", sample.Works,
				sample.Condition(addonv1alpha1.ConditionResolved, "False", addonv1alpha1.ReasonWaitingForDependencies,
					"waiting to change to shop-3: shop-3 requires db >=2, which runs version 1; "+test.message))
			explained := why.Of(view.Cluster, "shop", sample.Now)
			if got := explained.Text(); !strings.Contains(got, test.want) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			commands := explained.Data("shop").Commands
			if !slices.Contains(commands, "kubectl edit clustermanagementaddon db") || strings.Contains(strings.Join(commands, "\n"), "addon upgrade") {
				t.Errorf("%q", commands)
			}
		})
	}
}

// TestWhySuggestsToEditTheConfigThatUpdateDoesNotChange: update stores parameters in the add-on's own config, and is refused if another one provides them.
func TestWhySuggestsToEditTheConfigThatUpdateDoesNotChange(t *testing.T) {
	config := func(resource, name string) upstream.AddOnConfig {
		of := upstream.AddOnConfig{ConfigReferent: upstream.ConfigReferent{Namespace: "cluster1", Name: name}}
		of.Resource = resource
		if resource != addonv1alpha1.ResourceConfigMaps {
			of.Group = addonv1alpha1.GroupVersion.Group
		}
		return of
	}
	deployment := func(name string) upstream.AddOnConfig {
		return config(addonv1alpha1.ResourceAddOnDeploymentConfigs, name)
	}
	const update, status = "kubectl addon update shop --cluster cluster1 -p SIZE=3", "kubectl addon plan status shop --cluster cluster1"
	for name, test := range map[string]struct {
		named, rolledOut []upstream.AddOnConfig
		want             []string
	}{
		"no config":                     {want: []string{update}},
		"its own config":                {named: []upstream.AddOnConfig{deployment("base"), deployment("shop-parameters")}, want: []string{update}},
		"another config":                {named: []upstream.AddOnConfig{deployment("shop-parameters"), deployment("team")}, want: []string{"kubectl edit addondeploymentconfig team --namespace cluster1"}},
		"the config of a Placement":     {rolledOut: []upstream.AddOnConfig{deployment("fleet")}, want: []string{"kubectl edit addondeploymentconfig fleet --namespace cluster1"}},
		"one that overrides Placements": {named: []upstream.AddOnConfig{deployment("shop-parameters")}, rolledOut: []upstream.AddOnConfig{deployment("fleet")}, want: []string{update}},
		"a ConfigMap beside its own": {
			named: []upstream.AddOnConfig{deployment("shop-parameters"), config(addonv1alpha1.ResourceConfigMaps, "files")},
			want:  []string{update, "kubectl edit configmap files --namespace cluster1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := sample.NewCluster("shop:").Plans("shop").With("shop", sample.Condition(addonv1alpha1.ConditionResolved, "False",
				kudo.ReasonParametersInvalid, `parameter "SIZE": value "two": must be an integer, such as 3`))
			addOn, definition := view.AddOns["shop"], view.Definitions["shop"].Object
			addOn.Spec.Configs = append(addOn.Spec.Configs, test.named...)
			definition.Spec.InstallStrategy.Placements = []upstream.PlacementStrategy{{Configs: test.rolledOut}}
			for _, resolved := range append(slices.Clone(test.rolledOut), test.named...) {
				addOn.Status.ConfigReferences = append(addOn.Status.ConfigReferences, upstream.ConfigReference{
					ConfigGroupResource: resolved.ConfigGroupResource, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: resolved.ConfigReferent},
				})
			}
			got := why.Of(view.Cluster, "shop", sample.Now).Data("shop").Commands
			if diff := cmp.Diff(append([]string{status}, test.want...), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestWhyNamesTheFinalizerThatHoldsUpARemoval(t *testing.T) {
	view := sample.NewCluster("shop:").Plans("shop").With("shop", sample.Works).WithDeletion("shop", "kudo.dev/removal")
	view.Instances = map[string]*kudo.Instance{"shop": instanceOf("shop", ready("False", kudo.ReasonRemoving, "ConfigMap web/x: is being deleted, held by finalizer example.com/hold, example.com/b", 0),
		func(i *kudo.Instance) { i.DeletionTimestamp = &metav1.Time{Time: sample.Now} })}
	data := why.Of(view.Cluster, "shop", sample.Now).Data("shop")
	want := []string{"kubectl addon plan status shop --cluster cluster1", "kubectl edit configmap x --namespace web --context cluster1"}
	if diff := cmp.Diff(want, data.Commands); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const advice = "ConfigMap web/x: is being deleted, held by finalizer example.com/hold, example.com/b. Only the controllers that set the finalizers " +
		"(example.com/hold, example.com/b) can finish the deletion: check that these controllers are running on cluster cluster1, or remove the finalizers of those " +
		"that no longer exist."
	if !strings.HasSuffix(data.Explanation, advice) {
		t.Errorf("got %s", data.Explanation)
	}
}

func TestWhyNamesWhoHoldsAnAddOn(t *testing.T) {
	const list = "kubectl get managedclusteraddon shop --namespace cluster1 -o yaml --show-managed-fields"
	const edit = "kubectl edit managedclusteraddon shop --namespace cluster1"
	for sentence, test := range map[string]struct {
		finalizers []string
		waits      string
		commands   []string
	}{
		"only another controller's finalizer is left": {[]string{"example.com/hold"}, "example.com/hold (set by field manager guard). Only the controllers that set the " +
			"finalizers of ManagedClusterAddOn cluster1/shop can finish its deletion: check that these controllers are running, or remove the finalizers of those that no longer exist.",
			[]string{list, edit}},
		"addon-manager removes its own one first": {[]string{"example.com/hold", kudo.Finalizer}, "example.com/hold (set by field manager guard), kudo.dev/removal.", []string{}},
	} {
		t.Run(sentence, func(t *testing.T) {
			view := sample.NewCluster("shop:").With("shop", sample.Works).WithDeletion("shop", test.finalizers...)
			view.AddOns["shop"].ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "guard", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:metadata":{"f:finalizers":{"v:\"example.com/hold\"":{}}}}`)},
			}}
			data := why.Of(view.Cluster, "shop", sample.Now).Data("shop")
			if !strings.HasSuffix(data.Explanation, " and is waiting for finalizers "+test.waits) {
				t.Errorf("got %s", data.Explanation)
			}
			if diff := cmp.Diff(test.commands, data.Commands); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
