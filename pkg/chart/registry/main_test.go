package registry

import (
	"os"
	"testing"

	"github.com/tandem-addons/tandem/pkg/chart"
)

// TestMain makes the test's program also the one that checks charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}
