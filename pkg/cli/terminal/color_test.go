package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatesHaveColors(t *testing.T) {
	colors := strings.NewReplacer(green, "<green>", cyan, "<cyan>", yellow, "<yellow>", red, "<red>", dim, "<dim>", plain, "</>")
	for name, test := range map[string]struct{ text, want string }{
		"a table": {
			"CLUSTER    ADD-ON        STATE           REASON\n" +
				"cluster1   kafka         available       Healthy, not available   \n" +
				"cluster1   [COMPLETE]    not available   available\n" +
				"available   blocked      -\n",
			"CLUSTER    ADD-ON        STATE           REASON\n" +
				"cluster1   kafka         <green>available</>       Healthy, not available   \n" +
				"cluster1   [COMPLETE]    <red>not available</>   available\n" +
				"available   blocked      -\n"},
		"a table with trees": {
			"ADD-ON          TYPE       STATE                 CAUSE\nkafka                      available, degraded\n└── graphs      Optional   no such add-on        NoSuchAddOn\n",
			"ADD-ON          TYPE       STATE                 CAUSE\nkafka                      <yellow>available, degraded</>\n└── graphs      Optional   <red>no such add-on</>        NoSuchAddOn\n"},
		"a matrix and its legend": {
			"A B   CLUSTERS\n⊘ ✗   1 (cluster-8)\n✓ ·   1 (cluster-1)\n\n✓ available\n",
			"A B   CLUSTERS\n<yellow>⊘</> <red>✗</>   1 (cluster-8)\n<green>✓</> <dim>·</>   1 (cluster-1)\n\n✓ available\n"},
		"a tree":              {"kafka\n└── Plan deploy [FATAL_ERROR]: not available\n", "kafka\n└── Plan deploy <red>[FATAL_ERROR]</>: not available\n"},
		"a table without any": {"ADD-ON   CLUSTERS\nkafka    available\n", "ADD-ON   CLUSTERS\nkafka    available\n"},
	} {
		got := colors.Replace(strings.Join(paint(strings.Split(test.text, "\n")), "\n"))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
