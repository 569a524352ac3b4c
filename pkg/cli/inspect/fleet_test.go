package inspect

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/test/sample"
)

// glanceOf returns the summarized status of the clusters' add-ons.
func glanceOf(clusters map[string]sample.Cluster) fleet.Glance {
	all := fleet.Glance{}
	for name, view := range clusters {
		all[name] = map[fleet.Subject]fleet.Glimpse{}
		for _, addOn := range view.AddOns {
			all.Add(name, fleet.Subject{Name: addOn.Name}, fleet.GlimpseOf(addOn))
		}
		for _, instance := range view.Instances {
			all.Add(name, fleet.Subject{Instance: true, Name: instance.Name}, fleet.GlimpseOfInstance(instance))
		}
	}
	return all
}

// instanceOf returns an Instance on cluster1 with the conditions.
func instanceOf(name string, conditions ...metav1.Condition) *kudo.Instance {
	instance := sample.Instance()
	instance.Name, instance.Status.Conditions = name, conditions
	return instance
}

func TestFleet(t *testing.T) {
	healthy := func() sample.Cluster {
		return sample.NewCluster("kafka:", "zookeeper:").With("kafka", sample.Works).With("zookeeper", sample.Works)
	}
	small := glanceOf(map[string]sample.Cluster{
		"cluster1": healthy(), "cluster2": healthy(), "cluster3": sample.NewCluster("kafka: zookeeper").With("kafka", sample.Works).WithVerdicts(),
		"cluster4": sample.NewCluster("kafka: graphs?").With("kafka", sample.Works).With("zookeeper", sample.Fails).WithVerdicts(),
		"cluster5": healthy().With("kafka", sample.OutOfTouch).With("zookeeper"), "cluster6": healthy().WithDeletion("kafka"), "cluster7": sample.NewCluster(),
		"cluster8": healthy().With("kafka", sample.Works, sample.BadParameters).With("zookeeper", sample.Fails, sample.BadParameters),
		"cluster9": healthy().With("kafka", sample.Works, sample.NotRolledOut),
	})
	wide := map[string]sample.Cluster{}
	for i := range 1000 {
		view := sample.NewCluster()
		for k := range 30 {
			available := sample.Works
			if i%100 == 7 && k == i/100 || i == 500 && k > 3 {
				available = sample.Fails
			}
			if i >= 900 && k == i%30 {
				continue
			}
			view = view.With(fmt.Sprintf("addon-%02d", k), available)
		}
		wide[fmt.Sprintf("cluster-%04d", i)] = view
	}
	mixed := healthy()
	mixed.Instances = map[string]*kudo.Instance{
		"kafka": instanceOf("kafka", sample.Condition(kudo.ConditionReady, "False", kudo.ReasonPlanFailed, "")),
		"store": instanceOf("store", sample.Condition(kudo.ConditionReady, "True", kudo.ReasonHealthy, "")),
	}
	alone := sample.NewCluster()
	alone.Instances = map[string]*kudo.Instance{"kafka": instanceOf("kafka"), "store": instanceOf("store")}
	instances := glanceOf(map[string]sample.Cluster{"cluster1": mixed, "cluster2": alone, "cluster3": healthy()})
	clitest.Golden(t, "data-fleet-instances", clitest.Render(t, "yaml", terminal.Shown{Data: instances.Sum()}))
	for name, sum := range map[string]fleet.Summary{
		"fleet-instances": instances.Sum(),
		"fleet":           small.Sum(), "fleet-healthy": glanceOf(map[string]sample.Cluster{"cluster1": healthy()}).Sum(),
		"fleet-empty": glanceOf(map[string]sample.Cluster{"cluster1": sample.NewCluster()}).Sum(), "fleet-large": glanceOf(wide).Sum(),
	} {
		t.Run(name, func(t *testing.T) { clitest.Golden(t, name, SummaryText(sum, false)) })
	}
	clitest.Golden(t, "fleet-wide", SummaryText(small.Sum(), true))
	clitest.Golden(t, "data-fleet", clitest.Render(t, "yaml", terminal.Shown{Data: small.Sum()}))
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 27: "AB", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := letters(i); got != want {
			t.Errorf("%d is %s, want %s", i, got, want)
		}
	}
}

// TestGetReportsAFailedUpgrade covers an add-on whose agent has not written condition Available since its plan failed.
func TestGetReportsAFailedUpgrade(t *testing.T) {
	view := sample.NewCluster("kafka:").Plans("kafka").With("kafka", sample.Works)
	view.Definitions["kafka"].Object.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: "addon-packages", Name: "kafka-3.9.0-1.0.0"},
	}}
	instance := instanceOf("kafka", sample.Condition(kudo.ConditionReady, "False", kudo.ReasonPlanFailed, ""))
	instance.Status.Conditions[0].LastTransitionTime = metav1.NewTime(sample.Now.Add(time.Second))
	instance.OwnerReferences = []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "kafka", Controller: ptr.To(true)}}
	instance.Status.Whole = &kudo.WholeVersion{OperatorVersion: corev1.ObjectReference{Name: "kafka-3.8.0-0.9.0"}}
	item := itemOf(view.AddOns["kafka"], view.Definitions["kafka"], fleet.ReportOf(instance), notice.KindsOf(instance))
	if got := item.versionText() + " " + string(item.Available) + " " + item.Reason; got != "kafka-3.8.0-0.9.0 -> kafka-3.9.0-1.0.0 False PlanFailed" {
		t.Error(got)
	}
}

// TestGetNamesNotices covers what column STATE does not show: an add-on stays available.
func TestGetNamesNotices(t *testing.T) {
	view := sample.NewCluster("kafka:").Plans("kafka").With("kafka", sample.Works)
	instance := instanceOf("kafka", sample.Condition(kudo.ConditionDrifted, "True", kudo.ReasonDrifted, "ConfigMap kafka is gone"))
	instance.Spec.Suspend = true
	list := addOnList{
		AddOns:    []addOnItem{itemOf(view.AddOns["kafka"], view.Definitions["kafka"], fleet.ReportOf(instance), notice.KindsOf(instance))},
		Instances: []instanceItem{instanceItemOf(instance), instanceItemOf(instanceOf("quiet"))},
	}
	as := layout{now: sample.Now, wide: true, noHeaders: true}
	rows := append(list.addOnRows(as), list.instanceRows(as)...)
	for i, want := range []string{"drifted, suspended", "drifted, suspended", "-"} {
		if got := rows[i][len(rows[i])-2]; got != want {
			t.Errorf("row %d has notices %q, want %q", i, got, want)
		}
	}
	if got := as.withoutAge(rows[0]); slices.Contains(got, rows[0][len(rows[0])-3]) || len(got) != len(rows[0])-1 {
		t.Errorf("without age, the row is %q", got)
	}
}

func TestGet(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	view := sample.NewCluster("kafka: zookeeper graphs?", "zookeeper:", "shop: graphs?").Plans("kafka").
		With("kafka", sample.Works).With("zookeeper", sample.Fails).With("shop", sample.Works).With("silent").With("held", sample.Held).With("bad", sample.Works, sample.BadParameters).
		With("worse", sample.Fails, sample.BadParameters).With("next", sample.Works, sample.NotRolledOut).
		With("away", sample.OutOfTouch).With("going", sample.Works).WithDeletion("going").WithVerdicts()
	definition := view.Definitions["kafka"]
	definition.Object.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: "addon-packages", Name: "kafka-3.9.0-1.0.0"},
	}}
	list := addOnList{Instances: []instanceItem{}}
	for _, name := range view.AddOnNames() {
		addOn := view.AddOns[name]
		addOn.CreationTimestamp = metav1.NewTime(now.Add(-90 * time.Minute))
		list.AddOns = append(list.AddOns, itemOf(addOn, view.Definitions[name], fleet.Report{}, nil))
	}
	clitest.Golden(t, "get", list.text(layout{now: now}))
	clitest.Golden(t, "data-get", clitest.Render(t, "yaml", terminal.Shown{Data: list})+"---\n"+clitest.Render(t, "name", terminal.Shown{Names: list.names()}))
	for _, instance := range []*kudo.Instance{
		instanceOf("works", sample.Condition(kudo.ConditionReady, "True", kudo.ReasonHealthy, "")),
		instanceOf("waits", sample.Condition(kudo.ConditionResolved, "False", "OperatorVersionNotFound", "")),
		instanceOf("edited", sample.Condition(kudo.ConditionReady, "True", kudo.ReasonHealthy, ""),
			sample.Condition(kudo.ConditionResolved, "False", "ParametersInvalid", "")),
		instanceOf("silent"),
	} {
		instance.CreationTimestamp = metav1.NewTime(now.Add(-90 * time.Minute))
		list.Instances = append(list.Instances, instanceItemOf(instance))
	}
	list.sort()
	clitest.Golden(t, "get-wide", list.text(layout{now: now, wide: true}))
	clitest.Golden(t, "get-no-headers", list.text(layout{now: now, noHeaders: true}))
	columns := terminal.NewOutput(terminal.FormatColumns)
	if err := columns.Set("custom-columns=CLUSTER:.cluster,NAME:{.addOn},INSTANCE:instance,STATE:.state"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := columns.Print(&out, terminal.Shown{Items: list.items()}); err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "get-columns", out.String())
	clitest.Golden(t, "get-instances", list.text(layout{now: now}))
	clitest.Golden(t, "get-instances-only", addOnList{Instances: list.Instances}.text(layout{now: now}))
	clitest.Golden(t, "data-get-instances", clitest.Render(t, "yaml", terminal.Shown{Data: addOnList{AddOns: []addOnItem{}, Instances: list.Instances}})+
		"---\n"+clitest.Render(t, "name", terminal.Shown{Names: addOnList{Instances: list.Instances}.names()}))
	if text := (addOnList{}).text(layout{now: now}); text != "No add-ons are enabled.\n" {
		t.Error(text)
	}
}

func TestFleetIsPrintedAgainOnlyIfItChanges(t *testing.T) {
	var out bytes.Buffer
	w := fleetWatch{out: &out, progress: terminal.NewProgress(&out)}
	for _, text := range []string{"one\n", "one\n", "two\n"} {
		if err := w.show(text); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "one\n\ntwo\n" {
		t.Errorf("got %q", got)
	}
}

func TestFleetIsRedrawnOnATerminal(t *testing.T) {
	var out bytes.Buffer
	w := fleetWatch{progress: terminal.NewProgressOn(&out, false, func() (int, int) { return 80, 24 })}
	for _, text := range []string{"A\n\none\n", "A\n\ntwo\n"} {
		if err := w.show(text); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "A\x1b[K\n\x1b[K\none\x1b[K\n\x1b[J\x1b[3AA\x1b[K\n\x1b[K\ntwo\x1b[K\n\x1b[J" {
		t.Errorf("got %q", got)
	}
}

func TestWhyAndTreeOfTheFleet(t *testing.T) {
	clusterOf := func(kafka, zookeeper metav1.Condition) sample.Cluster {
		return sample.NewCluster("kafka: zookeeper graphs?", "zookeeper:").With("kafka", kafka).With("zookeeper", zookeeper)
	}
	views := map[string]fleet.Cluster{}
	for name, view := range map[string]sample.Cluster{
		"cluster1": clusterOf(sample.Works, sample.Works), "cluster2": clusterOf(sample.Works, sample.Fails), "cluster3": clusterOf(sample.Works, sample.Fails),
		"cluster4": clusterOf(sample.Fails, sample.Works), "cluster5": clusterOf(sample.OutOfTouch, sample.OutOfTouch),
		"cluster6": sample.NewCluster("kafka: zookeeper", "zookeeper:").With("kafka", sample.Works), "cluster7": sample.NewCluster("kafka:"),
		"cluster8": sample.NewCluster("kafka:").With("kafka", sample.Works),
	} {
		view.Name = name
		views[name] = view.WithVerdicts().Cluster
	}
	data := fleetWhy{AddOn: "kafka", Groups: why.Fleet(views, "kafka", sample.Now)}
	clitest.Golden(t, "why-fleet", data.text(false, 0))
	clitest.Golden(t, "why-fleet-terminal", data.text(true, 80))
	clitest.Golden(t, "data-why-fleet", clitest.Render(t, "yaml", terminal.Shown{Data: data}))
	shown := showTrees(views, nil)
	clitest.Golden(t, "tree-fleet", shown.Text)
	clitest.Golden(t, "data-tree-fleet", clitest.Render(t, "yaml", shown)+"---\n"+clitest.Render(t, "name", shown))
}
