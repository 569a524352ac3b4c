package ui

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// newExecuted returns the Instance of add-on kafka on a cluster, with executions that each took a minute.
func newExecuted(cluster string, starts ...time.Time) kudo.Instance {
	instance := kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "kafka", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: "kafka", Controller: ptr.To(true),
	}}}}
	for i, start := range starts {
		instance.Status.History = append(instance.Status.History, kudo.HistoryEntry{
			Revision: int64(i + 1), Plan: "deploy", Cause: kudo.CauseVersion, OperatorVersion: corev1.ObjectReference{Name: fmt.Sprintf("kafka-1.%d.0", i)},
			Outcome: kudo.HistoryComplete, StartedTimestamp: &metav1.Time{Time: start}, EndedTimestamp: &metav1.Time{Time: start.Add(time.Minute)},
		})
	}
	return instance
}

func historyFrame(instances []kudo.Instance, query string, now time.Time) frame {
	values, _ := url.ParseQuery(query)
	return frame{Title: "History of kafka", Template: "history", View: addOnHistoryOf("kafka", instances, filterOf("/addons/kafka/history", values), now)}
}

func TestHistoryOfAddOn(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := newExecuted("cluster2", now.Add(-time.Hour))
	failed.Status.History[0].Outcome, failed.Status.History[0].Message = kudo.HistoryFailed, "no more\n<b>disks</b>"
	undated := newExecuted("cluster4", now)
	undated.Status.History[0].StartedTimestamp, undated.Status.History[0].EndedTimestamp, undated.Status.History[0].Outcome = nil, nil, ""
	independent := newExecuted("cluster5", now)
	independent.OwnerReferences = nil
	instances := []kudo.Instance{newExecuted("cluster1", now.Add(-72*time.Hour), now.Add(-48*time.Hour)), failed, newExecuted("cluster3"), undated, independent}
	golden(t, "history", historyFrame(instances, "", now))
	golden(t, "history-empty", historyFrame(nil, "", now))
}

func TestHistoryOfAddOnIsBounded(t *testing.T) {
	now := time.Now()
	var instances []kudo.Instance
	for i := range 1000 {
		instances = append(instances, newExecuted(fmt.Sprintf("cluster-%04d", i), now.Add(time.Duration(i)*time.Second-time.Hour)))
	}
	content := renderPage(t, historyFrame(instances, "page=10", now))
	if len(content) > 100_000 || !strings.Contains(content, "cluster-0099<") || !strings.Contains(content, "cluster-0000<") || strings.Contains(content, "cluster-0100<") {
		t.Errorf("the last page has %d bytes, or not the earliest executions", len(content))
	}
}

// TestCacheKeepsTheLastExecution checks what the page shows of a cached Instance.
func TestCacheKeepsTheLastExecution(t *testing.T) {
	now := time.Now()
	for _, instance := range []kudo.Instance{newExecuted("cluster1"), newExecuted("cluster1", now), newExecuted("cluster1", now, now, now)} {
		count := len(instance.Status.History)
		if _, err := trim(&instance); err != nil {
			t.Fatal(err)
		}
		kept := instance.Status.History
		if len(kept) != min(count, 1) || count > 0 && kept[0].Revision != int64(count) || cap(kept) > 1 {
			t.Errorf("of %d executions, %d are kept: %v", count, len(kept), kept)
		}
	}
}
