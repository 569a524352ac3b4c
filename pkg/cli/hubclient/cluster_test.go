package hubclient_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/test/sample"
)

func TestClusterViewCheckAddOn(t *testing.T) {
	view := sample.NewCluster("shop:", "kafka:").With("kafka").With("odd")
	for name, want := range map[string]string{
		"shop": "<nil>", "odd": "<nil>",
		"other": `add-on "other" not found; add-ons of cluster "cluster1": kafka, odd; ClusterManagementAddOns: kafka, shop`,
	} {
		if diff := cmp.Diff(want, fmt.Sprint(view.CheckAddOn(name))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
