package why_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestBulletsFitTheTerminal(t *testing.T) {
	view := sample.NewCluster("kafka: zookeeper graphs?", "zookeeper:").With("kafka", sample.Works).With("zookeeper", sample.Fails).WithVerdicts()
	want := `Add-on kafka is not available on cluster cluster1 because
required dependencies are not satisfied.

• It requires zookeeper, which is not available: PlanFailed:
  plan deploy: Deployment kafka/kafka: image not found.
• It optionally uses graphs, which does not exist: no
  ClusterManagementAddOn has that name. Create it, or
  correct the dependencies of kafka.

  kubectl describe managedclusteraddon zookeeper --namespace cluster1
  kubectl edit clustermanagementaddon kafka
`
	if diff := cmp.Diff(want, why.Of(view.Cluster, "kafka", sample.Now).Bullets(60)); diff != "" {
		t.Error(diff)
	}
	works := sample.NewCluster("kafka:").With("kafka", sample.Works)
	if diff := cmp.Diff("Add-on kafka is available on cluster cluster1 and has no\ndependencies.\n\n• Nothing to do.\n", why.Of(works.Cluster, "kafka", sample.Now).Bullets(60)); diff != "" {
		t.Error(diff)
	}
}
