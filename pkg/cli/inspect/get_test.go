package inspect

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestGetTakesFlags(t *testing.T) {
	type options struct {
		AddOn, Format string
		Clusters      []string
	}
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"everything":           {args: []string{}, want: options{Format: "table"}},
		"one add-on":           {args: []string{"kafka", "-o", "name"}, want: options{AddOn: "kafka", Format: "name"}},
		"some clusters":        {args: []string{"--cluster", "a,b"}, want: options{Format: "table", Clusters: []string{"a", "b"}}},
		"clusters in two ways": {args: []string{"--cluster", "a", "--all-clusters"}, err: "--cluster, --selector, --placement and --all-clusters are mutually exclusive\nSee 'get --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdGet(clitest.Factory(""), func(_ context.Context, o *GetOptions) error {
				got = options{AddOn: o.addOn, Format: o.output.Format, Clusters: o.where.Names}
				return nil
			})
			clitest.Parse(t, cmd, test.args, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGetShowsTheVersionUntilARolloutReachesTheCluster(t *testing.T) {
	versions := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	definition := sample.Define("shop:")
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: versions}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster3", Name: "shop"}}
	before := upstream.ConfigReferent{Namespace: "addon-packages", Name: "shop-1.0.0"}
	addOn.Status.ConfigReferences = []upstream.ConfigReference{{
		ConfigGroupResource: versions, ConfigReferent: before, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: before},
	}}
	addOn.Status.Conditions = []metav1.Condition{sample.Condition(addonv1alpha1.ConditionConfigured, "False", "ConfigurationsNotConfigured", ""), sample.NotRolledOut}
	if got := itemOf(addOn, fleet.DefinitionOf(definition), fleet.Report{}).OperatorVersion; got != "shop-1.0.0" {
		t.Errorf("got %q", got)
	}
}
