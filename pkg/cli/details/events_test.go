package details

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

func TestEvents(t *testing.T) {
	of := func(api, kind, namespace string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: api, Kind: kind, Namespace: namespace, Name: "kafka"}
	}
	addons, other := addonv1alpha1.GroupVersion.String(), "example.com/v1"
	all := []corev1.Event{
		{InvolvedObject: of(addons, "ManagedClusterAddOn", "cluster1"), Type: "Warning", Reason: "RequiredDependencyNotSatisfied",
			Message: "Required addon 'zookeeper' is not installed or not available.\nSee why.", EventTime: metav1.MicroTime(*at(5)), ReportingController: "addon-manager"},
		{InvolvedObject: of(kudo.GroupVersion.String(), "Instance", "cluster2"), Type: "Normal", Reason: "Resolved", FirstTimestamp: *at(1), LastTimestamp: *at(50), Count: 4,
			Source: corev1.EventSource{Component: "addon-manager"}},
		{InvolvedObject: of(addons, "ClusterManagementAddOn", ""), Type: "Warning", Reason: "DependenciesMalformed", EventTime: metav1.MicroTime(*at(2)),
			Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.MicroTime(*at(40))}, Message: "bad \x1b[31m"},
		{InvolvedObject: of("v1", "ConfigMap", "cluster1"), Reason: "Unrelated"},
		{InvolvedObject: of(other, "Instance", "cluster1"), Reason: "Unrelated"},
	}
	for name, clusters := range map[string][]string{"events": nil, "events-cluster": {"cluster1"}} {
		found := eventList{Events: []event{}}
		for i := range all {
			if e, isMeant := eventOf(&all[i], clusters); isMeant {
				found.Events = append(found.Events, e)
			}
		}
		found.sort()
		clitest.Golden(t, name, clitest.Render(t, "table", terminal.Shown{Text: eventsText(found, false, at(59).Time)}))
		clitest.Golden(t, name+"-wide", clitest.Render(t, "table", terminal.Shown{Text: eventsText(found, true, at(59).Time)}))
		clitest.Golden(t, "data-"+name, clitest.Render(t, "yaml", terminal.Shown{Data: found}))
	}
}
