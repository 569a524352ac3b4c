package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestViolations(t *testing.T) {
	archive := folder{
		"values.yaml": "replicas: 1\n",
		"values.schema.json": `{"properties": {"replicas": {"type": "integer", "minimum": 1}, "hosts": {"items": {"$ref": "names.json"}}},
			"required": ["region"], "additionalProperties": true}`,
		"names.json":                   `{"pattern": "^[a-z]+$"}`,
		"Chart.yaml":                   metadata + "dependencies: [{name: db, version: 1.0.0}]\n",
		"charts/db/Chart.yaml":         "apiVersion: v2\nname: db\nversion: 1.0.0\n",
		"charts/db/values.schema.json": `{"properties": {"size": {"type": "integer"}}, "additionalProperties": true}`,
	}.archive(t)
	for values, want := range map[string][]string{
		"region: eu": nil,
		"{region: eu, replicas: 0, hosts: [a, B], db: {size: x}}": {
			"replicas: minimum: got 0, want 1", "hosts/1: 'B' does not match pattern '^[a-z]+$'", "db/size: got string, want integer",
		},
		"replicas: 2":          {": missing property 'region'"},
		"{region: eu, db: {}}": nil,
	} {
		found, err := Violations(context.Background(), archive, []byte(values))
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		var got []string
		for _, v := range found {
			got = append(got, fmt.Sprintf("%s: %s", strings.Join(v.Path, "/"), v.Message))
		}
		sortStrings := gocmp.Transformer("sorted", func(lines []string) map[string]bool {
			all := map[string]bool{}
			for _, line := range lines {
				all[line] = true
			}
			return all
		})
		if diff := gocmp.Diff(want, got, sortStrings); diff != "" {
			t.Errorf("%s: %s", values, diff)
		}
	}
	for _, values := range []string{"- a", "{region: eu, db: 3}"} {
		if found, err := Violations(context.Background(), archive, []byte(values)); err == nil {
			t.Errorf("%s: got %v", values, found)
		}
	}
	broken := folder{"values.schema.json": `{"$ref": "https://example.com/schema.json"}`}.archive(t)
	if _, err := Violations(context.Background(), broken, nil); err == nil || !strings.Contains(err.Error(), "it can only refer to files of the chart") {
		t.Errorf("got %v", err)
	}
}
