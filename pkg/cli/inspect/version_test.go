package inspect

import (
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

func TestVersionText(t *testing.T) {
	for name, found := range map[string]Versions{
		"version-client": {Client: "v1.3.0"},
		"version-fleet": {Client: "v1.3.0+linux", Hub: "v1.3.0", Agents: groupByVersion(map[string]string{
			"cluster1": "v1.3.0", "cluster2": "v1.2.0", "cluster3": "v1.3.0", "cluster4": "", "cluster5": "v1.3.0", "cluster6": "v1.3.0",
		})},
		"version-alike":  {Client: "v1.3.0", Hub: "v1.3.0", Agents: groupByVersion(map[string]string{"cluster1": "v1.3.0"})},
		"version-silent": {Client: "v1.3.0", Agents: groupByVersion(map[string]string{"cluster1": ""})},
	} {
		t.Run(name, func(t *testing.T) {
			found.Skew = found.skew()
			clitest.Golden(t, name, found.Text(false))
		})
	}
}
