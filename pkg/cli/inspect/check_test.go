package inspect

import (
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/console/check"
)

func TestCheckText(t *testing.T) {
	clitest.Golden(t, "check-problems", CheckText(check.Report{Findings: []check.Finding{
		{Level: check.OK, Subject: "hub", Message: "the API server responds, version v1.36.0"},
		{Level: check.Warning, Subject: "clock", Message: "the clock of the hub is 5m ahead of the local one"},
		{Level: check.Unknown, Subject: "admission", Message: "unknown: forbidden"},
		{Level: check.Failed, Subject: "addon-manager", Message: "does not run\n✓ really", Command: "kubectl -n tandem-system get pods"},
	}, Failed: 1, Warnings: 1, Unknown: 1}))
}
