package fleet_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/sample"
)

// TestDependentsByVersion checks that an alternative counts by its version, as it does in admission and in verdicts.
func TestDependentsByVersion(t *testing.T) {
	view := func() sample.Cluster {
		return sample.NewCluster("shop: kafka|redpanda", "kafka:", "redpanda:").With("shop", sample.Works).With("kafka", sample.Works).With("redpanda", sample.Works)
	}
	constrained := func(constraint string) sample.Cluster {
		v := view().WithVersion("redpanda", "1.0.0").WithWhole("shop", "1.0.0")
		v.Instances["shop"].Status.Whole.Dependencies = []kudo.DependencyConstraint{{Name: "redpanda", Version: constraint}}
		return v
	}
	unreachable := metav1.Condition{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonClusterLeaseStopped}
	for sentence, tc := range map[string]struct {
		view sample.Cluster
		want []string
	}{
		"one that works replaces it":                              {view(), nil},
		"one that is out of reach does not":                       {view().With("redpanda", unreachable), []string{"shop"}},
		"one that is being removed does not":                      {view().WithDeletion("redpanda"), []string{"shop"}},
		"one of a version that satisfies the declared constraint": {view().WithConstraint("shop", "kafka", ">=1").WithVersion("redpanda", "1.0.0"), nil},
		"one of a version that does not":                          {view().WithConstraint("shop", "kafka", ">=2").WithVersion("redpanda", "1.0.0"), []string{"shop"}},
		"one of an unknown version":                               {view().WithConstraint("shop", "kafka", ">=2"), []string{"shop"}},
		"one of a version that satisfies what the dependent runs": {constrained(">=1"), nil},
		"one of a version that what the dependent runs excludes":  {constrained(">=2"), []string{"shop"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			var names []string
			for _, d := range tc.view.Dependents("kafka") {
				names = append(names, d.Name)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}
