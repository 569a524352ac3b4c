package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSearch(t *testing.T) {
	items := []string{"strimzi-kafka", "kafka-3.9.0 operator", "zookeeper", "mirror kafka", "kafka", "Kafka-Connect"}
	for sentence, test := range map[string]struct {
		query string
		want  []string
	}{
		"equal names are first, then beginnings, then the others in their order": {"kafka",
			[]string{"mirror kafka", "kafka", "kafka-3.9.0 operator", "Kafka-Connect", "strimzi-kafka"}},
		"case does not matter":                    {"KAFKA-c", []string{"Kafka-Connect"}},
		"any of several names":                    {"operator", []string{"kafka-3.9.0 operator"}},
		"no name":                                 {"redis", []string{}},
		"an empty query finds nothing":            {"", nil},
		"what looks like an expression is a text": {"k.*a", []string{}},
		"a long query":                            {strings.Repeat("kafka", 10_000), []string{}},
	} {
		if diff := cmp.Diff(test.want, Search(test.query, items, strings.Fields)); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
	}
}
