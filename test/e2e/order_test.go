package e2e

import (
	_ "embed"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/audit"
)

// orderPolicy is the audit policy of sandboxes: expectOrder needs it.
//
//go:embed order.yaml
var orderPolicy []byte

// expectOrder reads the audit logs of a sandbox: what ran and what was removed on a managed cluster has never violated the order of dependencies. Under another
// policy, which logs no bodies, it finds nothing.
func expectOrder(box *sandbox.Sandbox, cluster string) {
	GinkgoHelper()
	Expect(audit.OrderViolations(entriesOf(box.Hub().AuditLog()), entriesOf(box.Cluster(cluster).AuditLog()), cluster)).To(BeEmpty(), cluster)
}
