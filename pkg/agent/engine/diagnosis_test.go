package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/tandem-addons/tandem/pkg/agent/secret"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// A mask is longer than the shortest values, and the API server rejects a status that exceeds the limits of its texts.
func TestAnAnswerKeepsItsLimitsWhenValuesChange(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	request := now.Format(time.RFC3339)
	p := &pass{engine: &engine{clock: func() time.Time { return now }, dropped: lru.New(1)}, view: secret.View{Values: sensitive.Values{"PASSWORD": "abcd"}}}
	instance := &kudo.Instance{}
	metav1.SetMetaDataAnnotation(&instance.ObjectMeta, kudo.AnnotationDiagnose, request)
	status := kudo.InstanceStatus{Diagnosis: &kudo.Diagnosis{
		Request: request, Time: metav1.NewTime(now), Pods: []kudo.DiagnosedPod{{Name: "app", Reason: strings.Repeat("abcd", 64)}},
	}}
	observed := plan.Observation{Instance: instance, Now: now}
	for range 2 {
		status = result{status: status}.mask(p.view.Masker()).status
		status, _ = p.withDiagnosis(context.Background(), observed, status)
		reason := status.Diagnosis.Pods[0].Reason
		if len(reason) > 256 || strings.Contains(reason, "abcd") || status.Diagnosis.Request != request {
			t.Errorf("%d bytes: %s", len(reason), reason)
		}
	}
	again, _ := p.withDiagnosis(context.Background(), observed, result{status: status}.mask(p.view.Masker()).status)
	if diff := cmp.Diff(status, again); diff != "" {
		t.Error("it is not stable: ", diff)
	}
}
