package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestNamespacesAreWarnedOf(t *testing.T) {
	in := func(namespace string) *kudo.Instance {
		return &kudo.Instance{Spec: kudo.InstanceSpec{InstallNamespace: namespace}}
	}
	const system = `addon-manager and addon-agent refuse namespace "kube-system" unless their flags --allow-namespaces list it: use another namespace`
	const ocm = `it is installed in namespace "open-cluster-management-agent-addon", OCM's default, which holds credentials of other add-ons for the hub: ` +
		`to use another one, set --namespace`
	for sentence, test := range map[string]struct {
		namespace string
		after     *kudo.Instance
		enabled   bool
		view      sample.Cluster
		want      string
	}{
		"a namespace":                            {namespace: "data", view: sample.NewCluster("kafka:").Plans("kafka")},
		"that of Kubernetes":                     {namespace: "kube-system", view: sample.NewCluster("kafka:").Plans("kafka"), want: system},
		"that of Kubernetes, set by a config":    {after: in("kube-system"), view: sample.NewCluster("kafka:").Plans("kafka"), want: system},
		"that of Kubernetes, changed by another": {namespace: "kube-system", after: in("data"), view: sample.NewCluster("kafka:").Plans("kafka")},
		"that of the agent":                      {namespace: "tandem-system", view: sample.NewCluster("kafka:").Plans("kafka"), want: strings.ReplaceAll(system, "kube-system", "tandem-system")},
		"that of OCM, for want of another":       {view: sample.NewCluster("kafka:").Plans("kafka"), want: ocm},
		"that of OCM, as the Instance has it":    {after: in("open-cluster-management-agent-addon"), view: sample.NewCluster("kafka:").Plans("kafka"), want: ocm},
		"a namespace, set by a config":           {after: in("data"), view: sample.NewCluster("kafka:").Plans("kafka")},
		"that of OCM, without plans":             {view: sample.NewCluster("kafka:")},
		"of an add-on that is enabled":           {namespace: "kube-system", enabled: true, view: sample.NewCluster("kafka:").Plans("kafka")},
		"of an add-on without plans":             {namespace: "kube-system", view: sample.NewCluster("kafka:")},
	} {
		t.Run(sentence, func(t *testing.T) {
			step := Step{Wanted: &addonv1alpha1.ManagedClusterAddOn{}}
			step.Wanted.Name, step.Wanted.Spec.InstallNamespace = "kafka", test.namespace
			if test.enabled {
				step.Current = step.Wanted
			}
			got := EnableRequest{View: test.view.Cluster, AddOn: "kafka"}.namespaceWarnings(Change{Step: &step, Change: preview.Change{After: test.after}})
			if diff := cmp.Diff(test.want, strings.Join(got, "\n")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
