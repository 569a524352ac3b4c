package ui

import (
	"testing"
	"time"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/test/forged"
	"github.com/tandem-addons/tandem/test/sample"
)

// FuzzForgedStatus shows Instances and add-ons with forged statuses on the pages of the dashboard.
func FuzzForgedStatus(f *testing.F) {
	words := forged.Words{
		"":           {"ran", "kafka-3.9.0-1.0.0", "version"},
		"PlanStatus": {"deploy", "backup", "cleanup"},
		"Plan":       {"deploy", "backup", "cleanup"},
		"Type":       {kudo.ConditionReady, kudo.ConditionResolved, addonv1alpha1.ConditionAvailable, addonv1alpha1.ConditionDegraded},
		"Status":     {"True", "False", "Unknown"},
		"Reason":     {kudo.ReasonPlanFailed, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, addonv1alpha1.ReasonClusterLeaseStopped},
	}
	ran, version := sample.Ran("deploy", kudo.FatalError)
	waiting, _ := sample.Ran("backup", kudo.InProgress)
	for _, seed := range forged.Seeds(50, words, ran.Status, waiting.Status) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, encoded string) {
		status, ok := forged.Status(encoded)
		if !ok {
			return
		}
		instance, child := ran.DeepCopy(), *ran.DeepCopy()
		instance.Status, child.Status, child.Name = status, status, "kafka.zookeeper"
		for _, of := range []*kudo.OperatorVersion{version, nil} {
			view := progress.View{Instance: instance, Version: of, WithChildren: true, Children: []progress.View{{Instance: &child, Version: of}}}
			progress.HoldUp(view)
			now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			page := instanceOf(view, visit{now: now})
			page.History = revisionRows(instance.Status.History, now)
			renderPage(t, frame{Title: "kafka", Template: "instance", View: page})
		}
		versionsOf("kafka", []kudo.Instance{*instance, child})
		shown := sample.NewCluster("kafka: zookeeper monitoring?", "zookeeper:").With("kafka", status.Conditions...).With("zookeeper", status.Conditions...)
		shown.Instances = map[string]*kudo.Instance{"kafka": instance, "zookeeper": &child}
		for name, addOn := range shown.AddOns {
			renderPage(t, frame{Title: name, Template: "why", View: whyView{
				Data: why.Of(shown.Cluster, name, sample.Now).Data(name), Glimpse: fleet.GlimpseOf(addOn), Conditions: conditionRows(addOn.Status.Conditions, sample.Now),
			}})
		}
		renderPage(t, frame{Title: "cluster1", Template: "cluster", View: clusterOf(shown.Cluster)})
	})
}
