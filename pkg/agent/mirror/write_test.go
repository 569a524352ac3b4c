package mirror

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestDropError(t *testing.T) {
	for field, edit := range map[string]func(*kudo.InstanceSpec){
		"spec.suspend":              func(s *kudo.InstanceSpec) { s.Suspend = true },
		"spec.windows":              func(s *kudo.InstanceSpec) { s.Windows = "always" },
		"spec.clusterWindows":       func(s *kudo.InstanceSpec) { s.ClusterWindows = "always" },
		"spec.healthyFor":           func(s *kudo.InstanceSpec) { s.HealthyFor = &metav1.Duration{Duration: time.Minute} },
		"spec.planExecution.resume": func(s *kudo.InstanceSpec) { s.PlanExecution.Resume = "e" },
	} {
		wanted := kudo.InstanceSpec{}
		edit(&wanted)
		if err := dropError(wanted, wanted); err != nil {
			t.Errorf("%s is stored: %v", field, err)
		}
		if err := dropError(wanted, kudo.InstanceSpec{}); err == nil || !strings.Contains(err.Error(), "drops "+field+": ") {
			t.Errorf("%s is dropped: %v", field, err)
		}
	}
}
